"""DynamicInformers: informers of custom resources while their definitions serve them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import DynamicInformers, Resource
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.reflector import Phase
from tests.support.cluster import Cluster, built_in
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.factory import DynamicInformer

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
NAME = "widgets.example.com"


class Definitions(Collection):
    """The definition of widgets, and a cluster that has it.

    Attributes:
        widgets: the objects of version v1.
        began: the informers that were passed to `begin`.
    """

    def __init__(self) -> None:
        super().__init__(resource=built_in("apiextensions.k8s.io/v1/customresourcedefinitions"))
        self.widgets = Collection("w", resource=WIDGETS)
        self.cluster = Cluster(self, self.widgets)
        self.recorder = Recorder()
        self.began: list[str] = []

    async def become(self, versions: str | None, scope: str = "Namespaced") -> None:
        """Serve these versions, the first one of which is stored; "!" for not established, None for no definition."""
        if versions is None:
            self.delete(NAME, "")
        else:
            names = versions.strip("!").split()
            self.put(
                NAME,
                "",
                spec={
                    "group": "example.com",
                    "scope": scope,
                    "names": {"plural": "widgets", "kind": "Widget"},
                    "versions": [
                        {"name": name.strip("-"), "served": "-" not in name, "storage": name == names[0]}
                        for name in reversed(names)
                    ],
                },
                status={"conditions": [{"type": "Established", "status": str("!" not in versions)}]},
            )
        await settled()

    def begin(self, informer: DynamicInformer) -> None:
        self.began.append(informer.resource.version)
        informer.add_event_handler(
            on_add=lambda obj: self.recorder.received.append(f"add {obj['metadata']['name']}"),
            on_delete=lambda obj: self.recorder.received.append(f"delete {obj.key}"),
        )


@pytest.mark.parametrize(
    ("history", "served", "received"),
    [
        (["v1"], {"v1": True}, ["add w"]),
        (["!v1"], {}, []),
        (["v1-"], {}, []),
        (["!v1", "v1"], {"v1": True}, ["add w"]),
        (["v1", "!v1"], {"v1": False}, ["add w", "delete default/w"]),
        (["v1", "v1-"], {"v1": False}, ["add w", "delete default/w"]),
        (["v1", None], {"v1": False}, ["add w", "delete default/w"]),
        (["v1", None, "v1"], {"v1": True}, ["add w", "delete default/w", "add w"]),
        (["v1 v2"], {"v1": True}, ["add w"]),
        (["v2 v1"], {"v2": True}, []),
        (["v2- v1"], {"v1": True}, ["add w"]),
        (["v1", "v2 v1"], {"v1": True}, ["add w"]),
        (["v1", "v2"], {"v1": False, "v2": True}, ["add w", "delete default/w"]),
        (["v1", "v2", "v1"], {"v1": True, "v2": False}, ["add w", "delete default/w", "add w"]),
    ],
)
async def test_each_served_resource_has_an_informer(
    history: list[str | None], served: dict[str, bool], received: list[str]
) -> None:
    definitions = Definitions()
    await definitions.become(history[0])
    informers = DynamicInformers(definitions.cluster)
    informers.follow(definitions.begin)
    async with informers:
        await settled()
        for versions in history[1:]:
            await definitions.become(versions)
        found = {key.split("/")[1]: informer for key, informer in informers.informers().items()}
        assert {version: informer.served for version, informer in found.items()} == served
        assert sorted(definitions.began) == sorted(served), "each informer begins once"
        for informer in found.values():
            assert (informer.state.phase is Phase.NOT_FOUND) is not informer.served
            assert informer.is_ready(), "an empty cache is the truth"
    assert definitions.recorder.received == received
    if history[-1] == "v1":
        assert found["v1"].get_store().list_keys() == ["default/w"]


EVERYWHERE, SHOP, PAY = (f"/apis/example.com/v1/{part}widgets" for part in ("", "namespaces/shop/", "namespaces/pay/"))


@pytest.mark.parametrize(
    ("namespace", "options", "scopes", "paths"),
    [
        ("", {}, ["Namespaced", "Cluster"], [EVERYWHERE, EVERYWHERE]),
        ("", {"namespace": "pay"}, ["Namespaced", "Cluster", "Namespaced"], [PAY, None, PAY]),
        ("shop", {}, ["Namespaced", "Cluster", "Namespaced"], [SHOP, EVERYWHERE, SHOP]),
        ("shop", {}, ["Cluster", "Namespaced"], [EVERYWHERE, SHOP]),
        ("shop", {"namespace": "shop"}, ["Namespaced", "Cluster"], [SHOP, EVERYWHERE]),
        ("shop", {"namespace": "pay"}, ["Namespaced", "Cluster", "Namespaced"], [PAY, None, PAY]),
    ],
)
async def test_resource_may_return_with_another_scope(
    namespace: str, options: Any, scopes: list[str], paths: list[str | None]
) -> None:
    definitions = Definitions()
    informers = DynamicInformers(definitions.cluster, namespace=namespace)
    informers.follow(definitions.begin, **options)
    requested: list[str | None] = []
    async with informers:
        for scope in scopes:
            definitions.cluster.requests.clear()
            await definitions.become("v1", scope)
            asked = {each.path for each in definitions.cluster.requests if "widgets" in each.path}
            requested.append(asked.pop() if asked else None)
            [informer] = informers.informers().values()
            assert (asked, informer.served) == (set(), requested[-1] is not None)
            await definitions.become(None)
    assert requested == paths


async def test_unwanted_resources_have_no_informer() -> None:
    definitions = Definitions()
    asked: list[str] = []
    informers = DynamicInformers(definitions.cluster)
    informers.follow(definitions.begin, lambda resource: asked.append(resource.gvr))
    async with informers:
        await definitions.become("v1")
    assert (asked, informers.informers()) == (["example.com/v1/widgets"], {})


async def test_life_of_dynamic_informers() -> None:
    definitions = Definitions()
    informers = DynamicInformers(definitions.cluster)
    informers.follow(definitions.begin)
    with pytest.raises(UsageError, match="was called before"):
        informers.follow(definitions.begin)
    early = await informers.informer(WIDGETS)
    with pytest.raises(UsageError, match="no verb list"):
        await informers.informer(built_in("v1/bindings"))
    assert not informers.is_ready()
    async with informers:
        with pytest.raises(UsageError, match="can be entered once"):
            await informers.__aenter__()
        late = await informers.informer(WIDGETS, namespace="shop")
        await informers.wait_for_cache_sync()
        await settled()
        assert [early.is_ready(), late.is_ready(), informers.is_ready()] == [True, True, True]
        assert await informers.informer(WIDGETS) is early
    assert not informers.is_ready()
    assert await informers.informer(WIDGETS) is early
    with pytest.raises(InformerStopped, match="were stopped"):
        await informers.informer(WIDGETS, namespace="pay")
    with pytest.raises(UsageError, match="can be entered once"):
        await informers.__aenter__()
