"""`aioinformer dashboards`: a Grafana dashboard of the graphs in panels.yaml, and the alert rules of alerts.yaml."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.errors import UsageError, did_you_mean
from aioinformer.files import replace_file
from aioinformer.transport.auth.yaml_documents import to_yaml

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

DASHBOARD: Final = "aioinformer-dashboard.json"
ALERT_RULES: Final = "aioinformer-alerts.yaml"
#: Panels in a row of the dashboard, which has 24 columns, and the height of each.
_IN_A_ROW = 3
_COLUMNS = 24
_HEIGHT = 8
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_DEPLOYMENT: Final = 'cluster=~"$cluster", namespace=~"$namespace"'
_MANAGER: Final = f'{_DEPLOYMENT}, manager=~"$manager"'
#: What stands for the matchers in panels.yaml -> these matchers. Informers of a manager have its name, with another end
#: if there are several of it; the queue of a controller has the name of that.
_MATCHERS: Final = {
    "process": _DEPLOYMENT,
    "manager": _MANAGER,
    "controller": f'{_MANAGER}, controller=~"$controller"',
    "queue": f'{_DEPLOYMENT}, name=~"$controller"',
    "informer": f'{_DEPLOYMENT}, name=~"($manager)(-slots|-owned)?(-[0-9]+)?"',
}
#: The variables of the dashboard, and the metrics whose labels are their values; each depends on those before it.
_VARIABLES: Final = {
    "cluster": "manager_ready",
    "namespace": 'manager_ready{cluster=~"$cluster"}',
    "manager": f"manager_ready{{{_DEPLOYMENT}}}",
    "controller": f"controller_phase{{{_MANAGER}}}",
}


def _asset(name: str) -> bytes:
    return files("aioinformer.cli.controllers").joinpath(name).read_bytes()


def dashboard() -> bytes:
    """Return the dashboard as JSON, for the import of Grafana."""
    width = _COLUMNS // _IN_A_ROW
    graphs = msgspec.yaml.decode(_asset("panels.yaml"))
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": each["title"],
            "datasource": _DATASOURCE,
            "gridPos": {"h": _HEIGHT, "w": width, "x": number % _IN_A_ROW * width, "y": number // _IN_A_ROW * _HEIGHT},
            "fieldConfig": {"defaults": {"unit": each.get("unit", "short"), "min": 0}, "overrides": []},
            "targets": [
                {"refId": chr(ord("A") + at), "expr": _matched(expression), "legendFormat": legend}
                for at, (legend, expression) in enumerate(each["expressions"].items())
            ],
        }
        for number, each in enumerate(graphs)
    ]
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    variables = [source, *(_variable(name, metric) for name, metric in _VARIABLES.items())]
    head = {"uid": "aioinformer", "title": "aioinformer", "schemaVersion": 39, "refresh": "30s"}
    shown = {"time": {"from": "now-1h", "to": "now"}, "templating": {"list": variables}, "panels": panels}
    return msgspec.json.format(msgspec.json.encode({**head, **shown})) + b"\n"


def _matched(expression: str) -> str:
    """Return an expression with the matchers of the variables."""
    for name, matchers in _MATCHERS.items():
        expression = expression.replace(f"{{{name}}}", f"{{{matchers}}}")
    return expression


def _variable(name: str, metric: str) -> dict[str, Any]:
    """Return a variable with the values of a label. All values include that the label is absent."""
    query = f"label_values({metric}, {name})"
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": _DATASOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def alert_rules(runbook_url: str = "", leave_out: Collection[str] = ()) -> bytes:
    """Return the alert rules as YAML, for `rule_files` of Prometheus.

    Args:
        runbook_url: the address of a copy of *Troubleshooting*. Each alert has that of its section as the annotation
            `runbook_url`; without an address, there is no such annotation.
        leave_out: names of alerts.

    Raises:
        UsageError: no alert has a name, or the address is none.
    """
    document = msgspec.yaml.decode(_asset("alerts.yaml"))
    rules = document["groups"][0]["rules"]
    names = [each["alert"] for each in rules]
    for name in leave_out:
        if name not in names:
            hint = did_you_mean(name, names) or f"the alerts are {', '.join(names)}"
            raise UsageError(f"--leave-out {name}: there is no such alert; {hint}")
    if runbook_url and (not runbook_url.startswith(("https://", "http://")) or "#" in runbook_url):
        raise UsageError(f"--runbook-url {runbook_url}: expected an http or https URL without #")
    for each in rules:
        section = each["annotations"].pop("runbook_url")
        if runbook_url:
            each["annotations"]["runbook_url"] = f"{runbook_url}{section}"
    document["groups"][0]["rules"] = [each for each in rules if each["alert"] not in leave_out]
    return to_yaml([document], sort_keys=False).encode()


def write(folder: Path, runbook_url: str = "", leave_out: Collection[str] = ()) -> list[Path]:
    """Write both files into a folder, which is created if it is missing; return their paths.

    Args:
        folder: where to write.
        runbook_url, leave_out: as for `alert_rules`.

    Raises:
        UsageError: a file cannot be written, or an argument is invalid.
    """
    documents = {folder / DASHBOARD: dashboard(), folder / ALERT_RULES: alert_rules(runbook_url, leave_out)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, document in documents.items():
            replace_file(path, [document])
    except OSError as error:
        raise UsageError(f"--output {folder}: {error.strerror or error}; name a folder that can be written") from error
    return list(documents)
