"""`aioinformer watch` as a process: its lines, one or several targets, whole objects, and selectors."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

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
    stored = [(event["key"], event["resourceVersion"]) for event in finished.events if event["event"] == "store"]
    assert stored == sorted(replayed.items())
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


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["cm/b", "-A"], "cm/b is one object"),
        (["gizmos"], "no resource 'gizmos'"),
        (["gizmos,gadgets"], "no resource 'g"),
        (["networking.k8s.io/v1beta1/ipaddresses"], "no resource 'networking.k8s.io/v1beta1/ipaddresses'"),
        (["v1/componentstatuses"], "componentstatuses has no verb "),
        (["selfsubjectreviews"], "selfsubjectreviews has no verb "),
    ],
)
async def test_resource_that_cannot_be_watched_is_an_error(
    shell: Shell, kubeconfig: Path, arguments: list[str], expected: str
) -> None:
    finished = await shell.run("watch", *arguments, "--kubeconfig", kubeconfig)
    assert finished.code == 2
    assert expected in finished.stderr


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
