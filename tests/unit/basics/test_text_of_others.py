"""Errors, states and log lines quote servers, plugins and files, but cannot control a terminal."""

from __future__ import annotations

import io
import json
import logging
import pickle
from pathlib import Path

import pytest

import aioinformer
from aioinformer.cache.objects.record import decode_record
from aioinformer.cache.objects.views import view_class
from aioinformer.errors import AioinformerError, DecodeError, NotFound, OptionError, TransportError, api_error
from aioinformer.logs import get_logger
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.resources.catalog import find

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
    record = decode_record(
        json.dumps({"metadata": {"name": EVIL, "namespace": EVIL, "resourceVersion": EVIL}}).encode()
    )
    resource = find("", "v1", "configmaps")
    assert resource is not None
    view = view_class(resource)(record)
    for text in (repr(record), repr(view), repr(view.metadata)):
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
