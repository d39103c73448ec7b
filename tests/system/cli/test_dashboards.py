"""The dashboard and the alert rules: each expression is held against the metrics of a manager."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from prometheus_client import generate_latest

from aioinformer.cli.controllers.dashboards import ALERT_RULES, DASHBOARD, alert_rules, dashboard
from aioinformer.controller import LeaderElection, Manager, Request, Watch
from aioinformer.models import core_v1
from tests.system.controller.test_metrics import Scraped

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer
    from aioinformer.webhooks import AdmissionRequest
    from tests.support.shell import Shell

PROMTOOL = shutil.which("promtool")
RULES = Path(__file__).with_name("alerts.test.yaml")
PANELS = json.loads(dashboard())["panels"]
ALERTS = yaml.safe_load(alert_rules())["groups"][0]["rules"]
#: What is no metric in an expression.
_FUNCTIONS = {"sum", "max", "count", "by", "le", "rate", "increase", "histogram_quantile"}


def expressions() -> list[tuple[str, str]]:
    """Return each expression, with the texts in which labels of its result stand."""
    graphs = [(each["expr"], each["legendFormat"]) for panel in PANELS for each in panel["targets"]]
    return graphs + [(each["expr"], "".join(each["annotations"].values())) for each in ALERTS]


async def exposed(server: ApiServer) -> dict[str, set[str]]:
    """Return the metrics of a manager that has seen all that is counted: name -> labels of its samples."""
    scraped = Scraped()
    options: Any = {"metrics": scraped.metrics, "leader_election": LeaderElection("shop")}
    manager = Manager("shop", client=server.url, **options)

    def lose(obj: Any) -> list[str]:
        raise KeyError

    watch = Watch(core_v1.NAMESPACES, to=lose)

    @manager.controller(core_v1.CONFIG_MAPS, watches=[watch])
    async def maps(request: Request[Any]) -> None: ...

    @manager.validate(core_v1.CONFIG_MAPS)
    async def check(request: AdmissionRequest[Any]) -> None: ...

    found: dict[str, set[str]] = {}
    ring = Manager("shared", client=server.url, ring="shared", metrics=scraped.metrics)
    async with manager, ring:
        await scraped.until(lambda: b"ring_slot_owner{" in generate_latest(scraped.registry))
        server.create("configmaps", {"metadata": {"name": "one", "namespace": "default"}})
        await scraped.reaches(1, "controller_phase", controller="maps", phase="working")
        await scraped.until(lambda: watch.errors)
        watch.lost = 1  # by itself, only after a minute
        for family in scraped.registry.collect():
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def unknown(expression: str, labels_in: str, known: dict[str, set[str]]) -> set[str]:
    """Return the metrics and labels of an expression that a manager does not export."""
    matched = set(re.findall(r"(?<=[{,])\s*(\w+)(?=[!=]=?~?\")", expression))
    expression = re.sub(r"\{[^}]*\}", " ", expression)
    by = {label for labels in re.findall(r"by \(([^)]*)\)", expression) for label in re.findall(r"\w+", labels)}
    text = re.sub(r"by \([^)]*\)|\[[^]]*\]|\"[^\"]*\"|[\d.]+", " ", expression)
    metrics = set(re.findall(r"[a-z_]+", text)) - _FUNCTIONS
    assert metrics
    shown = set(re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", labels_in))
    labels = set.union(*(known.get(each, set()) for each in metrics))
    kept = by & labels if by else labels
    return (metrics - set(known)) | ((by | matched) - labels) | (shown - kept)


async def test_expressions_name_metrics_and_labels_that_exist(api_server: ApiServer) -> None:
    known = await exposed(api_server)
    for expression, labels_in in expressions():
        assert not unknown(expression, labels_in, known), expression


def test_unknown_names_in_expressions_are_found() -> None:
    known = {"up": {"name"}}
    assert unknown("sum by (pod) (rate(up[5m])) > 1", "{{ $labels.name }}", known) == {"pod", "name"}
    assert unknown("down == 0", "{{name}}", known) == {"down", "name"}
    assert not unknown("sum by (name) (up) / up", "{{name}}", known)


async def test_command_writes_a_dashboard_and_rules(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert (await shell.run("dashboards", "-o", folder)).code == 0
    written = json.loads((folder / DASHBOARD).read_text())
    assert [each["title"] for each in written["panels"]] == [each["title"] for each in PANELS]
    assert len({(each["gridPos"]["x"], each["gridPos"]["y"]) for each in written["panels"]}) == len(PANELS)
    [group] = yaml.safe_load((folder / ALERT_RULES).read_text())["groups"]
    assert {each["alert"] for each in group["rules"]} == {each["alert"] for each in ALERTS}


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool, of Debian's package prometheus")
async def test_promtool_accepts_the_rules_and_their_tests(shell: Shell, tmp_path: Path) -> None:
    assert (await shell.run("dashboards", "-o", tmp_path)).code == 0
    tests = shutil.copy(RULES, tmp_path)
    for arguments in (("check", "rules", tmp_path / ALERT_RULES), ("test", "rules", tests)):
        done = subprocess.run([str(PROMTOOL), *map(str, arguments)], capture_output=True, text=True, check=False)  # noqa: ASYNC221
        assert done.returncode == 0, done.stdout + done.stderr
    tested = RULES.read_text()
    assert all(each["alert"] in tested for each in ALERTS)
