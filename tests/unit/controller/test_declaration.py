"""What a declaration refuses, at once and by name."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller import Controller, Manager, Owns, controller
from aioinformer.controller.declaration import ControllerOptions
from aioinformer.errors import UsageError
from aioinformer.models import core_v1
from aioinformer.resources import ObjectName

if TYPE_CHECKING:
    from collections.abc import Callable

MAPS = core_v1.CONFIG_MAPS


async def reconcile(request: Any) -> None: ...


def not_async(request: Any) -> None: ...


async def without_request() -> None: ...


async def with_a_second(request: Any, database: str) -> None: ...


class Reconciler:
    async def __call__(self, request: Any) -> None: ...


@functools.wraps(reconcile)
def decorated(request: Any) -> Any:
    return reconcile(request)


@pytest.mark.behaviour("C-49")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "name must be"),
        ({"name": "a/b"}, "name must be"),
        ({"resource": "configmaps"}, "controller it: resource: expected a Resource"),
        ({"resource": core_v1.BINDINGS}, "v1/bindings has no verb"),
        ({"reconcile": not_async}, r"reconcile is not_async at .*, which is not async; write `async def"),
        ({"reconcile": lambda request: reconcile(request)}, "which is not async"),
        ({"reconcile": reconcile(None)}, "must be an async function"),
        ({"reconcile": without_request}, "must accept one argument"),
        ({"reconcile": with_a_second}, "bind further arguments with functools.partial"),
        ({"owns": MAPS}, r"owns must be a list, .* write \[CONFIG_MAPS\]"),
        ({"owns": ["configmaps"]}, "owns: expected a Resource"),
        ({"owns": [MAPS, Owns(MAPS)]}, "owns has v1/configmaps more than once"),
        ({"watches": [MAPS]}, r"watches: expected a Watch, .* write Watch\("),
        ({"sources": [5]}, "async iterable"),
        ({"when": 5}, "expected a function"),
        ({"workers": 0}, "workers must be a number, 1 or more, not 0"),
        ({"workers": True}, "workers must be"),
        ({"timeout": 0}, "timeout must be more than 0 seconds"),
        ({"timeout": "5"}, "timeout must be a number of seconds"),
        ({"queue": {"max_attempts": 5}}, r"queue must be QueueOptions"),
        ({"writes": [MAPS]}, "writes must be a mapping"),
        ({"writes": {MAPS: "create"}}, r"writes\[v1/configmaps\] must be a list"),
        ({"writes": {MAPS: ["make"]}}, "no verb 'make'"),
        ({"elected": "no"}, "elected must be True or False"),
        ({"informer": 5}, "informer must be a mapping"),
        ({"informer": {"resync_period": 5}}, r"a period as sources=\[Every"),
        ({"informer": {"nmespace": "shop"}}, "did you mean namespace"),
    ],
)
def test_wrong_declaration_is_refused(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"name": "it", "resource": MAPS, "reconcile": reconcile, **arguments}
    if hasattr(given["reconcile"], "close"):
        given["reconcile"].close()
    with pytest.raises(UsageError, match=message):
        Controller(given.pop("name"), given.pop("resource"), given.pop("reconcile"), **given)


@pytest.mark.parametrize(
    "function",
    [reconcile, functools.partial(with_a_second, database="db"), Reconciler(), decorated],
)
def test_async_callables_are_accepted(function: Callable[..., Any]) -> None:
    assert Controller("it", MAPS, function).reconcile is function


@pytest.mark.behaviour("C-49")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "name must be"),
        ({"client": 5}, "client: expected"),
        ({"namespaces": "shop"}, "namespaces must be a list"),
        ({"health_port": "8080"}, "health_port must be a number"),
        ({"health_port": 65536}, "health_port must be a number"),
        ({"controllers": controller(MAPS)(reconcile)}, r"must be a list, .*; write \[reconcile\]"),
        ({"namespaces": ["", "shop"]}, "for all of them, pass none"),
        ({"grace": -1}, "grace"),
        ({"restart": "never"}, r"restart must be Restart"),
        ({"leader_election": "shop"}, r"leader_election must be LeaderElection"),
        ({"factory": 5}, "factory must be a SharedInformerFactory"),
        ({"recorder": 5}, "recorder must be"),
        ({"metrics": 5}, "metrics"),
        ({"resync_period": -1}, "resync_period"),
        ({"controllers": [reconcile]}, "expected a Controller"),
    ],
)
def test_wrong_manager_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Manager(**arguments)


def test_decorators_name_the_controller_after_the_function() -> None:
    assert controller(MAPS, workers=2)(reconcile).name == "reconcile"
    manager = Manager()
    declared = manager.controller(MAPS, name="maps", workers=2)(reconcile)
    assert manager.controllers == {"maps": declared}
    assert (declared.workers, declared.reconcile) == (2, reconcile)
    with pytest.raises(UsageError, match="manager has a controller maps already"):
        manager.controller(MAPS, name="maps")(reconcile)
    assert repr(manager) == "<manager manager of maps>"
    with pytest.raises(UsageError, match="write the resource in the decorator"):
        manager.controller(reconcile)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("resource", "key", "shown", "form"),
    [
        (MAPS, "a/b/c", "'a/b/c' is no key of configmaps, which are namespaced", "'namespace/name'"),
        (MAPS, ObjectName("", "a"), "'a' is no key", "'namespace/name'"),
        (MAPS, ["default/a", "default/b"], "an object of type list is no key", "'namespace/name'"),
        (MAPS, {"data": {"password": "hunter2"}}, "an object of type dict is no key", "'namespace/name'"),
        (core_v1.NODES, "default/a", "'default/a' is no key of nodes, which are cluster-scoped", "'name'"),
    ],
)
def test_wrong_key_is_refused_with_the_right_form(resource: Any, key: Any, shown: str, form: str) -> None:
    declared = Controller("it", resource, reconcile)
    with pytest.raises(UsageError) as refusal:
        declared.key_of(key)
    assert str(refusal.value).startswith(f"controller it: {shown}")
    assert f"; pass {form}, an ObjectName, or an object" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


async def test_main_within_an_event_loop_names_the_other_ways() -> None:
    with pytest.raises(UsageError, match="write `async with manager:`"):
        Manager().main()


def test_options_of_the_decorators_are_those_of_the_class() -> None:
    parameters = list(inspect.signature(Controller).parameters)
    assert parameters == ["name", "resource", "reconcile", *ControllerOptions.__annotations__]


def test_declaration_that_does_not_run_says_so() -> None:
    declared, twin = Controller("it", MAPS, reconcile), Controller("it", MAPS, reconcile)
    manager = Manager("shop", [declared])
    for each in (declared, twin):
        for call in (functools.partial(manager.enqueue, key="default/a"), manager.parked, manager.retry_parked):
            with pytest.raises(UsageError, match="controller it does not run in manager shop; add it and start that"):
                call(each)
    with pytest.raises(UsageError, match="manager shop: expected a Controller, not 'it'"):
        manager.parked("it")  # type: ignore[arg-type]
