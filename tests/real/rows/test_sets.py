"""What `apply_set` writes and deletes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import Client, Conflict, NotFound
from aioinformer.controller import Request, apply_set
from aioinformer.controller.errors import ForeignObject
from aioinformer.controller.proofs import Proofs
from aioinformer.errors import Invalid
from aioinformer.models import apps_v1, core_v1
from aioinformer.resources import object_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from aioinformer import Resource as AnyResource
    from aioinformer.controller.helpers import AppliedSet
    from aioinformer.controller.helpers.pruning import By
    from aioinformer.resources import ObjectName
    from aioinformer.transport import HttpRequest, Response, Transport


RESOURCES: tuple[Any, ...] = (core_v1.SECRETS, core_v1.SERVICES, apps_v1.DEPLOYMENTS)
LABELS = {"example.com/tenant": "web", "example.com/part": "set"}


class Between:
    """A transport that records its requests, and calls a function once before the first request of a method."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.methods: list[str] = []
        self.before: dict[str, Callable[[], Awaitable[Any]]] = {}

    async def request(self, request: HttpRequest) -> Response:
        self.methods.append(request.method)
        if (act := self.before.pop(request.method, None)) is not None:
            await act()
        return await self._transport.request(request)

    async def close(self) -> None:
        """The owner closes the transport."""


class Cached:
    """The objects of one resource, as a lister has them."""

    def __init__(self, objects: list[Any]) -> None:
        self._objects = {str(object_name(each)): each for each in objects}

    def get(self, key: str) -> Any:
        if key not in self._objects:
            raise NotFound("objects", key)
        return self._objects[key]

    def owned(self, uid: str) -> list[Any]:
        """Return the objects with any owner reference to this uid, as `Owns(controller_only=False)` does."""
        references = ((each, each.metadata.owner_references or ()) for each in self._objects.values())
        return [each for each, found in references if any(reference.uid == uid for reference in found)]

    def list(self, labels: dict[str, str]) -> list[Any]:
        return [each for each in self._objects.values() if labels.items() <= dict(each.metadata.labels or {}).items()]


class Sets:
    """Applies sets of a ConfigMap in a namespace of its own; the cache is what `read` has read last.

    Attributes:
        between: the transport of the reconciler.
        client: of the reconciler, whose field manager is "widgets".
        others: writes as another field manager.
        owner: the ConfigMap.
        stripped: the cache has no managed fields.
    """

    log = logging.LoggerAdapter(logging.getLogger("tests"))

    def __init__(self, transport: Transport, namespace: str) -> None:
        self.between = Between(transport)
        self.client_of_runs = Client(self.between, namespace=namespace, field_manager="widgets")
        self.others = Client(transport, namespace=namespace, field_manager="others")
        self.owner: Any = None
        self.proofs = Proofs()
        self.stripped = False
        self._cache: dict[AnyResource[Any], Cached] = {}

    async def read(self) -> None:
        if self.owner is None:
            self.owner = await self.others.core.v1.configmaps.create({"metadata": {"name": "owner"}})
        for each in RESOURCES:
            found = list(await self.others.resource(each).list())
            if self.stripped:
                found = [obj.evolve({"metadata": {"managedFields": None}}) for obj in found]
            self._cache[each] = Cached(found)
        self.between.methods.clear()

    async def apply(self, *objects: Any, by: By = "owner", read: bool = True) -> AppliedSet:
        if read:
            await self.read()
        request = Request(object_name(self.owner), self.owner, self, resource=core_v1.CONFIG_MAPS)  # type: ignore[arg-type]
        return await apply_set(request, objects, resources=RESOURCES, by=by)

    # What requests need of a controller.

    def client(self, key: ObjectName) -> Client:
        return self.client_of_runs

    def lister(self, resource: AnyResource[Any], *, owned: bool = False) -> Any:
        return self._cache[resource]

    def owned(self, owner: Any, resource: AnyResource[Any]) -> list[Any]:
        return self._cache[resource].owned(owner.metadata.uid)


@pytest.fixture
def sets(client: Client) -> Sets:
    return Sets(client.transport, client.namespace)


def secret(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def service(name: str, *ports: dict[str, Any]) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": list(ports)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


HTTP, DNS, UDP = (
    {"name": "http", "port": 80},
    {"name": "dns", "port": 53},
    {"name": "dns-udp", "port": 53, "protocol": "UDP"},
)


def deployment(
    name: str, labels: dict[str, str] | None = None, *, env: Sequence[Any] = (), **spec: Any
) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "example.com/web:1",
        "ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, *env],
    }
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels or {"app": name}},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": pod, **spec},
    }


