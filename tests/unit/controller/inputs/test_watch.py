"""Watched objects: the keys that a function or an index maps them to."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import SharedIndexInformer
from aioinformer.controller import References, Watch
from aioinformer.errors import UsageError
from aioinformer.models import core_v1
from aioinformer.resources import ObjectName
from tests.support.collection import Collection
from tests.support.virtual_time import settled
from tests.unit.controller.inputs.inputs import FLEETS, WIDGETS, Requests, widget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer import Resource

SECRETS: Resource[Any] = core_v1.SECRETS


async def found() -> str:
    return "web"


class World:
    """A primary and a watched kind, both with their informers."""

    def __init__(
        self, to: Any, primary: Resource[Any] = WIDGETS, watched: Resource[Any] = SECRETS, decoder: Any = None
    ) -> None:
        self.primary, self.secrets = Collection(resource=primary), Collection(resource=watched)
        self.widgets = SharedIndexInformer(self.primary, decoder=decoder)
        self.watched = SharedIndexInformer(self.secrets)
        self.requests = Requests()
        self.declared: Watch[Any] = Watch(watched, to=to)
        self.declared.attach(self.watched, self.widgets, self.requests)

    async def __aenter__(self) -> World:
        await self.widgets.__aenter__()
        await self.watched.__aenter__()
        await settled()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.watched.__aexit__(None, None, None)
        await self.widgets.__aexit__(None, None, None)

    async def keys(self) -> list[str]:
        """Return the keys that were enqueued."""
        return [line.partition(": ")[0] for line in await self.requests.new()]


@pytest.mark.behaviour("C-29")
@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, []),
        ("", []),
        ([], []),
        ("shop/web", ["shop/web"]),
        ("web", ["default/web"]),
        (ObjectName("shop", "web"), ["shop/web"]),
        (widget("web"), ["shop/web"]),
        ({"metadata": {"namespace": "shop", "name": "web"}}, ["shop/web"]),
        (
            ["shop/web", "web", None, ObjectName("shop", "a"), widget("b")],
            ["shop/web", "default/web", "shop/a", "shop/b"],
        ),
        (("shop/web", "shop/web"), ["shop/web"]),
        ((each for each in ("shop/web", "bank/web")), ["shop/web", "bank/web"]),
    ],
)
async def test_functions_return_keys_in_any_form(result: Any, expected: list[str]) -> None:
    async with World(lambda secret: result) as world:
        world.secrets.put("token")
        assert await world.keys() == expected


class Named:
    """An object of a class of the user."""

    def __init__(self, name: str, namespace: str) -> None:
        self.metadata = {"name": name, "namespace": namespace}


@pytest.mark.behaviour("C-29")
@pytest.mark.parametrize(
    "result", [Named("web", "shop"), [Named("web", "shop")], widget(metadata={"namespace": "shop"})]
)
async def test_functions_return_objects_of_any_class(result: Any) -> None:
    async with World(lambda secret: result) as world:
        world.secrets.put("token")
        assert await world.keys() == ["shop/web"]


@pytest.mark.behaviour("C-29")
async def test_functions_see_the_states_before_and_after() -> None:
    async with World(lambda secret: secret.metadata.labels.get("for", [])) as world:
        world.secrets.put("token", metadata={"labels": {"for": "web"}})
        assert await world.keys() == ["default/web"]
        world.secrets.put("token", metadata={"labels": {"for": "shop"}})
        assert await world.keys() == ["default/web", "default/shop"]
        world.secrets.delete("token")
        assert await world.keys() == ["default/shop"]


@pytest.mark.behaviour("C-31")
@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda: 7, "returned int; return keys ('namespace/name'), ObjectNames or objects: one, several or None"),
        (lambda: b"shop/web", "returned bytes; return keys"),
        (lambda: [7], "returned int in a sequence; return keys"),
        (lambda: [("shop", "web")], "returned tuple in a sequence; return keys"),
        (object, "returned object; return keys"),
        (found, "returned coroutine; return keys"),
        (lambda: "a/b/c", "returned a text with 2 slashes that is no key"),
        (lambda: "/web", "returned a text with 1 slashes that is no key"),
        (lambda: {"name": "web"}, "dict has no key: give its class metadata with namespace and name"),
        (lambda: ObjectName("", "web"), "returned a name without a namespace, and widgets.example.com are namespaced"),
    ],
)
async def test_wrong_results_are_named(
    result: Callable[[], Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with World(lambda secret: result()) as world:
        world.secrets.put("token")
        assert await world.keys() == []
    assert "Watch(secrets): default/token, its keys cannot be found; errors so far: 1" in caplog.text
    assert message in caplog.text


@pytest.mark.behaviour("C-30")
async def test_an_error_affects_one_object(caplog: pytest.LogCaptureFixture) -> None:
    def to_widget(secret: Any) -> str:
        return str(secret.metadata.annotations["for"])

    async with World(to_widget) as world:
        world.secrets.put("token", data={"password": "aHVudGVyMg=="})
        world.secrets.put("other", metadata={"annotations": {"for": "web"}})
        for number in range(8):
            world.secrets.put(f"token-{number}")
        assert await world.keys() == ["default/web"]
        assert world.declared.errors == 9
        world.secrets.put("token", metadata={"annotations": {"for": "shop"}})  # the state before has none
        assert await world.keys() == ["default/shop"]
        assert world.declared.errors == 11
        await asyncio.sleep(300)
        assert await world.keys() == []
        assert world.declared.lost == 9
    errors = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert sum(record.exc_info is not None for record in errors) == 2  # in the first minute, and in the second one
    assert re.match(r"Watch\(secrets\) raised 6\d more errors within 60 s", errors[1].message)
    assert errors[0].message.startswith("Watch(secrets): default/token, ")
    assert "hunter2" not in caplog.text
    assert "aHVudGVyMg" not in caplog.text


@pytest.mark.behaviour("C-118")
@pytest.mark.parametrize("end", ["", "deleted", "removed"])
async def test_state_whose_keys_are_not_found_is_mapped_again(end: str) -> None:
    broken = False

    def to_widget(secret: Any) -> str:
        if broken:
            raise KeyError("another cache has not synced")
        return str(secret.metadata.annotations["for"])

    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(World(to_widget))
        world.secrets.put("token", metadata={"annotations": {"for": "web"}})
        assert await world.keys() == ["default/web"]
        broken = True
        world.secrets.put("token", metadata={"annotations": {"for": "shop"}})
        if end == "deleted":
            world.secrets.delete("token")
        assert await world.keys() == []
        if end == "removed":  # with its informer
            await stack.aclose()
        broken = False
        await asyncio.sleep(2)
        assert set(await world.keys()) == (set() if end == "removed" else {"default/web", "default/shop"})
        await asyncio.sleep(300)
        assert await world.keys() == []
        assert world.declared.lost == 0


@pytest.mark.behaviour("C-32")
async def test_keys_of_cluster_scoped_objects_have_no_namespace(caplog: pytest.LogCaptureFixture) -> None:
    async with World(lambda secret: ["north", "default/south"], FLEETS) as world:
        world.secrets.put("token")
        assert await world.keys() == ["north"]
    assert "returned a key with a namespace, and fleets.example.com are cluster-scoped" in caplog.text
    async with World(References("spec.fleet"), watched=FLEETS) as world:
        world.primary.put("web", spec={"fleet": "north"})
        await settled()
        world.secrets.put("north", "")
        assert await world.keys() == ["default/web"]


class Spec(msgspec.Struct):
    secretName: str


class Widget(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Spec


@pytest.mark.behaviour("C-31")
def test_asynchronous_functions_are_refused() -> None:
    async def mapping(secret: Any) -> str:
        return ""

    async def generator(secret: Any) -> AsyncIterator[str]:
        yield ""

    class Called:
        async def __call__(self, secret: Any) -> str:
            return ""

    for function in (mapping, generator, Called()):
        with pytest.raises(UsageError, match=r"Watch\(secrets\): to: expected a plain function"):
            Watch(SECRETS, to=function)
        with pytest.raises(UsageError, match="References: expected a plain function"):
            References(function)
    with pytest.raises(UsageError, match="expected a function, not str"):
        Watch(SECRETS, to="spec.secretName")  # type: ignore[arg-type]


@pytest.mark.behaviour("C-32")
@pytest.mark.parametrize(
    ("value", "secrets"),
    [
        ("token", ["default/token"]),
        ("bank/token", ["bank/token"]),
        (["token", "bank/token", ""], ["default/token", "bank/token"]),
        (None, []),
        ("", []),
        ([], []),
    ],
)
async def test_references_name_objects(value: Any, secrets: list[str]) -> None:
    async with World(References("spec.secretName")) as world:
        world.primary.put("web", spec={"secretName": value})
        world.primary.put("other", spec={})
        await settled()
        for namespace in ("default", "bank"):
            world.secrets.put("token", namespace)
            assert await world.keys() == ["default/web"] * (f"{namespace}/token" in secrets)


@pytest.mark.behaviour("C-32")
async def test_references_follow_the_cache_of_the_primary() -> None:
    async with World(References(lambda primary: primary.spec["secretName"])) as world:
        world.secrets.put("token")
        assert await world.keys() == []
        world.primary.put("web", spec={"secretName": "token"})
        await settled()
        world.secrets.put("token", data={"a": "b"})
        assert await world.keys() == ["default/web"]
        world.primary.put("web", spec={"secretName": "other"})
        await settled()
        world.secrets.delete("token")
        assert await world.keys() == []
        world.primary.delete("web")
        await settled()
        world.secrets.put("other")
        assert await world.keys() == []


@pytest.mark.behaviour("C-32")
async def test_references_are_looked_up_and_not_searched() -> None:
    called: list[str] = []

    def secret_of(primary: Any) -> str:
        called.append(primary.metadata.name)
        return "token" if primary.metadata.name == "web-7" else "other"

    async with World(References(secret_of)) as world:
        for number in range(20):
            world.primary.put(f"web-{number}")
        await settled()
        called.clear()
        world.secrets.put("token")
        assert await world.keys() == ["default/web-7"]
        assert called == []


async def test_wrong_references_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    async with World(References("spec.secret")) as world:
        world.primary.put("web", spec={"secret": {"name": "token"}})
        world.primary.put("good", spec={"secret": "token"})
        await settled()
        world.secrets.put("token")
        assert await world.keys() == ["default/good"]
    assert "raised for default/web: the object is absent from this index" in caplog.text


async def test_references_of_models_of_users() -> None:
    async with World(References("spec.secretName"), decoder=Widget) as world:
        world.primary.put("web", spec={"secretName": "token"})
        await settled()
        world.secrets.put("token")
        assert await world.keys() == ["default/web"]


async def test_two_controllers_have_their_own_references() -> None:
    first, second = References(lambda primary: "token"), References(lambda primary: "other")
    async with World(first) as world:
        Watch(SECRETS, to=second).attach(world.watched, world.widgets, world.requests)
        Watch(SECRETS, to=first).attach(world.watched, world.widgets, world.requests)
        world.primary.put("web")
        await settled()
        world.secrets.put("token")
        assert await world.keys() == ["default/web"] * 2
