"""`aioinformer crd`, `manifests` and `init`: what they write, and what they leave alone."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from aioinformer import Client, connect, load_manifests
from aioinformer.testing import ApiServer
from tests.support.shell import PROJECT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.shell import Shell

PROGRAM = """
from typing import Any

import msgspec

from aioinformer.controller import LeaderElection, Manager
from aioinformer.crds import custom_resource
from aioinformer.models import ObjectMeta, core_v1


class Widget(msgspec.Struct):
    metadata: ObjectMeta
    size: int


class Sizeless(msgspec.Struct):
    metadata: ObjectMeta
    size: dict[int, int]


class Undeclared(msgspec.Struct):
    size: int


WIDGETS = custom_resource(Widget, "example.com", "v1")
SIZELESS = custom_resource(Sizeless, "example.com", "v1")
manager = Manager("widgets", leader_election=LeaderElection("widgets", namespace="ops"), grace=25)


@manager.controller(WIDGETS, owns=[core_v1.CONFIG_MAPS], writes={WIDGETS: ("patch",)})
async def widgets(request): ...
"""


@pytest.fixture(autouse=True)
def program(shell: Shell) -> None:
    (shell.home / "program.py").write_text(PROGRAM)


@pytest.mark.parametrize("place", ["program:Widget", "program:WIDGETS"])
async def test_definition_is_printed_as_yaml(shell: Shell, place: str) -> None:
    finished = await shell.run("crd", place)
    assert finished.code == 0
    [body] = yaml.safe_load_all("\n".join(finished.lines))
    assert body["metadata"]["name"] == "widgets.example.com"
    assert finished.lines[:3] == ["apiVersion: apiextensions.k8s.io/v1", "kind: CustomResourceDefinition", "metadata:"]


async def test_check_and_compatible_with_name_each_change_and_exit_with_1(shell: Shell) -> None:
    printed = await shell.run("crd", "program:Widget")
    file = shell.home / "crd.yaml"
    file.write_text("\n".join(printed.lines))
    both = ("crd", "program:Widget", "--check", "crd.yaml", "--compatible-with", "crd.yaml")
    same = await shell.run(*both)
    assert (same.code, same.lines) == (0, [])

    file.write_text(file.read_text().replace("type: integer", "type: number"))
    other = await shell.run(*both)
    assert other.code == 1
    assert other.lines == [
        "crd.yaml: widgets.example.com: versions.v1.size: type is 'number'; the class has 'integer'",
        "widgets.example.com: versions.v1.size: type narrowed from number to integer",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("program:Sizeless",), "Sizeless.size: the keys of a map must be str"),
        (("program:Undeclared",), "its module declares no custom_resource() of it; it has program:WIDGETS"),
        (("program:manager",), "program:manager is of type Manager"),
        (("program:Widget", "--check", "nowhere.yaml"), "nowhere.yaml: there is no such file"),
        (("program:Widget", "--check", "other.yaml"), "has no CustomResourceDefinition widgets.example.com"),
        (("program",), "does not name a class: write MODULE:NAME"),
    ],
)
async def test_what_has_no_definition_is_named(shell: Shell, arguments: tuple[str, ...], told: str) -> None:
    (shell.home / "other.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: a}}")
    finished = await shell.run("crd", *arguments)
    assert finished.code == 2
    assert told in " ".join(finished.stderr.split())


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


async def base(shell: Shell, *options: str) -> list[str]:
    finished = await shell.run("manifests", "program:manager", "-o", "base", *options)
    assert finished.code == 0, finished.stderr
    return finished.lines


async def test_base_has_what_the_declarations_say(shell: Shell) -> None:
    await base(shell, "--image", "registry.example.com/widgets:1.0", "--pod-monitor", "-n", "shop")
    folder = shell.home / "base"
    found: dict[str, Any] = {each["kind"]: each for each in load_manifests(folder) if "name" in each["metadata"]}
    assert found["CustomResourceDefinition"]["metadata"]["name"] == "widgets.example.com"
    assert {each["metadata"].get("namespace") for each in found.values()} == {None, "ops", "shop"}
    deployment = found["Deployment"]["spec"]
    pod = deployment["template"]["spec"]
    [container] = pod["containers"]
    assert (deployment["replicas"], pod["terminationGracePeriodSeconds"]) == (2, 45)
    assert (container["image"], pod["serviceAccountName"]) == ("registry.example.com/widgets:1.0", "widgets")
    assert container["command"][-2:] == ["--namespace", "shop"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert found["PodMonitor"]["spec"]["podMetricsEndpoints"] == [{"port": "health", "path": "/metrics"}]
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    assert sorted([*listed, "kustomization.yaml"]) == sorted(contents(folder))


async def test_service_monitor_and_network_policy_are_on_request(shell: Shell) -> None:
    await base(shell, "--service-monitor", "--network-policy")
    folder = shell.home / "base"
    found = {each["kind"]: each for each in load_manifests(folder) if "name" in each["metadata"]}
    service, monitor, policy = (found[kind] for kind in ("Service", "ServiceMonitor", "NetworkPolicy"))
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == policy["spec"]["podSelector"]["matchLabels"] == labels
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [endpoint], [port] = monitor["spec"]["endpoints"], service["spec"]["ports"]
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert (endpoint["port"], endpoint["path"]) == (port["name"], "/metrics")
    assert (port["targetPort"], port["port"]) == (container["ports"][0]["name"], container["ports"][0]["containerPort"])
    assert service["spec"]["publishNotReadyAddresses"], "a manager that is not ready is scraped, too"
    [rule] = policy["spec"]["ingress"]
    assert rule["ports"] == [{"port": "health", "protocol": "TCP"}]
    async with ApiServer() as server, await connect(kubeconfig=server.kubeconfig(shell.home / "config")) as connection:
        server.create("namespaces", {"metadata": {"name": "ops"}})
        report = await Client(connection, field_manager="test").apply_all([service, policy])
        assert [each.change for each in report.objects] == ["created", "created"]

    changed, *removed = await base(shell)
    assert changed == "changed base/kustomization.yaml"
    assert sorted(removed) == ["removed base/network-policy.yaml", "removed base/service-monitor.yaml"]


async def test_two_monitors_are_refused(shell: Shell) -> None:
    finished = await shell.run("manifests", "program:manager", "-o", "base", "--pod-monitor", "--service-monitor")
    assert finished.code == 2
    assert "each pod would be scraped twice" in " ".join(finished.stderr.split())
    assert not (shell.home / "base").exists()


async def test_prometheus_sends_its_token_to_a_manager_that_asks_who_reads(shell: Shell) -> None:
    asking = PROGRAM.replace("grace=25", "grace=25, metrics_check=EVERYBODY")
    (shell.home / "program.py").write_text(f"from aioinformer.authorization import EVERYBODY\n{asking}")
    await base(shell, "--service-monitor")
    [monitor] = [each for each in load_manifests(shell.home / "base") if each["kind"] == "ServiceMonitor"]
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["bearerTokenFile"] == "/var/run/secrets/kubernetes.io/serviceaccount/token"
    finished = await shell.run("manifests", "program:manager", "-o", "base", "--pod-monitor")
    assert finished.code == 0
    assert "a PodMonitor sends no token of Prometheus; pass --service-monitor" in finished.stderr


async def test_monitor_without_metrics_is_refused(shell: Shell) -> None:
    (shell.home / "program.py").write_text(PROGRAM.replace("grace=25", "grace=25, metrics=False"))
    finished = await shell.run("manifests", "program:manager", "-o", "base", "--pod-monitor")
    assert finished.code == 2
    assert "has metrics=False, so there is nothing to scrape" in " ".join(finished.stderr.split())


async def test_second_run_changes_nothing(shell: Shell) -> None:
    await base(shell)
    before = contents(shell.home / "base")
    assert await base(shell) == ["base is up to date"]
    assert contents(shell.home / "base") == before


async def test_files_of_the_user_stay(shell: Shell) -> None:
    await base(shell, "--pod-monitor")
    folder = shell.home / "base"
    (folder / "mine.yaml").write_text("# my own\n")
    assert await base(shell) == ["changed base/kustomization.yaml", "removed base/pod-monitor.yaml"]
    assert (folder / "mine.yaml").read_text() == "# my own\n"
    assert "mine.yaml" not in (folder / "kustomization.yaml").read_text()
    assert await base(shell) == ["base is up to date"]


async def test_edited_kustomization_keeps_all_from_being_written(shell: Shell) -> None:
    await base(shell)
    path = shell.home / "base" / "kustomization.yaml"
    path.write_text(path.read_text() + "namePrefix: a-\n")
    before = contents(shell.home / "base")
    finished = await shell.run("manifests", "program:manager", "-o", "base", "--pod-monitor")
    assert finished.code == 2
    assert "kustomization.yaml was edited: move your changes to another file or an overlay" in " ".join(
        finished.stderr.split()
    )
    assert contents(shell.home / "base") == before


@pytest.mark.parametrize("edit", ["edited", "made by the user"])
async def test_file_that_was_edited_is_not_replaced(shell: Shell, edit: str) -> None:
    await base(shell)
    path = shell.home / "base" / "deployment.yaml"
    text = path.read_text().replace("50m", "60m") if edit == "edited" else "kind: Deployment\n"
    path.write_text(text)
    finished = await shell.run("manifests", "program:manager", "-o", "base", "--replicas", "3")
    assert finished.code == 2
    told = "was edited" if edit == "edited" else "was not made by this command"
    assert f"base/deployment.yaml {told}" in " ".join(finished.stderr.split())
    assert path.read_text() == text
    assert await base(shell, "--replicas", "3", "--overwrite") == ["changed base/deployment.yaml"]


def environment_of_user() -> dict[str, str]:
    """Return the environment of a user without this checkout on the path. What mypy knows of the package is shared."""
    return {**os.environ, "PYTHONPATH": "", "MYPY_CACHE_DIR": str(PROJECT / ".mypy_cache" / "projects")}


async def succeeds(tool: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    pytest.importorskip(tool[0])  # with the lowest versions, only what the package needs is installed
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *tool, cwd=folder, env=environment, stdout=PIPE, stderr=STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


@pytest.mark.timeout(600)
async def test_new_project_passes_its_own_checks(shell: Shell) -> None:
    finished = await shell.run("init", "website-operator", "--group", "example.com", "--kind", "Website")
    assert finished.code == 0
    assert "make check" in "\n".join(finished.lines)
    folder = shell.home / "website-operator"
    environment = environment_of_user()
    for tool in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["pytest", "-q"], ["mypy"]):
        await succeeds(tool, folder, environment)


STEP = re.compile(r"^<!-- step: (\S+) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(600)
async def test_steps_of_the_guide_lead_to_a_project_that_passes_its_checks(shell: Shell) -> None:
    await shell.run("init", "website-operator", "--group", "example.com", "--kind", "Website")
    folder = shell.home / "website-operator"
    environment = environment_of_user()
    page = (PROJECT / "docs" / "write-a-controller.md").read_text()
    steps = STEP.findall(page)
    first_reconciler = page.split("```python\n")[1].split("```")[0]
    made = (folder / "website_operator" / "reconciler.py").read_text()
    assert ast.dump(ast.parse(first_reconciler)) == ast.dump(ast.parse(made.partition('"""\n')[2]))

    assert len(steps) >= 5
    for path, code in steps:
        (folder / path).write_text(code)
    made_test = folder / "tests" / "test_website.py"
    made_test.write_text(made_test.read_text().replace("seeds=range(5)", "seeds=range(5), compare=False"))
    reconciler = folder / "website_operator" / "reconciler.py"
    reconciler.write_text(reconciler.read_text().replace("found.spec.text", "found.spec.body"))
    for path in (folder / "tests").glob("test_*.py"):
        text = path.read_text().replace('"spec": {"text": "hello"}', '"spec": {"body": "hello"}')
        text = text.replace("WEBSITES.crd()", "WEBSITES.crd(WEBHOOK)")
        path.write_text(text.replace("import (\n    WEBSITES,\n", "import (\n    WEBHOOK,\n    WEBSITES,\n"))
    for tool in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["pytest", "-q"], ["mypy"]):
        await succeeds(tool, folder, environment)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("full", "--kind", "Website"), "full is not empty"),
        (("Website", "--kind", "Website"), "NAME: expected lower-case letters"),
        (("a", "--kind", "website"), "kind: expected letters and digits, the first in upper case"),
        (("a", "--kind", "Manager"), "which every project has"),
        (("class", "--kind", "Website"), "class is a reserved word of Python"),
        (("a", "--kind", "None"), "None is a reserved word of Python"),
        (("json", "--kind", "Website"), "would hide the module json"),
        (("a", "--kind", "A"), "as, the plural of A, is a reserved word of Python"),
        (("3scale", "--kind", "Website"), "expected a letter at the beginning, since it becomes the name of a package"),
        (("web.site", "--kind", "Website"), "expected no dots, since it becomes the name of a package"),
        (("a" * 53, "--kind", "Website"), "expected at most 52 characters, since the names of pods and Leases"),
        (("a", "--kind", "Condition"), "would hide what every project imports"),
    ],
)
async def test_project_that_cannot_be_made_is_refused(shell: Shell, arguments: tuple[str, ...], told: str) -> None:
    (shell.home / "full").mkdir()
    (shell.home / "full" / "mine").write_text("mine")
    before = sorted(path.name for path in shell.home.iterdir())
    finished = await shell.run("init", *arguments, "--group", "example.com")
    assert finished.code == 2
    assert told in " ".join(finished.stderr.split())
    assert sorted(path.name for path in shell.home.iterdir()) == before
    assert os.listdir(shell.home / "full") == ["mine"]


