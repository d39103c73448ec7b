"""`aioinformer watch` as a process."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer
from tests.support.shell import config_map

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Shell


def set_namespace(kubeconfig: Path, namespace: str) -> None:
    content = json.loads(kubeconfig.read_text())
    content["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig.write_text(json.dumps(content))


async def test_initial_list_is_followed_by_synced_with_its_version(
    shell: Shell, server: ApiServer, kubeconfig: Path
) -> None:
    stored = [server.create("configmaps", config_map(f"c{number}")) for number in range(3)]
    finished = await shell.run("watch", "cm", "-A", "--kubeconfig", kubeconfig, "--until-synced")
    assert finished.code == 0
    assert finished.events == [
        {
            "event": "add",
            "key": f"default/{obj['metadata']['name']}",
            "uid": obj["metadata"]["uid"],
            "resourceVersion": obj["metadata"]["resourceVersion"],
            "initial": True,
        }
        for obj in stored
    ] + [{"event": "synced", "count": 3, "resourceVersion": server.resource_version}]


async def test_empty_list_is_synced(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    finished = await shell.run("watch", "configmaps", "-A", "--kubeconfig", kubeconfig, "--until-synced")
    assert finished.events == [{"event": "synced", "count": 0, "resourceVersion": server.resource_version}]


async def test_lines_of_changes_have_all_fields(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    command = await shell.start("watch", "configmaps", "-A", "--kubeconfig", kubeconfig, "--exit-after", "3")
    await command.until("synced")
    made = server.create("configmaps", config_map("a"))["metadata"]
    changed = server.patch("configmaps", "a", {"data": {"x": "1"}})["metadata"]
    server.delete("configmaps", "a")
    finished = await command.finish()
    add, update, delete = finished.events[1:]
    assert add == {
        "event": "add",
        "key": "default/a",
        "uid": made["uid"],
        "resourceVersion": made["resourceVersion"],
        "initial": False,
    }
    assert update == {
        "event": "update",
        "key": "default/a",
        "uid": made["uid"],
        "resourceVersion": changed["resourceVersion"],
        "oldResourceVersion": made["resourceVersion"],
    }
    assert delete == {
        "event": "delete",
        "key": "default/a",
        "uid": made["uid"],
        "resourceVersion": server.resource_version,
        "tombstone": False,
    }
    assert finished.code == 0


async def test_exit_after_prints_exactly_that_many(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    server.create("configmaps", config_map("a"))
    command = await shell.start("watch", "cm", "--kubeconfig", kubeconfig, "--exit-after", "2")
    await command.until("synced")
    for number in range(20):
        server.patch("configmaps", "a", {"data": {"x": str(number)}})
    finished = await command.finish()
    assert [event["event"] for event in finished.events] == ["add", "synced", "update", "update"]
    assert finished.code == 0


async def test_dump_is_sorted_by_key(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    for name in ("b", "c", "a"):
        server.create("configmaps", config_map(name))
    finished = await shell.run(
        "watch", "cm", "-A", "--kubeconfig", kubeconfig, "--until-synced", "--dump-on-exit", "-o", "text"
    )
    dump = [json.loads(line) for line in finished.lines if line.startswith("{")]
    assert [event["key"] for event in dump] == ["default/a", "default/b", "default/c"]
    assert dump[0] == {
        "event": "store",
        "key": "default/a",
        "uid": server.get("configmaps", "a")["metadata"]["uid"],
        "resourceVersion": server.get("configmaps", "a")["metadata"]["resourceVersion"],
    }


async def test_dump_matches_the_printed_notifications(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    command = await shell.start("watch", "cm", "--kubeconfig", kubeconfig, "--dump-on-exit")
    await command.until("synced")
    for number in range(300):
        server.create("configmaps", config_map(f"c{number}"))
        if number % 3 == 0:
            server.delete("configmaps", f"c{number}")
    finished = await command.finish(signal.SIGTERM)
    replayed: dict[str, str] = {}
    for event in finished.events:
        if event["event"] in ("add", "update"):
            replayed[event["key"]] = event["resourceVersion"]
        elif event["event"] == "delete":
            del replayed[event["key"]]
    assert {e["key"]: e["resourceVersion"] for e in finished.events if e["event"] == "store"} == replayed
    assert finished.code == 0


async def test_summary_is_one_line_of_figures(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    server.create("configmaps", config_map("a"))
    command = await shell.start(
        "watch", "cm", "--kubeconfig", kubeconfig, "-o", "summary", "--exit-after", "3", "--dump-on-exit"
    )
    await command.says("watching")
    server.create("configmaps", config_map("b"))
    server.patch("configmaps", "b", {"data": {"x": "1"}})
    server.delete("configmaps", "a")
    finished = await command.finish()
    *store, figures = finished.events
    assert [event["key"] for event in store] == ["default/b"]
    assert list(figures) == [
        "adds",
        "updates",
        "deletes",
        "sync_seconds",
        "watch_seconds",
        "objects",
        "max_rss_kib",
        "loop_lag_ms",
    ]
    assert (figures["adds"], figures["updates"], figures["deletes"], figures["objects"]) == (2, 1, 1, 1)
    assert figures["sync_seconds"] > 0
    assert figures["watch_seconds"] >= 0
    assert figures["max_rss_kib"] > 10_000
    assert 0 <= figures["loop_lag_ms"]["p50"] <= figures["loop_lag_ms"]["p99"] <= figures["loop_lag_ms"]["max"]


async def test_summary_without_sync_has_nulls(shell: Shell) -> None:
    finished = await shell.run(
        "watch", "v1/pods", "--server", "http://127.0.0.1:1", "-o", "summary", "--timeout", "0.2", "--until-synced"
    )
    (figures,) = finished.events
    assert (figures["sync_seconds"], figures["watch_seconds"], figures["objects"]) == (None, None, 0)
    assert finished.code == 1
    assert "--timeout: 0.2 s are over; not synced: pods" in finished.stderr


async def test_namespace_of_the_context_is_the_default(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    server.create("namespaces", {"metadata": {"name": "other"}})
    server.create("configmaps", config_map("here"))
    server.create("configmaps", config_map("there", "other"))
    set_namespace(kubeconfig, "other")
    keys = {}
    for name, flags in {"default": (), "-n": ("-n", "default"), "-A": ("-A",)}.items():
        finished = await shell.run("watch", "cm", *flags, "--until-synced", KUBECONFIG=str(kubeconfig))
        keys[name] = sorted(event["key"] for event in finished.events[:-1])
    assert keys == {"default": ["other/there"], "-n": ["default/here"], "-A": ["default/here", "other/there"]}


async def test_key_of_a_cluster_scoped_object_is_its_name(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    finished = await shell.run("watch", "ns", "-n", "default", "--kubeconfig", kubeconfig, "--until-synced")
    assert "kube-system" in [event.get("key") for event in finished.events]


@pytest.mark.parametrize("selection", [("-l", "app in (b,x)"), ("--field-selector", "metadata.name=b")])
async def test_selectors_are_applied_by_the_server(
    shell: Shell, server: ApiServer, kubeconfig: Path, selection: tuple[str, str]
) -> None:
    server.create("configmaps", config_map("a"))
    server.create("configmaps", config_map("b"))
    finished = await shell.run("watch", "cm", *selection, "--kubeconfig", kubeconfig, "--until-synced")
    assert [event["key"] for event in finished.events[:-1]] == ["default/b"]


async def test_resync_is_an_update_with_equal_versions(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    version = server.create("configmaps", config_map("a"))["metadata"]["resourceVersion"]
    finished = await shell.run(
        "watch", "cm", "--kubeconfig", kubeconfig, "--resync", "0.5", "--exit-after", "1", "--metadata-only"
    )
    assert "raised to 1 s" in finished.stderr
    resync = finished.events[-1]
    assert (resync["event"], resync["resourceVersion"], resync["oldResourceVersion"]) == ("update", version, version)


async def test_text_has_one_line_for_each_notification(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    server.create("configmaps", config_map("a", y="0"))
    command = await shell.start("watch", "cm", "--kubeconfig", kubeconfig, "-o", "text", "--exit-after", "1")
    assert (await command.line()).split()[1:] == ["add", "default/a"]
    assert (await command.line()).split()[1:3] == ["synced", "1"]
    server.patch("configmaps", "a", {"data": {"x": "1"}})
    assert (await command.line()).split()[1:] == ["update", "default/a", "data.x", "=", "1"]


async def test_server_by_url_needs_no_kubeconfig(shell: Shell, server: ApiServer) -> None:
    finished = await shell.run("watch", "v1/configmaps", "--server", server.url, "--until-synced")
    assert finished.code == 0
    assert not [entry for entry in server.requests if entry.verb == "discovery"]


async def test_resource_missing_twice_is_an_error(shell: Shell, kubeconfig: Path) -> None:
    finished = await shell.run("watch", "gizmos", "--kubeconfig", kubeconfig)
    assert finished.code == 2
    assert "no resource 'gizmos'" in finished.stderr


async def test_built_in_resource_that_is_not_served_is_an_error(
    shell: Shell, server: ApiServer, kubeconfig: Path
) -> None:
    finished = await shell.run("watch", "networking.k8s.io/v1beta1/ipaddresses", "--kubeconfig", kubeconfig)
    assert finished.code == 2
    assert "no resource 'networking.k8s.io/v1beta1/ipaddresses'" in finished.stderr


@pytest.mark.parametrize("resource", ["v1/componentstatuses", "selfsubjectreviews"])
async def test_resource_without_watch_is_an_error(shell: Shell, kubeconfig: Path, resource: str) -> None:
    finished = await shell.run("watch", resource, "--kubeconfig", kubeconfig)
    assert finished.code == 2
    assert f"{resource.rpartition('/')[2]} has no verb " in finished.stderr


async def test_watch_waits_for_the_server_to_start(shell: Shell, unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    command = await shell.start("watch", "cm", "--server", url, "--until-synced")
    await command.says("Connection refused")
    async with ApiServer(port=unused_tcp_port):
        finished = await command.finish()
    assert finished.code == 0
    assert finished.events[-1]["event"] == "synced"


async def test_watch_retries_after_401(shell: Shell, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("wrong\n")
    async with ApiServer(tokens={"right": "alice"}) as guarded:
        command = await shell.start("watch", "cm", "--server", guarded.url, "--token-file", token, "--until-synced")
        await command.says("401")
        token.write_text("right\n")
        finished = await command.finish()
    assert finished.code == 0


async def test_condition_not_met_in_time_ends_with_1(shell: Shell, kubeconfig: Path) -> None:
    finished = await shell.run(
        "watch", "cm", "--kubeconfig", kubeconfig, "--exit-after", "1", "--timeout", "3", "--dump-on-exit"
    )
    assert finished.code == 1
    assert "--timeout: 3 s are over; 1 of --exit-after 1 notifications are missing" in finished.stderr
