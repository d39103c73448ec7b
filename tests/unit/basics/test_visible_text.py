"""Text from other parties: errors, states and log lines quote it, but it cannot control a terminal."""

from __future__ import annotations

import io
import json
import logging
import pickle
import sys
import unicodedata
from pathlib import Path

import pytest

import aioinformer
from aioinformer.errors import AioinformerError, DecodeError, NotFound, OptionError, TransportError, api_error
from aioinformer.logs import get_logger, visible, visible_json
from aioinformer.models import core_v1
from aioinformer.reflector import InformerState, Phase
from tests.support.view_samples import view_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x1b[2K\rweb-0 deleted", r"\x1b[2K\x0dweb-0 deleted"),
        ("one\ntwo\tthree", r"one\x0atwo\x09three"),
        ("\x9b31m\x7f\x85", r"\x9b31m\x7f\x85"),
        ("a\u202egnp.exe\u2066\u061c\u200f", r"a\u202egnp.exe\u2066\u061c\u200f"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("pay\u200bpal\ufeff", r"pay\u200bpal\ufeff"),
        ("\ud800x", r"\ud800x"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["", "default/web-0", "größer → 世界 🙂", "C:\\x1b", "non\u00a0breaking", "e\u0301"])
def test_printable_text_is_unchanged(text: str) -> None:
    assert visible(text) == text


def test_every_control_and_format_character_is_escaped() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} or unicodedata.bidirectional(character) in {
            *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"),
        }:
            assert visible(character).startswith("\\"), hex(code)


def test_escaping_is_idempotent() -> None:
    everything = "".join(map(chr, range(0x3000)))
    once = visible(everything)
    assert visible(once) == once
    assert once.encode()


@pytest.mark.parametrize("text", ["\x1b[2K\r", "\x7f\x9b\x85", "\u202e\u2028\ufeff", "\U000e0041", 'ä"\\', "plain"])
def test_escaped_json_keeps_its_value(text: str) -> None:
    line = visible_json(json.dumps({text: [text]}, ensure_ascii=False).encode())
    assert json.loads(line) == {text: [text]}
    assert line.decode().isprintable()


def test_multi_line_json_becomes_one_line() -> None:
    value = {"a": [1, "\u202e"], "b": {}}
    line = visible_json(json.dumps(value, indent="\t", ensure_ascii=False).replace("\n", "\r\n").encode())
    assert json.loads(line) == value
    assert line.decode().isprintable()


def test_invalid_utf8_is_replaced() -> None:
    assert visible_json(b'"\xff\x9b"') == '"\ufffd\ufffd"'.encode()


EVIL = "\x1b]0;owned\x07\x1b[2K\rline\n12:00:00 forged \x9b\u202e\u2028"


@pytest.mark.parametrize(
    "error",
    [
        DecodeError(EVIL, key=EVIL),
        TransportError(EVIL),
        OptionError(EVIL),
        NotFound("pods", EVIL),
        api_error(403, {"message": EVIL, "reason": EVIL}),
        api_error(500, {"details": {"causes": [{"reason": EVIL}]}, "message": EVIL}),
    ],
)
def test_error_is_one_visible_line(error: AioinformerError) -> None:
    assert str(error).isprintable()
    assert "owned" in str(error)
    assert str(pickle.loads(pickle.dumps(str(error)))) == str(error)


def test_parts_of_an_api_error_are_visible() -> None:
    error = api_error(403, {"message": EVIL, "reason": EVIL, "details": {"causes": [{"reason": EVIL}]}})
    for text in (error.message, error.reason, *error.causes):
        assert text.isprintable()
        assert "owned" in text


def test_reason_of_a_state_is_visible() -> None:
    assert str(InformerState(Phase.BACKING_OFF, EVIL, 0.0)).isprintable()


def test_repr_of_objects_is_visible() -> None:
    metadata = {"name": EVIL, "namespace": EVIL, "resourceVersion": EVIL}
    view = view_of({"metadata": metadata}, core_v1.CONFIG_MAPS)
    for text in (repr(view), repr(view.metadata)):
        assert text.isprintable()
        assert "owned" in text


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def logger(log: io.StringIO) -> logging.Logger:
    logger = get_logger("aioinformer.test_of_visible_text")
    logger.handlers[:] = [logging.StreamHandler(log)]
    logger.propagate = False
    return logger


def test_log_arguments_are_visible(log: io.StringIO, logger: logging.Logger) -> None:
    logger.warning("%s: %s %d%%", EVIL, ValueError(EVIL), 5)
    line, rest = log.getvalue().split("\n")
    assert line.isprintable()
    assert line.count("owned") == 2
    assert not rest


def test_tracebacks_keep_their_lines_visibly(log: io.StringIO, logger: logging.Logger) -> None:
    try:
        raise ValueError("\x1b]0;owned\x07\r\u2028")
    except ValueError:
        logger.exception("a handler raised")
    lines = log.getvalue().split("\n")
    assert all(line.isprintable() for line in lines)
    assert lines[-2] == r"ValueError: \x1b]0;owned\x07\x0d\u2028"


def test_plain_log_record_keeps_its_arguments(logger: logging.Logger, log: io.StringIO) -> None:
    seen: list[logging.LogRecord] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record)

    logger.addHandler(Keeper())
    logger.warning("%s of %s", "a", "b")
    assert (seen[0].msg, seen[0].args) == ("%s of %s", ("a", "b"))


def test_all_loggers_of_the_package_escape() -> None:
    package = Path(aioinformer.__file__).parent
    plain = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "logging.getLogger(" in path.read_text() and path.name not in ("logs.py", "stderr_log.py")
    ]
    assert plain == [], "use aioinformer.logs.get_logger"


def test_server_message_cannot_control_a_terminal() -> None:
    error = api_error(500, {"reason": "\x1b]0;owned\x07", "message": "\x1b[2J\rall is well\n\u202eevil"})
    assert str(error).isprintable()