async def test_no_kind_has_the_name_of_what_its_modules_import(shell: Shell) -> None:
    templates = PROJECT / "aioinformer/cli/projects/templates/project/{package}"
    paths = (templates / "reconciler.py.txt", templates / "{module}.py.txt")
    lines = [line for path in paths for line in path.read_text().splitlines()]
    imported = {name for line in lines for name in re.findall(r"\b[A-Z]\w+", line.partition("import ")[2])}
    assert "Request" in imported
    for kind in imported:
        finished = await shell.run("init", "a", "--group", "example.com", "--kind", kind)
        assert "would hide what every project imports" in " ".join(finished.stderr.split()), kind


async def test_commands_of_a_new_project_name_its_object(shell: Shell) -> None:
    await shell.run("init", "a", "--group", "example.com", "--kind", "NetworkPolicy")
    text = (shell.home / "a" / "README.md").read_text()
    # kubectl refuses RESOURCE/NAME beside a resource without a name.
    assert "kubectl get networkpolicy/first configmap/first\n" in text


@pytest.mark.parametrize("kind", ["VPC", "App", "Policy"])
async def test_imports_of_a_new_project_are_sorted_for_each_kind(shell: Shell, kind: str) -> None:
    await shell.run("init", "a", "--group", "example.com", "--kind", kind)
    await succeeds(["ruff", "check", "."], shell.home / "a", os.environ)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of the size of files")
async def test_full_disk_leaves_each_file_whole(shell: Shell) -> None:
    """A truncated file would count as one that the user has edited."""
    await base(shell)
    home = shell.home
    before = {path.name: path.read_bytes() for path in (home / "base").iterdir()}
    limited = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600)); "
        "from aioinformer.cli import main; main()"
    )
    for arguments in (
        ["manifests", "program:manager", "-o", "base", "--image", "shop:2", "--pod-monitor"],
        ["manifests", "program:manager", "-o", "other"],
        ["init", "shop", "--group", "example.com", "--kind", "Cart"],
        ["dashboards", "-o", "graphs"],
    ):
        done = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-c", limited, *arguments),
            cwd=home,
            env={**os.environ, "PYTHONPATH": f"{home}:{PROJECT}"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        _, told = await done.communicate()
        assert (done.returncode, "File too large" in told.decode()) == (2, True), told
    after = {path.name: path.read_bytes() for path in (home / "base").iterdir()}
    assert {name: text for name, text in after.items() if text != before.get(name)} == {}
    assert not (home / "shop").exists()
    for folder in ("other", "graphs"):
        assert [each.name for each in (home / folder).iterdir()] == []
    await base(shell, "--image", "shop:2", "--pod-monitor")
