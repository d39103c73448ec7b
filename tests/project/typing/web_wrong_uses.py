"""Wrong uses of the types of web services. This module is never run: `test_checkers` checks that mypy and pyright
refuse each line that ends in `# wrong`, and no other.
"""

from __future__ import annotations

from collections.abc import Mapping

from aioinformer import Lister, SharedIndexInformer
from aioinformer.authorization import EVERYBODY, Rbac
from aioinformer.models import apps_v1, core_v1
from aioinformer.web import Informers
from aioinformer.web.fastapi import stream

informers = Informers(core_v1.PODS)


def name_of(headers: Mapping[str, str], peer: str | None) -> str:
    return "jane"


async def wrong() -> Lister[apps_v1.Deployment]:
    pods = await informers.lister(core_v1.PODS)()
    pods.get("shop/web-0").spec.replicas  # wrong
    informers.lister("pods")  # wrong
    Informers("pods")  # wrong
    Rbac(authenticate=name_of)  # wrong
    Rbac(audiences=["shop"], from_peers="10.0.0.7", ttl="10")  # wrong
    stream(informers, {core_v1.PODS: None})  # wrong
    stream(informers, {core_v1.PODS: None}, who="everybody")  # wrong
    stream(informers, {core_v1.PODS: 7}, who=EVERYBODY)  # wrong
    return pods  # wrong


async def follow(pods: SharedIndexInformer[core_v1.Pod]) -> None:
    pods.changes(view=lambda pod: pod.spec.replicas)  # wrong
    pods.changes(view="node")  # wrong
    pods.changes(selector=7)  # wrong
