"""Concurrent first reads of objects of a kind, each run in its own interpreter.

    AIOINFORMER_THREAD_RUNS=30 make test ARGS=tests/unit/models/test_threads.py

runs each case that often.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kubernetes_asyncio.client import models as library

from tests.unit.models.bodies import body

RUNS = int(os.environ.get("AIOINFORMER_THREAD_RUNS", "1"))
ROOT = Path(__file__).parents[3]
KINDS = {
    "pods": ["", "v1", "pods", "V1Pod"],
    "nodes": ["", "v1", "nodes", "V1Node"],
    "deployments": ["apps", "v1", "deployments", "V1Deployment"],
    # Its schemas contain themselves, directly and in maps.
    "definitions": ["apiextensions.k8s.io", "v1", "customresourcedefinitions", "V1CustomResourceDefinition"],
    # Maps of models, which are not part of the decoder of the outer model.
    "slices": ["resource.k8s.io", "v1", "resourceslices", "V1ResourceSlice"],
    "widgets": ["example.com", "v1", "widgets", "V1Pod"],
}
CASES = [
    ("listers", 2, ["pods"]),
    ("listers", 8, ["definitions", "slices"] if hasattr(library, "V1ResourceSlice") else ["definitions"]),
    ("listers", 4, ["widgets", "nodes", "deployments", "pods"]),
    ("models", 4, ["pods", "deployments"]),
]


def _object(kind: str) -> list[str]:
    group, version, plural, model = KINDS[kind]
    random = Random(kind)
    made = body(random, model, nulls=False)
    made["metadata"] = {**body(random, "V1ObjectMeta", nulls=False), "name": "a", "namespace": "ns"}
    return [group, version, plural, json.dumps(made)]


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize(("scenario", "threads", "kinds"), CASES)
def test_concurrent_first_reads(scenario: str, threads: int, kinds: list[str], run: int) -> None:
    asked: dict[str, Any] = {"scenario": scenario, "threads": threads, "objects": [_object(kind) for kind in kinds]}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.unit.models.first_look"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr[-3000:]


def test_decoders_are_built_under_the_lock_only() -> None:
    learns = re.compile(r"msgspec\.json\.decode\(.*type=(?!str\b|dict\[str)")
    found = [
        f"{path.name}: {line.strip()}"
        for path in (ROOT / "aioinformer").rglob("*.py")
        if not {"testing", "cli"} & set(path.relative_to(ROOT).parts)
        for line in path.read_text().splitlines()
        if learns.search(line)
    ]
    # Discovery builds its decoders during the import.
    assert found == ["discovery.py: return msgspec.json.decode(body, type=form)"]
