"""`aioinformer dashboards`: a Grafana dashboard of the graphs in panels.yaml, and the alert rules of alerts.yaml."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

from aioinformer.errors import UsageError
from aioinformer.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

DASHBOARD: Final = "aioinformer-dashboard.json"
ALERT_RULES: Final = "aioinformer-alerts.yaml"
#: Panels in a row of the dashboard, which has 24 columns, and the height of each.
_IN_A_ROW, _COLUMNS, _HEIGHT = 3, 24, 8


def _asset(name: str) -> bytes:
    return files("aioinformer.cli.controllers").joinpath(name).read_bytes()


def dashboard() -> bytes:
    """Return the dashboard as JSON, for the import of Grafana."""
    width, graphs = _COLUMNS // _IN_A_ROW, msgspec.yaml.decode(_asset("panels.yaml"))
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": each["title"],
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "gridPos": {"h": _HEIGHT, "w": width, "x": number % _IN_A_ROW * width, "y": number // _IN_A_ROW * _HEIGHT},
            "fieldConfig": {"defaults": {"unit": each.get("unit", "short"), "min": 0}, "overrides": []},
            "targets": [
                {"refId": chr(ord("A") + at), "expr": expression, "legendFormat": legend}
                for at, (legend, expression) in enumerate(each["expressions"].items())
            ],
        }
        for number, each in enumerate(graphs)
    ]
    variable = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    head = {"uid": "aioinformer", "title": "aioinformer", "schemaVersion": 39, "refresh": "30s"}
    shown = {"time": {"from": "now-1h", "to": "now"}, "templating": {"list": [variable]}, "panels": panels}
    return msgspec.json.format(msgspec.json.encode({**head, **shown})) + b"\n"


def alert_rules() -> bytes:
    """Return the alert rules as YAML, for `rule_files` of Prometheus."""
    return _asset("alerts.yaml")


def write(folder: Path) -> list[Path]:
    """Write both files into a folder, which is created if it is missing; return their paths.

    Raises:
        UsageError: a file cannot be written.
    """
    documents = {folder / DASHBOARD: dashboard(), folder / ALERT_RULES: alert_rules()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, document in documents.items():
            replace_file(path, [document])
    except OSError as error:
        raise UsageError(f"--output {folder}: {error.strerror or error}; name a folder that can be written") from error
    return list(documents)
