"""`aioinformer watch` of one object, of several resources, with whole objects, and with refused selectors."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.shell import config_map

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer.testing import ApiServer
    from tests.support.shell import Shell

PLAIN = {"data": {"password": "aHVudGVyMg=="}}
SECRET = {"metadata": {"name": "s"}, **PLAIN}


@pytest.mark.parametrize("target", [("cm/b",), ("configmap", "b"), ("v1/configmaps/b",)])
async def test_single_object_is_named_as_in_kubectl(
    shell: Shell, server: ApiServer, kubeconfig: Path, target: tuple[str, ...]
) -> None:
    for name in ("a", "b"):
        server.create("configmaps", config_map(name))
    command = await shell.start("watch", *target, "--kubeconfig", kubeconfig, "--exit-after", "1")
    assert [(await command.event()).get("key") for _ in range(2)] == ["default/b", None]
    server.delete("configmaps", "a")
    server.delete("configmaps", "b")
    finished = await command.finish()
    assert [(event["event"], event.get("key")) for event in finished.events[2:]] == [("delete", "default/b")]


async def test_single_object_in_all_namespaces_is_a_usage_error(shell: Shell, kubeconfig: Path) -> None:
    finished = await shell.run("watch", "cm/b", "-A", "--kubeconfig", kubeconfig)
    assert finished.code == 2
    assert "cm/b is one object" in finished.stderr


@pytest.mark.parametrize("output", ["jsonl", "text"])
async def test_refused_field_selector_ends_with_the_servers_message(
    shell: Shell, kubeconfig: Path, output: str
) -> None:
    finished = await shell.run(
        "watch", "pods,cm", "--field-selector", "spec.colour=red", "--kubeconfig", kubeconfig, "-o", output
    )
    assert finished.code == 2
    assert "the server refuses fieldSelector=spec.colour=red" in finished.stderr
    assert "field label not supported" in finished.stderr


async def test_failing_server_is_no_refusal(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    async with server.fault("server_error", resources=["configmaps"]):
        command = await shell.start("watch", "cm/b", "--kubeconfig", kubeconfig, "--until-synced")
        await command.says("500")
    assert (await command.finish()).code == 0


async def test_lines_of_several_resources_name_the_resource(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    server.create("configmaps", config_map("a"))
    finished = await shell.run("watch", "cm,deploy,ns/default", "--kubeconfig", kubeconfig, "--until-synced")
    printed = sorted((event["resource"], event["event"], event.get("key", "")) for event in finished.events)
    assert printed == [
        ("configmaps", "add", "default/a"),
        ("configmaps", "synced", ""),
        ("deployments.apps", "synced", ""),
        ("namespaces", "add", "default"),
        ("namespaces", "synced", ""),
    ]
    assert finished.code == 0


async def test_exit_after_counts_all_resources_together(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    command = await shell.start(
        "watch", "cm,secrets", "--kubeconfig", kubeconfig, "--exit-after", "2", "--dump-on-exit"
    )
    for _ in range(2):
        await command.until("synced")
    server.create("configmaps", config_map("a"))
    assert (await command.event())["resource"] == "configmaps"
    server.create("secrets", SECRET)
    finished = await command.finish()
    assert [(event["resource"], event["event"]) for event in finished.events[2:]] == [
        ("configmaps", "add"),
        ("secrets", "add"),
        ("configmaps", "store"),
        ("secrets", "store"),
    ]


async def test_summary_of_several_resources_has_totals(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    server.create("configmaps", config_map("a"))
    server.create("secrets", SECRET)
    finished = await shell.run("watch", "cm,secrets", "--kubeconfig", kubeconfig, "-o", "summary", "--until-synced")
    (figures,) = finished.events
    assert (figures["adds"], figures["objects"]) == (2, 2)
    each = figures.pop("resources")
    assert [(one["resource"], one["adds"], one["objects"]) for one in each] == [("configmaps", 1, 1), ("secrets", 1, 1)]
    assert [set(one) - {"resource"} for one in each] == [set(figures)] * 2
    assert figures["sync_seconds"] >= max(one["sync_seconds"] for one in each)
    assert {one["max_rss_kib"] for one in each} == {None}


async def test_unknown_resources_are_all_reported(shell: Shell, kubeconfig: Path) -> None:
    finished = await shell.run("watch", "gizmos,gadgets", "--kubeconfig", kubeconfig)
    assert finished.code == 2
    assert "no resource 'g" in finished.stderr


async def test_json_lines_have_the_object_as_sent_by_the_server(
    shell: Shell, server: ApiServer, kubeconfig: Path
) -> None:
    server.create("configmaps", config_map("a", big="ä\u202e"))
    command = await shell.start("watch", "cm", "--kubeconfig", kubeconfig, "-o", "json", "--dump-on-exit")
    await command.until("synced")
    changed = server.patch("configmaps", "a", {"data": {"x": "1"}})
    await command.until("update")
    server.create("configmaps", config_map("b"))
    await command.until("add")
    gone = server.delete("configmaps", "b")
    await command.until("delete")
    finished = await command.finish(signal.SIGTERM)
    add, synced, update, _, delete, store = finished.events
    assert add["object"]["data"] == {"big": "ä\u202e"}
    assert "\u202e" not in finished.lines[0]
    assert "object" not in synced
    assert update["object"] == changed
    assert delete["object"]["metadata"]["uid"] == gone["metadata"]["uid"]
    assert delete["object"]["metadata"]["resourceVersion"] == delete["resourceVersion"]
    assert store["object"] == changed


def words(finished: Any) -> str:
    return "\n".join([*finished.lines, finished.stderr])


@pytest.mark.parametrize("output", ["json", "text", "jsonl"])
async def test_values_of_secrets_are_redacted(shell: Shell, server: ApiServer, kubeconfig: Path, output: str) -> None:
    server.create("secrets", SECRET)
    command = await shell.start(
        "watch", "secrets,cm", "--kubeconfig", kubeconfig, "-o", output, "--exit-after", "2", "--dump-on-exit"
    )
    await command.says("configmaps: watching")
    await command.says("secrets: watching")
    server.patch("secrets", "s", {"data": {"password": "aHVudGVyMw=="}})
    server.delete("secrets", "s")
    finished = await command.finish()
    assert "aHVudGVy" not in words(finished)
    if output == "json":
        # The lines of two resources have no order: `synced` of the ConfigMaps may come first.
        shown = [event["object"]["data"] for event in finished.events if "object" in event]
        assert shown[0] == {"password": "<redacted>"}


async def test_show_secrets_prints_values_of_secrets(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    server.create("secrets", SECRET)
    finished = await shell.run(
        "watch", "secrets", "--kubeconfig", kubeconfig, "-o", "json", "--until-synced", "--show-secrets"
    )
    assert finished.events[0]["object"]["data"] == PLAIN["data"]
