"""Contents of objects and credentials are in no log line, error, metric, or text of this package's objects.

One word is the content of Secrets, another one the token. The tests provoke all output: all loggers at their lowest
level, every fault of the server, handlers and transforms that raise, every `repr`.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from pprint import pformat
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from aioinformer import (
    DeletedFinalStateUnknown,
    HttpTransport,
    Lister,
    ListWatch,
    Resource,
    RunOptions,
    SharedIndexInformer,
    SharedInformerFactory,
)
from aioinformer.backoff import BackoffOptions
from aioinformer.cache import Storage
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import decode_record
from aioinformer.handlers.notifications import AddNotification, DeleteNotification, UpdateNotification
from aioinformer.metrics import InformerName
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.queue import Delta, Deltas, DeltaType
from aioinformer.testing import FAULTS, ApiServer, Fault
from aioinformer.transport.auth.kubeconfig import load_context
from tests.support.hostile_streams import LIST, PAGES, PLACES, STREAM, STREAMS, VALUES, WATCH, run
from tests.support.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer.cache import StorageTier

CONTENT, TOKEN = "hunter2-in-the-secret", "hunter2-in-the-token"
ENCODED = base64.b64encode(CONTENT.encode()).decode()
WORDS = (CONTENT, ENCODED, TOKEN)
QUICK = RunOptions(
    backoff=BackoffOptions(initial=0.01, cap=0.02),
    idle_timeout=1.0,
    max_frame=500_000,
    page_size=2,
)


def secret(name: str, **metadata: Any) -> dict[str, Any]:
    applied = json.dumps({"data": {"password": ENCODED}})
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    return {"metadata": {"name": name, "annotations": annotations, **metadata}, "data": {"password": ENCODED}}


def assert_silent(text: str) -> None:
    told = [line[:300] for line in text.splitlines() if any(word in line for word in WORDS)]
    assert told == []


@contextmanager
def everything_logged() -> Iterator[io.StringIO]:
    """The output of all loggers, tracebacks included."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s %(args)r"))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    try:
        yield stream
    finally:
        asyncio.get_running_loop().set_debug(False)
        root.setLevel(level)
        root.removeHandler(handler)


async def struck(fault: Fault) -> None:
    while not fault.strikes:  # noqa: ASYNC110 - faults tell nobody that they strike
        await asyncio.sleep(0.005)


class Raising:
    """A handler that always raises."""

    def on_add(self, obj: Any) -> None:
        raise ValueError("cannot cope")

    async def on_update(self, old: Any, new: Any) -> None:
        await asyncio.sleep(0)
        raise ValueError("cannot cope")

    def on_delete(self, obj: Any) -> None:
        raise ValueError("cannot cope")


FAULT_PARAMETERS: dict[str, dict[str, Any]] = {
    "garbage": {"line": '{"type":"MODIFIED","object":{"metadata":{"name":"x"},"data":"' + CONTENT},
    "throttle": {"retry_after": 0},
    "unavailable": {"retry_after": 0},
    "undecodable_object": {"namespace": "default", "name": "s0"},
    "huge_line": {"size": 600_000},
    "restore": {"back": 1},
}


