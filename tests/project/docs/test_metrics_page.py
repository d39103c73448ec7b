"""Compare the page on metrics with the metrics that the package exports, and the reasons that it counts."""

from __future__ import annotations

import re

from aioinformer.prometheus import PrometheusMetrics
from tests.project.docs.blocks import DOCS, PROJECT

PAGE = (DOCS / "metrics.md").read_text()
EXPORTER = (PROJECT / "aioinformer" / "prometheus.py").read_text()
REFLECTOR = "\n".join(path.read_text() for path in (PROJECT / "aioinformer" / "reflector").rglob("*.py"))


def test_page_lists_every_metric() -> None:
    assert PrometheusMetrics.__module__ == "aioinformer.prometheus"
    exported = set(re.findall(r'"((?:informer|reflector|workqueue)_\w+)"', EXPORTER))
    listed = set(re.findall(r"`((?:informer|reflector|workqueue)_\w+)`", PAGE))
    assert {name.removesuffix("_total") for name in listed} == exported


def test_page_lists_every_reason_of_a_relist() -> None:
    counted = set(re.findall(r'list_reason(?: = |\()"(\w+)"', REFLECTOR))
    table = PAGE.split("| reason | the informer lists because |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == counted
