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
from tests.support.scraped import Scraped

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer
    from aioinformer.webhooks import AdmissionRequest
    from tests.support.shell import Shell

PROMTOOL = shutil.which("promtool")
PROJECT = Path(__file__).parents[3]
RULES = Path(__file__).with_name("alerts.test.yaml")
PANELS = json.loads(dashboard())["panels"]
ALERTS = yaml.safe_load(alert_rules())["groups"][0]["rules"]
#: What is no metric in an expression.
_WORDS = {"sum", "min", "max", "count", "by", "without", "le", "rate", "increase", "histogram_quantile"}
_WORDS |= {"offset", "unless", "or"}
#: Labels that Prometheus or its operator sets, by what it knows of the target.
TARGET = {"cluster", "namespace", "pod", "instance"}


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
    grouped = re.findall(r"(by|without) \(([^)]*)\)", expression)
    by = {label for word, labels in grouped if word == "by" for label in re.findall(r"\w+", labels)}
    without = {label for word, labels in grouped if word == "without" for label in re.findall(r"\w+", labels)}
    text = re.sub(r"(by|without) \([^)]*\)|\[[^]]*\]|offset \w+|\"[^\"]*\"|[\d.]+", " ", expression)
    metrics = set(re.findall(r"[a-z_]+", text)) - _WORDS
    assert metrics
    shown = set(re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", labels_in))
    labels = set.union(TARGET, *(known.get(each, set()) for each in metrics))
    kept = by & labels if by else labels - without
    return (metrics - set(known)) | ((by | without | matched) - labels) | (shown - kept)


async def test_expressions_name_metrics_and_labels_that_exist(api_server: ApiServer) -> None:
    known = await exposed(api_server)
    for expression, labels_in in expressions():
        assert not unknown(expression, labels_in, known), expression


def test_alerts_keep_deployments_apart() -> None:
    for each in ALERTS:
        assert " by (" not in each["expr"], each["alert"]


def test_graphs_follow_the_variables_of_their_metrics() -> None:
    variables = {each["name"]: each for each in json.loads(dashboard())["templating"]["list"]}
    assert list(variables) == ["datasource", "cluster", "namespace", "manager", "controller"]
    assert all(each["allValue"] == ".*" for name, each in variables.items() if name != "datasource")
    labels = {"manager": {"manager"}, "controller": {"manager", "controller"}}
    for expression, _ in expressions()[: -len(ALERTS)]:
        for metric, matchers in re.findall(r"([a-z_]+)(\{[^}]*\})", expression):
            wanted = {"cluster", "namespace"}
            wanted |= labels.get(metric.partition("_")[0], set()) - ({"controller"} if "webhook" in metric else set())
            assert wanted <= set(re.findall(r'(\w+)=~"', matchers)), expression
            used = set(re.findall(r"\$(\w+)", matchers)) - {"__rate_interval"}
            assert used <= set(variables)
        assert not re.search(r"[a-z_]+_(total|seconds|keys|bucket|ready|items)(?!\{)\b", expression), expression


def test_unknown_names_in_expressions_are_found() -> None:
    known = {"up": {"name"}}
    assert unknown("sum without (pods) (up)", "", known) == {"pods"}
    assert unknown("sum without (pod) (up)", "{{ $labels.pod }}", known) == {"pod"}
    assert unknown("sum by (zone) (rate(up[5m])) > 1", "{{ $labels.name }}", known) == {"zone", "name"}
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


async def test_alerts_have_links_and_can_be_left_out(shell: Shell, tmp_path: Path) -> None:
    url = "https://docs.example.com/troubleshooting/"
    options = ("--runbook-url", url, "--leave-out", "AioinformerKeysWait", "--leave-out", "AioinformerErrors")
    assert (await shell.run("dashboards", "-o", tmp_path, *options)).code == 0
    [group] = yaml.safe_load((tmp_path / ALERT_RULES).read_text())["groups"]
    links = {each["alert"]: each["annotations"]["runbook_url"] for each in group["rules"]}
    assert links["AioinformerKeysParked"] == f"{url}#parked"
    assert {each["alert"] for each in ALERTS} - set(links) == {"AioinformerKeysWait", "AioinformerErrors"}
    assert "runbook_url" not in alert_rules().decode()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--leave-out", "AioinformerKeyWaits", "there is no such alert; did you mean AioinformerKeysWait?"),
        ("--leave-out", "Other", "there is no such alert; the alerts are AioinformerCacheStale, "),
        ("--runbook-url", "docs/troubleshooting", "expected an http or https URL without #"),
        ("--runbook-url", "https://docs.example.com/#parked", "expected an http or https URL without #"),
    ],
)
async def test_unknown_alert_or_address_writes_nothing(
    shell: Shell, tmp_path: Path, option: str, value: str, message: str
) -> None:
    finished = await shell.run("dashboards", "-o", tmp_path / "new", option, value)
    assert finished.code == 2
    assert f"{option} {value}: {message}" in finished.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.behaviour("C-192")
def test_troubleshooting_has_each_alert_in_its_section() -> None:
    """Each situation of the page names its alerts, or says why there is none; and each alert links to one of them."""
    sections = re.split(r"^##", (PROJECT / "docs/troubleshooting.md").read_text(), flags=re.MULTILINE)[1:]
    named: dict[str, set[str]] = {}
    for section in sections:
        anchor = re.search(r"\{ #(.*) \}", section.partition("\n")[0])
        found = re.search(r"^- \*\*Alert:\*\* ((?:.|\n  )+)", section, re.MULTILINE)
        if section.startswith("#") and anchor is not None:
            assert found is not None, f"{anchor[1]}: which alert fires, or why is there none?"
        if found is not None:
            assert anchor is not None
            alerts = set(re.findall(r"`(Aioinformer\w+)`", found[1]))
            assert alerts or re.match(r"none(: |,)", found[1]), anchor[1]
            named[anchor[1]] = alerts
    links = {
        each["alert"]: each["annotations"]["runbook_url"].partition("#")[2]
        for each in yaml.safe_load(alert_rules("http://docs"))["groups"][0]["rules"]
    }
    assert set.union(*named.values()) == set(links)
    for alert, anchor in links.items():
        assert alert in named[anchor], f"{alert} links to {anchor}"


def test_files_in_the_repository_are_those_of_the_command() -> None:
    assert (PROJECT / "monitoring" / DASHBOARD).read_bytes() == dashboard()
    assert (PROJECT / "monitoring" / ALERT_RULES).read_bytes() == alert_rules()


@pytest.mark.behaviour("C-191")
@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool, of Debian's package prometheus")
async def test_promtool_accepts_the_rules_and_their_tests(shell: Shell, tmp_path: Path) -> None:
    assert (await shell.run("dashboards", "-o", tmp_path)).code == 0
    tests = shutil.copy(RULES, tmp_path)
    for arguments in (("check", "rules", tmp_path / ALERT_RULES), ("test", "rules", tests)):
        done = subprocess.run([str(PROMTOOL), *map(str, arguments)], capture_output=True, text=True, check=False)  # noqa: ASYNC221
        assert done.returncode == 0, done.stdout + done.stderr
    tested = RULES.read_text()
    assert all(each["alert"] in tested for each in ALERTS)


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool, of Debian's package prometheus")
def test_promtool_accepts_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    texts = [expression.replace("$__rate_interval", "1m") for expression, _ in expressions()]
    rules = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(texts)]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        [str(PROMTOOL), "check", "rules", str(tmp_path / "rules.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
