"""The page of the metrics: every metric that is exported is on it, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily

from aioinformer.prometheus import PrometheusMetrics

PAGE = Path(__file__).parents[2] / "docs/metrics.md"


def test_page_names_every_metric_with_its_kind() -> None:
    documented: dict[str, str] = {}
    for row in re.findall(r"^\| (`.+?) \| ((?:gauge|counter|summar|histogram).*?) \|", PAGE.read_text(), re.MULTILINE):
        names, kinds = re.findall(r"`([a-z_]+)`", row[0]), row[1].partition(":")[0]
        written = [each.strip() for each in kinds.split(",")]
        for number, name in enumerate(names):
            kind = written[number] if number < len(written) else written[-1]
            documented[name] = kind.split()[0].rstrip("s").replace("summarie", "summary")
    exported = {
        each.name + ("_total" if isinstance(each, CounterMetricFamily) else ""): each.type
        for each in PrometheusMetrics(CollectorRegistry()).describe()
    }
    assert documented == exported
