"""Reviews without a server: `aioinformer.harness.review`."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import UsageError, evolve
from aioinformer.authorization import User
from aioinformer.controller import Manager
from aioinformer.errors import NotFound, Stale
from aioinformer.harness import Reviewed, review
from aioinformer.models import apps_v1, core_v1
from aioinformer.webhooks import AdmissionRequest, Denied
from tests.support.reviews import WIDGETS, Spec, Widget, widget

LIMITS = {core_v1.CONFIG_MAPS: [{"metadata": {"name": "limits", "namespace": "shop"}, "data": {"most": "5"}}]}


@pytest.fixture
def manager() -> Manager:
    manager = Manager("test")

    @manager.default(WIDGETS, operations=["create"])
    async def fill(request: AdmissionRequest[Widget]) -> Widget:
        request.warn("the owner is set")
        return evolve(request.object, "spec.owner", request.user.name)

    @manager.validate(WIDGETS, operations=["create", "update", "delete"], reads=[core_v1.CONFIG_MAPS])
    async def check(request: AdmissionRequest[Widget]) -> None:
        if request.operation == "delete":
            raise Denied("it is kept")
        lister: Any = request.lister(core_v1.CONFIG_MAPS).fresh(within=30)
        most = int(lister.namespaced("shop").get("limits").data["most"])
        if request.object.spec.size > most:
            raise Denied({"spec.size": f"must not exceed {most}"})

    @manager.validate(apps_v1.DEPLOYMENTS, subresources=["scale"])
    async def scale(request: AdmissionRequest[Any]) -> None:
        if request.object.spec.replicas > 5:
            raise Denied("too many")

    return manager


async def test_object_is_defaulted_and_then_validated(manager: Manager) -> None:
    answer = await review(manager, WIDGETS, widget(size=2), user=User(name="ann"), reads=LIMITS)
    assert (answer.allowed, answer.fields, answer.warnings) == (True, {}, ("the owner is set",))
    assert answer.object.spec == Spec(2, "ann")


async def test_refusal_has_fields_and_message(manager: Manager) -> None:
    answer = await review(manager, WIDGETS, widget(size=6), widget(size=2), reads=LIMITS)
    assert (answer.allowed, answer.object) == (False, None)
    assert answer.fields == {"spec.size": "must not exceed 5"}
    assert answer.message == 'Widget.example.com "a" is invalid: spec.size: must not exceed 5'
    refused = await review(manager, WIDGETS, widget(size="big"), widget(), reads=LIMITS)
    assert list(refused.fields) == ["spec.size"]


async def test_object_of_the_class_and_delete(manager: Manager) -> None:
    made = Widget({"name": "a", "namespace": "shop"}, Spec(3))
    assert (await review(manager, WIDGETS, made, reads=LIMITS)).allowed
    assert await review(manager, WIDGETS, old=made) == Reviewed(
        False, message='Widget.example.com "a" is invalid: it is kept', fields={"": "it is kept"}
    )


async def test_scale(manager: Manager) -> None:
    body = {"metadata": {"name": "a", "namespace": "shop"}, "spec": {"replicas": 6}}
    assert (await review(manager, apps_v1.DEPLOYMENTS, body, body, subresource="scale")).message.endswith("too many")


async def test_errors_are_raised(manager: Manager) -> None:
    with pytest.raises(Stale):
        await review(manager, WIDGETS, widget(), widget(), reads=LIMITS, stale=60)
    with pytest.raises(NotFound):
        await review(manager, WIDGETS, widget(), widget())
    with pytest.raises(UsageError, match="has no admission function for create of v1/secrets"):
        await review(manager, core_v1.SECRETS, {"metadata": {"name": "a"}})
    with pytest.raises(UsageError, match="pass the new object, the old one for a delete, or both"):
        await review(manager, WIDGETS)
