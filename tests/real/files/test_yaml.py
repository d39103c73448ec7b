"""YAML in both directions: kubectl reads each scalar as this package does, and each text that the package writes.

`recorded/scalars.json` has what kubectl read. With kubectl, it is asked again; AIOINFORMER_RECORD=1 writes the file.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from aioinformer import load_manifests
from aioinformer.transport.auth.yaml_documents import load_yaml, to_yaml
from tests.real.files.kubectl import KUBECTL, RECORDS, read_objects

RECORDED = Path(__file__).parent / "recorded" / "scalars.json"
INSTALLATIONS = Path(__file__).parent / "installations.yaml"
INSTALLATIONS_READ = RECORDED.with_name("installations.json")
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nfound:\n"
#: In the place of a value: kubectl refuses the text.
REFUSED: Final = "<refused>"
#: libyaml, which reads for this package, has one more escape, and no comma in tags.
DIFFERENCES: Final = ('- "\\/"', "- !!str,12")

#: Two keys that become equal: which one kubectl takes is the order of a map in Go, which is random.
BY_CHANCE: Final = ('- {1: a, "1": b}\n',)

#: Words, numbers and tags that readers of YAML judge in different ways, one a line.
KNOWN = (Path(__file__).parent / "scalars.txt").read_text().splitlines()


def scalars() -> list[str]:
    """Return texts in the place of a value: known ones, and random ones of the characters that numbers have."""
    choose = random.Random("scalars")
    made = {
        "".join(choose.choices("0123456789" * 2 + "xXobBeE_+-..:~ynYNtf=", k=choose.randint(1, 7)))
        for _ in range(2600)
    }  # fmt: skip
    return [*KNOWN, *sorted(made - set(KNOWN))]


def texts() -> list[str]:
    """Return texts to be written."""
    choose = random.Random("texts")
    alphabet = "0123456789abynotef xXoE_+-.:~=#'\"\\{}[],&*!|>%@`?\n\t ß€😀\x85\u2028\ufeff\u00a0"
    made = {"".join(choose.choices(alphabet, k=choose.randint(0, 9))) for _ in range(2600)}
    return [*KNOWN, *(each for each in scalars() if not each.startswith("<")), *sorted(made)]


def as_value(scalar: str) -> str:
    return f"- {scalar}\n"


def as_key(scalar: str) -> str:
    return f"- {scalar}: x\n"


def ours(line: str) -> Any:
    try:
        return load_yaml(HEAD + line)["found"][0]
    except (yaml.YAMLError, TypeError, KeyError):
        return REFUSED


def kubectls(lines: list[str]) -> list[Any]:
    """Return what kubectl reads, in halves until it accepts all lines of a text."""
    found = read_objects(HEAD + "".join(lines))
    if found is not None and len(found[0]["found"] or ()) == len(lines):
        return list(found[0]["found"])
    if len(lines) == 1:
        return [REFUSED]
    middle = len(lines) // 2
    return kubectls(lines[:middle]) + kubectls(lines[middle:])


def asked(lines: list[str], recorded: dict[str, Any]) -> dict[str, Any]:
    """Return what kubectl reads now. Lines that it refused before are asked one by one, the others all at once."""
    refused = [line for line in lines if recorded.get(line) == REFUSED]
    others = [line for line in lines if recorded.get(line) != REFUSED]
    found = dict(zip(others, kubectls(others), strict=True))
    found.update({line: kubectls([line])[0] for line in refused[: None if RECORDS else 20]})
    return found


def lines_of(scalars: list[str]) -> list[str]:
    return [*map(as_value, scalars), *map(as_key, scalars[: len(KNOWN) + 300])]


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return found


@pytest.mark.timeout(600)
def test_scalars_and_keys_are_read_as_kubectl_reads_them() -> None:
    known = recorded()
    if KUBECTL is not None and RECORDS:
        known = asked(lines_of(scalars()), known)
        RECORDED.write_text(json.dumps(known, indent=0, ensure_ascii=True, sort_keys=True) + "\n")
    assert len(known) > 2500
    found = {line: ours(line) for line in known if not line.startswith(DIFFERENCES)}
    assert {line: (value, known[line]) for line, value in found.items() if not is_same(value, known[line])} == {}


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
@pytest.mark.timeout(600)
def test_kubectl_still_reads_what_was_recorded() -> None:
    known = recorded()
    found = asked(list(known), known)
    assert len(found) > 2000
    changed = {line: value for line, value in found.items() if not is_same(value, known[line])}
    assert [line for line in changed if line not in BY_CHANCE] == []


def test_texts_that_are_written_are_read_again() -> None:
    for text in texts():
        value = {"value": text, text: ["key", text]}
        assert load_yaml(to_yaml([value], sort_keys=False)) == value


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
@pytest.mark.timeout(600)
def test_kubectl_reads_the_texts_that_are_written() -> None:
    wanted = [{"value": text, text: ["key", text]} for text in texts()]
    assert len(wanted) > 2000
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "found": wanted}
    found = read_objects(to_yaml([body], sort_keys=False))
    assert found is not None
    assert [pair for pair in zip(wanted, found[0]["found"], strict=True) if pair[0] != pair[1]] == []


@pytest.mark.timeout(600)
def test_manifests_of_installations_are_read_as_kubectl_reads_them() -> None:
    found = [dict(each) for each in load_manifests(INSTALLATIONS)]
    expected = INSTALLATIONS_READ
    if KUBECTL is not None:
        read = read_objects(INSTALLATIONS.read_text())
        assert read is not None
        if RECORDS:
            expected.write_text(json.dumps(read, indent=1, sort_keys=True) + "\n")
        assert read == json.loads(expected.read_text())
    assert [annotated(each) for each in found] == json.loads(expected.read_text())


def annotated(body: dict[str, Any]) -> dict[str, Any]:
    """Return an object as `read_objects` does: with the annotation that its command sets."""
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), "by": "kubectl"}}}


def is_same(left: Any, right: Any) -> bool:
    """Return whether two values have the same types and values. kubectl prints large floats without an exponent."""
    return compared(left) == compared(right)


def compared(value: Any) -> str:
    return json.dumps(json.loads(json.dumps(value), parse_int=whole), sort_keys=True)


def whole(digits: str) -> int | float:
    return int(digits) if -(2**63) <= int(digits) < 2**63 else float(digits)