@pytest.mark.parametrize("storage", [Storage.BYTES, Storage.DICT])
async def test_faults_do_not_reveal_secrets(storage: StorageTier) -> None:
    resource: Resource[Any] = core_v1.SECRETS
    registry = CollectorRegistry()
    said: list[str] = []
    with everything_logged() as log, InformerName("shop") as name:
        async with ApiServer(tokens={TOKEN: "somebody"}, bookmark_interval=0.1) as server:
            for number in range(5):
                server.create("secrets", secret(f"s{number}"))
            async with HttpTransport(server.url, token=TOKEN, header_timeout=0.5) as transport:
                informer: SharedIndexInformer[Any] = SharedIndexInformer(
                    ListWatch(transport, resource),
                    storage=storage,
                    options=QUICK,
                    metrics=PrometheusMetrics(registry),
                    identifier=name.with_resource(resource),
                )
                informer.set_watch_error_handler(lambda error: said.extend(traceback.format_exception(error)))
                informer.add_event_handler(Raising())
                informer.add_state_handler(lambda state: said.append(repr(state)))
                async with informer:
                    await informer.wait_for_sync()
                    for fault in sorted(FAULTS):
                        async with server.fault(fault, **FAULT_PARAMETERS.get(fault, {})) as failing:
                            if FAULTS[fault].sort in ("answer", "transport"):
                                await server.fault("watch_close", times=1)
                            server.patch("secrets", "s1", {"data": {"more": ENCODED}})
                            server.patch("secrets", "s1", {"data": {"more": None}})
                            with suppress(TimeoutError):
                                async with asyncio.timeout(0.2):
                                    await struck(failing)
                            await asyncio.sleep(0.02)
                    said += [repr(informer), repr(transport), str(informer.state)]
                    said.append(generate_latest(registry).decode())
                    said += [repr(task) for task in asyncio.all_tasks()]
    assert_silent(log.getvalue())
    assert_silent("\n".join(said))
    assert any("backing_off" in line for line in said), "the faults have shown nothing"


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value[:12]))
@pytest.mark.parametrize("what", PLACES)
def test_errors_never_quote_objects(what: str, value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    body, options = {"list": (LIST, PAGES), "stream": (STREAM, STREAMS), "watch": (WATCH, PAGES)}[what]
    body = body.replace(b'"metadata": {"name"', b'"data": {"password": "%b"}, "metadata": {"name"' % ENCODED.encode())
    body = body.replace(b'"metadata":{"name"', b'"data":{"password":"%b"},"metadata":{"name"' % ENCODED.encode())
    assert ENCODED.encode() in body
    before = [([LIST], "end")] if what == "watch" else []
    spoilt = [body.replace(place, value, 1) for place in PLACES[what]]
    errors = run(*(each for one in spoilt for each in [*before, ([one], "end")]), options=options)
    assert_silent("\n".join([caplog.text, *("".join(traceback.format_exception(error)) for error in errors)]))


def spellings(thing: Any) -> Iterator[str]:
    yield from (repr(thing), str(thing), f"{thing}", f"{[thing]}", pformat(thing))


@pytest.mark.parametrize("known_by", ["resource", "kind"])
async def test_secret_without_a_type_is_recognised(known_by: str) -> None:
    named = {"resource": ("secrets", "Thing"), "kind": ("things", "Secret")}[known_by]
    objects: ObjectType[Any] = ObjectType(Resource("", "v1", *named), storage=Storage.DICT)
    body = {**secret("s", uid="u", resourceVersion="1"), "stringData": {"password": CONTENT}}
    obj = objects.to_view(objects.on_arrival(decode_record(json.dumps(body).encode())))
    assert obj["data"]["password"] == ENCODED
    for text in spellings(obj):
        assert_silent(text)


@pytest.mark.parametrize("storage", Storage)
async def test_text_of_a_secret_hides_its_data(storage: StorageTier) -> None:
    fields = ["data"] if storage == Storage.PROJECTION else []
    async with ApiServer() as server, HttpTransport(server.url) as transport:
        server.create("secrets", secret("s"))
        factory = SharedInformerFactory(transport)
        accessor = factory.core.v1.secrets
        informer: SharedIndexInformer[Any] = accessor.informer(storage=storage, fields=fields)
        async with factory:
            await factory.wait_for_cache_sync()
            lister: Lister[Any] = informer.lister()
            obj = lister.namespaced("default").get("s")
            record = decode_record(json.dumps({**secret("s", namespace="default"), "type": "Opaque"}).encode())
            delta: Delta[Any] = Delta(DeltaType.ADDED, obj)
            things = [
                *(obj, record, delta, Deltas([delta, Delta(DeltaType.SYNC, record)]), lister, informer.get_store()),
                *(AddNotification(obj), UpdateNotification(obj, obj), DeleteNotification(obj)),
                *(DeletedFinalStateUnknown("default/s", obj), factory, accessor, informer),
            ]
            things.append(obj["metadata"] if isinstance(obj, Mapping) else obj.metadata)
            for thing in things:
                for text in spellings(thing):
                    assert_silent(text)


async def test_failing_callback_is_reported_by_exception_type() -> None:
    resource: Resource[Any] = core_v1.SECRETS

    def refuse(obj: Any) -> Any:
        raise ValueError(f"what am I to do with {obj.to_dict()}?")

    states: list[str] = []
    errors: list[Exception] = []
    async with ApiServer() as server, HttpTransport(server.url) as transport:
        server.create("secrets", secret("s"))
        informer: SharedIndexInformer[Any] = SharedIndexInformer(ListWatch(transport, resource), transform=refuse)
        informer.set_watch_error_handler(errors.append)
        informer.add_state_handler(lambda state: states.append(repr(state)))
        async with informer:
            await informer.wait_for_sync()
    assert "1 object cannot be decoded" in str(states)
    assert_silent("\n".join([*states, *map(str, errors), *map(repr, errors)]))


async def test_watch_command_hides_secret_data(tmp_path: Path) -> None:
    async with ApiServer(tokens={TOKEN: "somebody"}) as server:
        server.create("secrets", secret("s"))
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        for form in ("text", "jsonl"):
            shell = Shell(tmp_path)
            command = await shell.start(
                *("watch", "secrets", "-A", "-o", form, "--kubeconfig", str(kubeconfig), "--exit-after", "1"),
                *("--dump-on-exit", "--timeout", "20"),
            )
            await command.line()
            kind = base64.b64encode(form.encode()).decode()
            server.patch("secrets", "s", {"data": {"password": ENCODED, "kind": kind}})
            finished = await command.finish()
            await shell.close()
            assert finished.code == 0
            assert_silent("\n".join(finished.lines) + finished.stderr)


def test_kubeconfig_objects_hide_credentials(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    for user in ({"token": TOKEN, "client-key-data": ENCODED}, {"username": "u", "password": CONTENT}):
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
            "users": [{"name": "u", "user": user}],
        }
        file.write_text(json.dumps(content))
        context = load_context([file], None)
        for thing in (context, copy(context)):
            for text in spellings(thing):
                assert_silent(text)
