"""Field managers that own a field together in two versions, and give it up: ours as kube-apiserver.

Server-side apply removes a field when its last owner no longer states it. With a conversion, it is the same for fields
that are one of the other version, as long as somebody owns all of them.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller import Manager
from aioinformer.errors import AioinformerError
from aioinformer.models import apiextensions_v1
from aioinformer.webhooks import WebhookServer
from tests.support.converted_classes import gates
from tests.support.limits import watch_certificates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer import Client

Versions = tuple[Any, Any]
#: Of the old version, and of the stored one.
WHOLE: dict[str, Any] = {"address": "web/eu"}
PARTS: dict[str, Any] = {"host": "web", "zone": "eu"}
OTHER: dict[str, Any] = {"weight": "7"}


@pytest.fixture
async def versions(client: Client, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Versions]:
    """Serve a resource that a manager converts; provide clients of its old version and of the stored one."""
    watch_certificates(monkeypatch, 0.2)
    stored, old = gates(f"g{uuid.uuid4().hex[:12]}.example.com")
    ours = WebhookServer("gates", client.namespace, port=0, host="127.0.0.1", hosts=("127.0.0.1",))
    manager = Manager("gates", client=client.transport, webhooks=ours)
    manager.convert(stored)
    definitions = client.resource(apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(60))
        await stack.enter_async_context(manager)
        body = stored.crd({"url": f"https://127.0.0.1:{manager.admission.port}/convert"})
        await definitions.create(body)
        stack.push_async_callback(definitions.delete, body["metadata"]["name"])
        both = client.resource(old), client.resource(stored)
        await _until_converted(*both)
        yield both


async def _until_converted(old: Any, stored: Any) -> None:
    while True:
        try:
            await old.apply(gate("probe", size=1), field_manager="probe")
            await stored.get("probe")
        except AioinformerError:  # the definition is not served yet, or the CA is not in it
            await asyncio.sleep(0.1)
        else:
            return


def gate(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


async def owners(client: Any, name: str = "a") -> dict[str, list[str]]:
    """Return the fields of the spec that each manager owns."""
    found = (await client.get(name)).metadata.managed_fields
    owned = {each.manager: (each.fields_v1 or {}).get("f:spec", {}) for each in found}
    return {name: sorted(each.removeprefix("f:") for each in fields if each != ".") for name, fields in owned.items()}


@pytest.mark.parametrize("first", ["old", "stored"])
async def test_field_stays_while_the_other_version_has_an_owner(versions: Versions, first: str) -> None:
    old, stored = versions
    applies = [(old, "of-old", {**WHOLE, **OTHER}), (stored, "of-stored", PARTS)]
    for client, manager, spec in applies if first == "old" else reversed(applies):
        await client.apply(gate(**spec), field_manager=manager)
    assert await owners(old) == {"of-old": ["address", "weight"], "of-stored": ["host", "zone"]}
    # The owner in the old version gives the whole up.
    await old.apply(gate(**OTHER), field_manager="of-old")
    spec = (await stored.get("a")).spec
    assert (spec.host, spec.zone, spec.weight) == ("web", "eu", 7)
    assert await owners(old) == {"of-old": ["weight"], "of-stored": ["host", "zone"]}
    assert (await old.get("a")).spec.address == "web/eu"
    # Then the last owner does.
    await stored.apply(gate(), field_manager="of-stored")
    spec = (await stored.get("a")).spec
    assert (spec.host, spec.zone, spec.weight) == (None, None, 7)


async def test_parts_stay_while_the_old_version_has_an_owner(versions: Versions) -> None:
    old, stored = versions
    await stored.apply(gate(**PARTS), field_manager="of-stored")
    await old.apply(gate(**WHOLE), field_manager="of-old")
    await stored.apply(gate(), field_manager="of-stored")
    spec = (await stored.get("a")).spec
    assert (spec.host, spec.zone) == ("web", "eu")
    await old.apply(gate(**OTHER), field_manager="of-old")
    spec = (await stored.get("a")).spec
    assert (spec.host, spec.zone) == (None, None)


async def test_one_part_that_is_given_up_stays_while_the_whole_has_an_owner(versions: Versions) -> None:
    old, stored = versions
    await old.apply(gate(**WHOLE), field_manager="of-old")
    await stored.apply(gate(**PARTS), field_manager="of-stored")
    await stored.apply(gate(host="web"), field_manager="of-stored")
    spec = (await stored.get("a")).spec
    assert (spec.host, spec.zone) == ("web", "eu")
    assert (await old.get("a")).spec.address == "web/eu"
    # The old version cannot have one part alone: both go with the whole, until their owner applies again.
    await old.apply(gate(**OTHER), field_manager="of-old")
    spec = (await stored.get("a")).spec
    assert (spec.host, spec.zone) == (None, None)
    await stored.apply(gate(host="web"), field_manager="of-stored")
    spec = (await stored.get("a")).spec
    assert (spec.host, spec.zone, spec.weight) == ("web", None, 7)
