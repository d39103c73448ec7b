"""What the report of a manager says is wrong: it counts all, names keys and reasons, and has one sentence a cause."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.controller import Controller, LeaderElection, Manager, Request, Result, TerminalError, Watch
from aioinformer.controller.debug.report import KEYS
from aioinformer.errors import ApiError, TransportError
from aioinformer.events import FakeRecorder
from tests.support.managers import (
    CONFIG_MAPS,
    PODS,
    STEADY,
    Cluster,
    Runs,
    Server,
    config_map,
    manager_of,
    server_with,
    snapshot_of,
    started,
)
from tests.support.written_collection import response_of

if TYPE_CHECKING:
    from aioinformer.transport import HttpRequest
    from tests.support.collection import Response


def problems_of(manager: Manager) -> list[str]:
    return [each["text"] for each in manager.report()["problems"]]


def failing(text: str = "wrong colour") -> Any:
    async def reconcile(request: Request[Any]) -> None:
        raise ValueError(text)

    return reconcile


async def test_sentences_and_counts_are_about_all_keys() -> None:
    names = [f"bad-{number}" for number in range(3_000)]
    controller = Controller("it", CONFIG_MAPS, failing(), queue=STEADY, workers=50)
    async with manager_of(server_with(*names), controller) as manager:
        await asyncio.sleep(5)
        report = manager.report()
        [problem] = report["problems"]
        assert problem["text"].startswith("3,000 keys fail again and again in it; default/bad-")
        assert "times, ValueError at controller/test_report.py:" in problem["text"]
        assert problem["text"].endswith(": wrong colour.")
        assert problem["key"] in problem["text"]
        assert (report["key_counts"]["failing"], len(report["keys"]["failing"])) == (3_000, KEYS)
        assert report["controllers"]["it"]["failing_keys"] == snapshot_of(manager)["failing_keys"] == 3_000


async def test_no_controller_is_left_out_and_lists_are_shared() -> None:
    controllers = [Controller(f"c{number}", CONFIG_MAPS, failing(), queue=STEADY) for number in range(14)]
    names = [f"bad-{number}" for number in range(6)]
    async with manager_of(server_with(*names), *controllers) as manager:
        await asyncio.sleep(5)
        report = manager.report()
        wanted = {each.name for each in controllers}
        assert {each["controller"] for each in report["problems"]} == wanted
        assert all(each["text"].startswith("6 keys fail") for each in report["problems"])
        assert {each["controller"] for each in report["keys"]["failing"]} == wanted
        assert (report["key_counts"]["failing"], len(report["keys"]["failing"])) == (84, KEYS)


async def test_keys_that_fail_for_one_cause_are_one_problem() -> None:
    async def reconcile(request: Request[Any]) -> None:
        if request.name.startswith("a"):
            raise ValueError(f"wrong colour of {request.name}")
        raise KeyError("size")

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY)
    async with manager_of(server_with("a1", "a2", "b"), controller) as manager:
        await asyncio.sleep(5)
        two, one = problems_of(manager)
        assert two.startswith("2 keys fail again and again in it; default/a")
        assert two.endswith(("wrong colour of a1.", "wrong colour of a2."))
        assert one.startswith("1 key fails again and again in it; default/b: 3 times, KeyError at")


async def test_many_causes_are_summed_up() -> None:
    async def reconcile(request: Request[Any]) -> None:
        raise type(f"Error{request.name}", (Exception,), {})("no")

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY)
    async with manager_of(server_with(*map(str, range(12))), controller) as manager:
        await asyncio.sleep(5)
        found = problems_of(manager)
        assert len(found) == 9
        assert found[-1].startswith("4 keys fail again and again in it for 4 other causes, default/")


async def test_key_that_waits_on_purpose_is_no_problem_and_hides_none() -> None:
    async def reconcile(request: Request[Any]) -> Result:
        if request.name.startswith("bad"):
            raise TerminalError(f"the colour of {request.name} is not known")
        return Result(parked="waits for approval")

    controller = Controller("it", CONFIG_MAPS, reconcile)
    async with manager_of(server_with("a", "bad-1", "bad-2", "b"), controller) as manager:
        await started()
        report = manager.report()
        [problem] = [each["text"] for each in report["problems"]]
        assert problem == "2 keys are parked in it; default/bad-1: the colour of bad-1 is not known."
        waiting = {each["key"]: (each["state"], each["attempts"], each["error"]) for each in report["keys"]["waiting"]}
        assert waiting == dict.fromkeys(("default/a", "default/b"), ("waiting", 0, "waits for approval"))
        assert (report["key_counts"]["waiting"], report["key_counts"]["parked"]) == (2, 2)
        assert snapshot_of(manager)["waiting"] == {"default/a": "waits for approval", "default/b": "waits for approval"}


async def test_reasons_have_the_text_of_the_log_without_credentials() -> None:
    async def reconcile(request: Request[Any]) -> None:
        raise ApiError(403, "Forbidden", "Bearer abcdefghijkl may not list pods")

    controller = Controller("it", CONFIG_MAPS, reconcile, queue=STEADY)
    async with manager_of(server_with("a"), controller) as manager:
        await asyncio.sleep(5)
        [problem] = problems_of(manager)
        place = "default/a: 3 times, ApiError at controller/test_report.py:"
        assert place in problem
        assert problem.endswith(": 403 Forbidden: Bearer <redacted> may not list pods.")
        assert "abcdefghijkl" not in json.dumps([manager.report(), manager.snapshot()])


def decode(raw: bytes) -> Any:
    obj = msgspec.json.decode(raw)
    if obj["data"].get("value") == "broken":
        raise ValueError("broken")
    return obj


async def test_object_that_cannot_be_decoded_is_one_problem() -> None:
    server = server_with("fine")
    server.put("configmaps", config_map("a", value="broken"))
    two = [Controller(name, CONFIG_MAPS, Runs(), informer={"decoder": decode}) for name in ("one", "other")]
    async with manager_of(server, *two, recorder=FakeRecorder()) as manager:
        await started()
        [problem] = manager.report()["problems"]
        text = "1 key does not fit the class of one and other; default/a: the decoder refuses it: ValueError."
        assert (problem["text"], problem["key"]) == (text, "default/a")


class Refusing(Server):
    """A server that refuses lists of pods, or that breaks all connections.

    Attributes:
        refuses: whether it refuses pods.
        unreachable: whether no request is answered.
    """

    refuses = unreachable = False

    async def request(self, request: HttpRequest) -> Response:
        if self.unreachable:
            raise TransportError("api:6443: cannot connect: Connection refused")
        if self.refuses and request.path.endswith("/pods"):
            status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "pods is forbidden"}
            return response_of(403, status)
        return await super().request(request)

    def fail(self) -> None:
        """Break all connections."""
        self.unreachable = True
        for plural in ("configmaps", "pods"):
            for watch in self._open(plural):
                watch.end()


async def test_controllers_that_wait_for_a_cache_are_a_part_of_its_problem() -> None:
    server = Refusing()
    server.refuses = True
    watches = [Watch(PODS, to=lambda obj: [])]
    two = [Controller(name, CONFIG_MAPS, Runs(), watches=watches) for name in ("one", "other")]
    async with manager_of(server, *two) as manager:
        await asyncio.sleep(5)
        [problem] = problems_of(manager)
        assert problem.startswith("The cache of v1/pods has not synced (forbidden: ")
        assert problem.endswith("; one and other wait for it.")


async def test_caches_that_fail_for_one_reason_are_one_problem() -> None:
    server = Refusing()
    server.put("configmaps", config_map("a"))
    two = Controller("one", CONFIG_MAPS, Runs()), Controller("other", PODS, Runs())
    async with manager_of(server, *two) as manager:
        await started()
        server.fail()
        await asyncio.sleep(60)
        [problem] = problems_of(manager)
        assert problem.startswith("2 caches have not followed the server for ")
        assert problem.endswith(
            "(backing_off: api:6443: cannot connect: Connection refused): v1/configmaps and v1/pods."
        )


async def test_attempts_that_await_one_line_are_one_problem() -> None:
    async def reconcile(request: Request[Any]) -> None:
        await asyncio.sleep(1e6)

    controller = Controller("it", CONFIG_MAPS, reconcile, workers=3)
    async with manager_of(server_with("a", "b", "c", "d", "e"), controller, grace=0) as manager:
        await asyncio.sleep(90)
        [problem] = problems_of(manager)
        assert problem.startswith("3 attempts of it wait at controller/test_report.py:")
        end = "the longest, for default/a, for 1 min 30 s; no worker is free for 2 keys that wait."
        assert problem.endswith(end)


async def test_keys_that_wait_name_the_oldest_one_of_each_controller() -> None:
    async def reconcile(request: Request[Any]) -> None:
        await asyncio.sleep(40)

    controllers = [Controller(f"c{number}", CONFIG_MAPS, reconcile, workers=1) for number in range(KEYS + 1)]
    async with manager_of(server_with("a", "b", "c", "d"), *controllers, grace=0) as manager:
        await asyncio.sleep(90)
        problems = manager.report()["problems"]
        assert problems[-1]["text"] == "1 key waits for a worker of c50, default/d for 1 min 30 s; 1 of 1 run."
        assert ({each["key"] for each in problems}, len(problems)) == ({"default/d"}, KEYS + 1)


async def test_loop_is_named_while_it_goes_on_and_stays_in_the_figures() -> None:
    server, numbers, on = server_with("a"), count(), [True]

    async def reconcile(request: Request[Any]) -> None:
        if on:
            await asyncio.sleep(0.1)
            await request.client.core.v1.configmaps.patch("default/a", {"data": {"at": str(next(numbers))}})

    async with manager_of(server, Controller("it", CONFIG_MAPS, reconcile)) as manager:
        await asyncio.sleep(20)
        [problem] = manager.report()["problems"]
        assert problem["key"] == "default/a"
        assert problem["text"].startswith("Controller it triggers itself: default/a ran 10 times in ")
        assert problem["text"].endswith("data.at of configmaps default/a takes one value after the other.")
        on.clear()
        await asyncio.sleep(5)
        report = manager.report()
        assert report["problems"] == []
        found = report["controllers"]["it"]
        assert (found["loops"] > 0, found["last_loop"]["key"], found["looping"]) == (True, "default/a", [])


async def test_standby_says_so_and_names_the_lease() -> None:
    server = Cluster("a")
    server.leases.take("former")
    options: dict[str, Any] = {"leader_election": LeaderElection("it", identity="me"), "recorder": FakeRecorder()}
    controllers = Controller("one", CONFIG_MAPS, Runs()), Controller("other", CONFIG_MAPS, Runs())
    async with manager_of(server, *controllers, **options) as manager:
        await started()
        report = manager.report()
        assert report["standby"] == (
            "This replica is a standby: it waits for Lease default/it, which former holds. Until it leads, one and "
            "other do nothing here."
        )
        assert report["problems"] == []
        await asyncio.sleep(60)
        assert manager.report()["standby"] == ""


class Lost(Cluster):
    """A server with a Lease that cannot be reached from some moment on."""

    unreachable = False

    async def request(self, request: HttpRequest) -> Any:
        if self.unreachable:
            raise TransportError("api:6443: cannot connect: Connection refused")
        return await super().request(request)


async def test_standby_that_has_lost_the_lease_reports_no_keys_of_the_leader() -> None:
    server = Lost("a")
    options: dict[str, Any] = {"leader_election": LeaderElection("it", identity="me"), "recorder": FakeRecorder()}
    async with manager_of(server, Controller("one", CONFIG_MAPS, failing(), queue=STEADY), **options) as manager:
        await asyncio.sleep(10)
        report = manager.report()
        assert report["standby"] == ""
        assert [each["see"] for each in report["problems"]] == ["reconciler-fails"]
        server.unreachable = True
        await asyncio.sleep(60)
        report = manager.report()
        assert report["standby"] == (
            "This replica is a standby: it has lost Lease default/it, and competes for it again. Until it leads, one "
            "does nothing here."
        )
        assert report["problems"] == []


async def test_run_that_is_cut_does_not_hide_why_its_key_fails() -> None:
    attempts: list[int] = []

    async def reconcile(request: Request[Any]) -> None:
        attempts.append(request.attempt)
        if len(attempts) > 3:
            await asyncio.sleep(1e6)
        raise ValueError("wrong colour")

    server = Lost("a")
    options: dict[str, Any] = {"leader_election": LeaderElection("it", identity="me"), "recorder": FakeRecorder()}
    async with manager_of(server, Controller("one", CONFIG_MAPS, reconcile, queue=STEADY), **options) as manager:
        await asyncio.sleep(20)
        server.unreachable = True
        await asyncio.sleep(60)
        assert snapshot_of(manager)["phase"] == "standby"
        assert snapshot_of(manager)["failing"]["default/a"].endswith(": wrong colour")