#: The server adds a default to a field that is replaced as a whole, and does not store the empty value.
SELF = {"name": "SELF", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
EMPTY = {"name": "EMPTY", "value": ""}
ALL = (secret("a"), service("a", HTTP, DNS, UDP), deployment("a", env=[SELF, EMPTY], paused=False))


def managers(obj: Any) -> list[tuple[str, str]]:
    return sorted((each.manager.partition("-")[0], each.operation) for each in obj.metadata.managed_fields or ())


@pytest.mark.behaviour("C-85", "C-101")
async def test_new_objects_are_created_and_not_sent_again(sets: Sets) -> None:
    first = await sets.apply(*ALL)
    assert sets.between.methods == ["POST"] * 3
    assert [managers(each) for each in first.objects] == [[("widgets:created", "Update")]] * 3
    again = await sets.apply(*ALL)
    assert (again.sent, sets.between.methods) == (0, [])
    assert again.objects == first.objects


@pytest.mark.behaviour("C-101")
async def test_another_process_knows_defaults_from_fields_that_left(sets: Sets) -> None:
    await sets.apply(deployment("kept"), deployment("changed", replicas=1, paused=True))
    sets.client_of_runs = Client(sets.between, namespace=sets.others.namespace, field_manager="widgets")
    result = await sets.apply(deployment("kept"), deployment("changed", replicas=1))
    assert sets.between.methods == ["PATCH", "PATCH"]
    assert (result.objects[1].metadata.name, result.objects[1].spec.paused) == ("changed", None)
    assert managers(result.objects[1]) == [("widgets", "Apply")]
    await sets.apply(deployment("kept"), deployment("changed", replicas=1))
    assert sets.between.methods == []


@pytest.mark.behaviour("C-101")
async def test_fields_that_leave_the_set_leave_the_object(sets: Sets) -> None:
    await sets.apply(
        secret("a", one="MQ==", two="Mg=="),
        service("a", {**HTTP, "targetPort": 8080}, UDP),
        deployment("a", {"app": "a", "old": "yes"}, replicas=3, strategy={"type": "Recreate"}),
    )
    result = await sets.apply(secret("a", one="MQ=="), service("a", HTTP), deployment("a"))
    made, served, deployed = result.objects
    assert dict(made.data) == {"one": "MQ=="}
    assert [(port.port, port.target_port) for port in served.spec.ports] == [(80, 80)]
    assert dict(deployed.metadata.labels) == {"app": "a"}
    assert (deployed.spec.replicas, deployed.spec.strategy.type) == (1, "RollingUpdate")
    assert [managers(each) for each in result.objects] == [[("widgets", "Apply")]] * 3
    assert (await sets.apply(secret("a", one="MQ=="), service("a", HTTP), deployment("a"))).sent == 0


@pytest.mark.behaviour("C-101")
async def test_what_the_reconciler_edits_stays(sets: Sets) -> None:
    (made,) = (await sets.apply(deployment("a"))).objects
    restarted = {"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}
    await sets.client_of_runs.apps.v1.deployments.patch(made, restarted)
    assert (await sets.apply(deployment("a"))).sent == 0
    (changed,) = (await sets.apply(deployment("a", replicas=2))).objects
    assert dict(changed.spec.template.metadata.annotations) == {"restarted": "now"}


@pytest.mark.behaviour("C-85")
async def test_changes_of_others_are_repaired(sets: Sets) -> None:
    await sets.apply(*ALL)
    await sets.others.apps.v1.deployments.patch("a", {"spec": {"replicas": 4}})
    await sets.others.core.v1.services.patch("a", {"spec": {"selector": {"app": "elsewhere"}}})
    result = await sets.apply(*ALL)
    assert result.sent == 1  # the number of replicas is not part of the set
    assert dict(result.objects[1].spec.selector) == {"app": "a"}
    assert result.objects[2].spec.replicas == 4


def ports(obj: Any) -> list[tuple[str, int]]:
    return sorted((each.name, each.port) for each in obj.spec.ports)


METRICS = {"name": "metrics", "port": 9090}


@pytest.mark.behaviour("C-85")
@pytest.mark.parametrize("applied", [False, True])
async def test_changed_key_of_an_own_element_is_repaired(sets: Sets, applied: bool) -> None:
    await sets.apply(service("a", HTTP), deployment("a"))
    services: Any = sets.others.core.v1.services
    deployments: Any = sets.others.apps.v1.deployments
    if applied:
        await sets.apply(service("a", HTTP, DNS), deployment("a"))
    await services.patch("a", {"spec": {"ports": [METRICS]}}, "strategic")
    at = [port.name for port in (await services.get("a")).spec.ports].index("http")
    await services.patch("a", [{"op": "replace", "path": f"/spec/ports/{at}/port", "value": 8080}], "json")
    result = await sets.apply(service("a", HTTP, DNS), deployment("a"))
    assert ports(result.objects[0]) == [("dns", 53), ("http", 80), ("metrics", 9090)]
    assert (await sets.apply(service("a", HTTP, DNS), deployment("a"))).sent == 0

    named = deployment("a")
    main = named["spec"]["template"]["spec"]["containers"][0]
    main["ports"] = [{"name": "web", "containerPort": 80}]
    await sets.apply(service("a", HTTP, DNS), named)
    change = {"op": "replace", "path": "/spec/template/spec/containers/0/ports/0/containerPort", "value": 81}
    await deployments.patch("a", [change], "json")
    await sets.apply(service("a", HTTP, DNS), named)
    found = (await deployments.get("a")).spec.template.spec.containers[0].ports
    assert [(each.name, each.container_port) for each in found] == [("web", 80)]


@pytest.mark.behaviour("C-86")
async def test_element_of_others_with_the_name_of_an_own_one_stays(sets: Sets) -> None:
    await sets.apply(service("a", DNS))
    services = sets.others.core.v1.services
    await services.apply(service("a", {"name": "http", "port": 8080}))
    refused = r'spec\.ports has the element \{"port":8080,"protocol":"TCP"\} with the same name, which '
    with pytest.raises(Invalid, match=f"{refused}field manager 'others' applies; remove it"):
        await sets.apply(service("a", DNS, HTTP))
    assert ports(await services.get("a")) == [("dns", 53), ("http", 8080)]

    await sets.apply(service("b", {**HTTP, "targetPort": "web"}))
    await services.patch("b", {"spec": {"ports": [{"name": "http", "port": 8080, "targetPort": "other"}]}})
    with pytest.raises(Invalid, match=f"{refused}has other fields, too"):
        await sets.apply(service("a", DNS), service("b", {**HTTP, "targetPort": "web"}))
    assert ports(await services.get("b")) == [("http", 8080)]


@pytest.mark.behaviour("C-85")
async def test_created_and_applied_objects_are_deleted(sets: Sets) -> None:
    await sets.apply(secret("a"), secret("b"))
    await sets.apply(secret("a"), secret("b", one="MQ=="))
    result = await sets.apply()
    assert sets.between.methods == ["DELETE", "DELETE"]
    assert [str(key.name) for _, key in result.leaving] == ["a", "b"]
    assert list(await sets.others.core.v1.secrets.list(field_selector="type=Opaque")) == []


@pytest.mark.behaviour("C-86")
async def test_object_created_after_the_check_is_not_adopted(sets: Sets) -> None:
    async def intrude() -> None:
        await sets.others.core.v1.secrets.create(secret("a", theirs="MQ=="))

    sets.between.before["POST"] = intrude
    with pytest.raises(ForeignObject, match=r"secrets .*/a exists"):
        await sets.apply(secret("a", ours="MQ=="), secret("b"))
    found = await sets.others.core.v1.secrets.get("a")
    assert (dict(found.data or {}), managers(found)) == ({"theirs": "MQ=="}, [("others", "Update")])
    assert (await sets.apply()).kept == []


@pytest.mark.behaviour("C-86")
async def test_object_created_again_is_not_adopted(sets: Sets) -> None:
    await sets.apply(secret("a", ours="MQ=="))
    await sets.read()
    await sets.others.core.v1.secrets.delete("a")
    for changed in ({"ours": "Mg=="}, {"ours": "Mw=="}):
        with pytest.raises(Conflict):  # the cache shows an object that is gone
            await sets.apply(secret("a", **changed), read=False)
        if "a" not in [each.metadata.name for each in await sets.others.core.v1.secrets.list()]:
            await sets.others.core.v1.secrets.create(secret("a", theirs="MQ=="))
    found = await sets.others.core.v1.secrets.get("a")
    assert (dict(found.data or {}), managers(found)) == ({"theirs": "MQ=="}, [("others", "Update")])


async def test_applied_object_created_again_is_not_adopted(sets: Sets) -> None:
    await sets.apply(secret("a", ours="MQ=="))
    await sets.apply(secret("a", ours="Mg=="))
    await sets.read()
    await sets.others.core.v1.secrets.delete("a")
    await sets.others.core.v1.secrets.create(secret("a", theirs="MQ=="))
    with pytest.raises(Conflict, match="uid"):
        await sets.apply(secret("a", ours="Mw=="), read=False)
    assert dict((await sets.others.core.v1.secrets.get("a")).data or {}) == {"theirs": "MQ=="}


@pytest.mark.behaviour("C-102")
async def test_copied_labels_delete_nothing(sets: Sets) -> None:
    await sets.apply(secret("a"), by=LABELS)
    await sets.others.core.v1.secrets.create(
        {**secret("copy"), "metadata": {"name": "copy", "labels": LABELS | {"more": "labels"}}}
    )
    half = {"name": "half", "labels": {"example.com/part": "set"}}
    await sets.client_of_runs.core.v1.secrets.create({**secret("half"), "metadata": half})
    await sets.others.core.v1.secrets.patch("half", {"metadata": {"labels": LABELS}})
    result = await sets.apply(by=LABELS)
    assert [str(key.name) for _, key in result.leaving] == ["a"]
    reason = "no managed fields show that field manager 'widgets' has written its labels"
    assert [(key.name, why) for _, key, why in result.kept] == [("copy", reason), ("half", reason)]
    await sets.others.core.v1.secrets.get("copy")


def reference(owner: Any, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": owner.metadata.name, "uid": owner.metadata.uid, **more}


@pytest.mark.behaviour("C-102")
async def test_objects_of_another_controller_are_kept(sets: Sets) -> None:
    await sets.apply(secret("a"))
    another = await sets.others.core.v1.configmaps.create({"metadata": {"name": "another"}})
    shared = [reference(sets.owner), reference(another, controller=True)]
    for client, name in ((sets.client_of_runs, "shared"), (sets.others, "theirs")):
        references = shared if name == "shared" else shared[:1]
        await client.core.v1.secrets.create({**secret(name), "metadata": {"name": name, "ownerReferences": references}})
    result = await sets.apply()
    assert [str(key.name) for _, key in result.leaving] == ["a"]
    assert [(key.name, why) for _, key, why in result.kept] == [
        ("shared", f"its controller is ConfigMap another (uid {another.metadata.uid})"),
        ("theirs", "no managed fields show that field manager 'widgets' has written its owner reference"),
    ]
    await sets.others.core.v1.secrets.get("shared")
    await sets.others.core.v1.secrets.get("theirs")


@pytest.mark.behaviour("C-103")
async def test_object_that_changes_before_its_deletion_is_proven_again(sets: Sets) -> None:
    await sets.apply(secret("a"), secret("b"))
    secrets = sets.others.core.v1.secrets

    async def touch() -> None:
        await secrets.patch("a", {"data": {"more": "MQ=="}})

    sets.between.before["DELETE"] = touch
    result = await sets.apply(secret("b"))
    assert sets.between.methods == ["DELETE", "GET", "DELETE"]
    assert [str(key.name) for _, key in result.leaving] == ["a"]

    async def take_over() -> None:
        another = await sets.others.core.v1.configmaps.create({"metadata": {"name": "another"}})
        await secrets.patch("b", {"metadata": {"ownerReferences": [reference(another, controller=True)]}})

    sets.between.before["DELETE"] = take_over
    result = await sets.apply()
    assert (result.leaving, result.kept) == ([], [])
    await secrets.get("b")


@pytest.mark.behaviour("C-103")
async def test_cache_without_managed_fields_reads_the_live_object(sets: Sets) -> None:
    await sets.apply(secret("a", one="MQ==", two="Mg=="), secret("b"))
    sets.stripped = True
    assert (await sets.apply(secret("a", one="MQ==", two="Mg=="), secret("b"))).sent == 0
    assert sets.between.methods == ["GET", "GET"]
    result = await sets.apply(secret("a", one="MQ=="))
    assert dict(result.objects[0].data) == {"one": "MQ=="}
    assert sets.between.methods == ["GET", "PATCH", "PATCH", "GET", "DELETE"]
    assert [str(key.name) for _, key in result.leaving] == ["b"]


class Metadata(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    deletion_timestamp: str | None = None
    owner_references: list[dict[str, Any]] | None = None


class Secret(msgspec.Struct, rename="camel"):
    metadata: Metadata
    data: dict[str, str] = {}
    api_version: str = "v1"
    kind: str = "Secret"


async def test_classes_of_users_keep_their_type(sets: Sets) -> None:
    typed = msgspec.structs.replace(core_v1.SECRETS, decoder=Secret)
    await sets.apply(secret("a", one="MQ==", two="Mg=="))
    request = Request(object_name(sets.owner), sets.owner, sets, resource=core_v1.CONFIG_MAPS)  # type: ignore[arg-type]
    sets._cache[typed] = Cached([await sets.client_of_runs.resource(typed).get("a")])
    sets.owned = lambda owner, resource: [sets.lister(resource).get(f"{sets.others.namespace}/a")]  # type: ignore[method-assign]
    for data, sent in (({"one": "MQ==", "two": "Mg=="}, 0), ({"one": "MQ=="}, 1)):
        result = await apply_set(request, [secret("a", **data)], resources=[typed])
        assert (type(result.objects[0]), result.objects[0].data, result.sent) == (Secret, data, sent)
    assert [str(key.name) for _, key in (await apply_set(request, [], resources=[typed])).leaving] == ["a"]
