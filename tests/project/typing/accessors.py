"""Types of a factory's accessors. This module is never run: `test_types` checks it with mypy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, assert_type

from aioinformer import HttpTransport, connect
from aioinformer.cache.lister import ClusterLister, Lister, NamespaceLister
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.sync import SyncResult
from aioinformer.models import apps_v1, core_v1, events_v1
from aioinformer.transport import Connection
from aioinformer.transport.auth.credentials import ConnectionTransport

if TYPE_CHECKING:
    from aioinformer.factory.factory import SharedInformerFactory


async def connections() -> None:
    assert_type(await connect(), Connection)
    assert_type((await connect()).transport, ConnectionTransport)
    assert_type(HttpTransport("https://localhost:6443").base_url, str)


def informers(factory: SharedInformerFactory) -> None:
    assert_type(factory.apps.v1.deployments.informer(), SharedIndexInformer[apps_v1.Deployment])
    assert_type(factory.core.v1.pods.informer(), SharedIndexInformer[core_v1.Pod])
    assert_type(
        factory.core.v1.pods.informer(namespace="a", label_selector={"app": "web"}), SharedIndexInformer[core_v1.Pod]
    )
    assert_type(factory.core.v1.events.informer(), SharedIndexInformer[core_v1.Event])
    assert_type(factory.events.v1.events.informer(), SharedIndexInformer[events_v1.Event])


def listers(factory: SharedInformerFactory) -> None:
    assert_type(factory.apps.v1.deployments.lister(), Lister[apps_v1.Deployment])
    assert_type(factory.apps.v1.deployments.lister().list("app=web"), list[apps_v1.Deployment])
    assert_type(factory.apps.v1.deployments.lister().namespaced("a"), NamespaceLister[apps_v1.Deployment])
    assert_type(factory.apps.v1.deployments.lister().namespaced("a").get("b"), apps_v1.Deployment)
    assert_type(factory.core.v1.nodes.lister(), ClusterLister[core_v1.Node])
    assert_type(factory.core.v1.nodes.lister(label_selector="zone=a", max_undecodable=0.1), ClusterLister[core_v1.Node])
    assert_type(factory.core.v1.nodes.lister().list({"zone": "a"}), list[core_v1.Node])
    assert_type(factory.core.v1.nodes.lister().undecodable(), list[str])
    assert_type(factory.core.v1.nodes.lister().get("a"), core_v1.Node)


async def waits(factory: SharedInformerFactory) -> None:
    result = await factory.wait_for_cache_sync()
    assert_type(result, SyncResult)
    assert_type(result["v1/pods"], bool)


def objects(factory: SharedInformerFactory) -> None:
    deployment = factory.apps.v1.deployments.lister().namespaced("a").get("b")
    assert deployment.spec is not None
    assert deployment.spec.template.spec is not None
    assert_type(deployment.spec.replicas, int | None)
    assert_type(deployment.spec.template.spec.containers, Sequence[core_v1.Container])
    assert_type(deployment.spec.template.spec.containers[0].name, str)
    assert_type(deployment.metadata.creation_timestamp, datetime | None)
    assert_type(deployment.metadata.labels, Mapping[str, str] | None)
    assert_type(deployment.metadata.name, str)


def mistakes(factory: SharedInformerFactory) -> Any:
    # Each of these is an error; mypy complains about an ignore that it does not need.
    factory.core.v1.nodes.lister().namespaced("a")  # type: ignore[attr-defined]
    factory.core.v1.deployments.informer()  # type: ignore[attr-defined]
    factory.apps.v2.deployments.informer()  # type: ignore[attr-defined]
    factory.core.v1.pods.informer(resync=60.0)  # type: ignore[call-overload]
    factory.core.v1.pods.informer(resync_period="1m")  # type: ignore[call-overload]
    factory.core.v1.pods.lister(labels="app=web")  # type: ignore[call-overload]
    return factory.core.v1.pods.lister().get("a/b").metadata.node  # type: ignore[attr-defined]
