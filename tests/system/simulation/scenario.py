"""The scenario of a seed: an informer, its handlers, and all actions on it and its server, with their times.

Everything is drawn before the start, so that a scenario can run again without some of its actions.

Faults are between the model server and the informer, by name: a superset of `aioinformer.testing.FAULTS`. *Answers*
replace a response. *Transport* faults change how a response arrives. *Stream* faults affect a watch once it has
delivered a number of events. *Acts* affect the whole server.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from aioinformer import RunOptions
from aioinformer.backoff import BackoffOptions
from aioinformer.cache import Storage
from tests.system.simulation.collection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.cache import StorageTier
    from aioinformer.informer import QueueName


#: name -> the response: status, body, and whether watches receive it as an event.
ANSWERS = (
    "refuse",
    "throttle",
    "unavailable",
    "server_error",
    "server_error_text",
    "unauthorized",
    "forbidden",
    "not_found",
    "not_allowed",
    "html",
    "too_large",
    "expired",
    "no_answer",
    "refuse_streams",
    "ignore_streams",
    "stale",
)
TRANSPORT = ("latency", "slow", "black_hole", "half_page", "no_bookmarks", "bits")
STREAMS = (
    "close",
    "cut",
    "end_in_line",
    "garbage",
    "unknown_type",
    "huge_line",
    "error_event",
    "expired_event",
    "bookmark_and_close",
    "double",
    "own_version",
)
ACTS = ("outage", "restart", "compaction", "restore")

#: Each fourth seed has one of them: streaming lists that are refused with 429 or lack their end, and watches that hang
#: while all other requests are answered. They are drawn apart, so that they change no other draw.
ALONE = ("busy_streams", "endless_streams", "hang")

_DRAWN = (*ANSWERS, *TRANSPORT, *STREAMS, *ACTS)
FAULTS = (*_DRAWN, *ALONE)

#: Faults after which versions go back; two of them at a time cannot be distinguished.
REWINDING = frozenset({"restore", "stale"})


@dataclass
class Fault:
    """An active or future fault. It affects a share of the requests, and some times at most; 0 is no limit."""

    name: str
    until: float
    verbs: frozenset[str] = frozenset({"list", "watch"})
    share: float = 1.0
    times: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    strikes: int = 0

    def over(self, now: float) -> bool:
        """Return whether it has ended."""
        return now >= self.until or (self.times > 0 and self.strikes >= self.times)

    def __str__(self) -> str:
        params = "".join(f", {name}={value}" for name, value in self.params.items())
        return f"{self.name} ({'/'.join(sorted(self.verbs))}, share {self.share:.1f}{params})"


_NAMESPACES = ("default", "kube-system", "web")
#: The default is drawn more often.
_TIERS: tuple[StorageTier, ...] = (Storage.BYTES, Storage.BYTES, *Storage)
#: Faults that are drawn more often: they have consequences only together with others.
_OFTEN = ("restore", "restore", "restart", "compaction", "stale", "double")
_HIGHEST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Manner:
    """The behaviour of a handler.

    Attributes:
        plain: whether its methods are plain functions.
        paces: durations of a call; one is drawn for each call.
        errors: share of calls that raise.
        resync: its resync period, None for that of the informer.
        leaves_after: number of the call that removes the handler, 0 for none.
        brings_after: number of the call that registers another handler, 0 for none.
    """

    plain: bool = False
    paces: tuple[float, ...] = (0.0,)
    errors: float = 0.0
    resync: float | None = None
    leaves_after: int = 0
    brings_after: int = 0


@dataclass(frozen=True, slots=True)
class Action:
    """An action: a method of the stage, and its arguments."""

    at: float
    kind: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that is drawn before the start.

    Attributes:
        handlers: that are registered before the start.
        starts: time of the informer's start.
        stops_at: number of the loop's iteration that cancels everything, 0 for none.
        stops_again: iterations until a second cancellation, 0 for none.
        turn_seconds: duration of an iteration of the loop.
        slice_share: share of clock reads after which a slice ends.
    """

    seed: int
    selection: Selection
    queue: QueueName
    storage: StorageTier
    resync: float
    options: RunOptions
    handlers: tuple[Manner, ...]
    actions: tuple[Action, ...]
    starts: float
    stops_at: int
    stops_again: int
    turn_seconds: float
    slice_share: float

    @property
    def ends(self) -> float:
        """The time of the last action's end."""
        return self.actions[-1].at + 1 if self.actions else 1.0

    def described(self) -> str:
        """A short description of the informer."""
        options = self.options
        return (
            f"queue {self.queue}, storage {self.storage}, {'streams' if options.streaming_list else 'pages'} "
            f"of {options.page_size or 'everything'}, resync {self.resync:g} s, {self.selection}, "
            f"{len(self.actions)} actions" + (f", cancelled after {self.stops_at} turns" if self.stops_at else "")
        )

    def without(self, numbers: Iterable[int]) -> Scenario:
        """Return the scenario without some actions."""
        left_out = set(numbers)
        return replace(self, actions=tuple(each for at, each in enumerate(self.actions) if at not in left_out))


def draw(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    random = Random(f"scenario {seed}")
    length = random.choice((20.0, 60.0, 60.0, 200.0))
    grid = random.choice((0.0, 0.0, 1.0))
    selection = Selection(namespace=random.choice(("", "", "", "default")), app=random.choice(("", "", "", "a")))
    alone = _alone(Random(f"fault alone {seed}"), length) if seed % 4 == 0 else []
    resync = random.choice((0.0, 0.0, 1.0, 7.0))
    return Scenario(
        seed=seed,
        selection=selection,
        queue=random.choice(("delta", "in_order")),
        storage=random.choice(_TIERS),
        resync=resync,
        options=_options(random),
        handlers=tuple(_manner(random, resync) for _ in range(random.choice((1, 1, 2, 3)))),
        actions=tuple(sorted(_on_grid(_actions(random, length, resync) + alone, grid), key=lambda action: action.at)),
        starts=random.choice((0.0, 0.0, length / 10)),
        stops_at=int(10 ** random.uniform(0, 3.3)) if random.random() < 0.25 else 0,
        stops_again=random.choice((0, 0, 1, 2, 5)),
        turn_seconds=random.choice((0.0, 0.0, 1e-4, 1e-3, 1e-2)),
        slice_share=random.choice((0.0, 0.1, 0.5, 1.0)),
    )


def _options(random: Random) -> RunOptions:
    streaming = random.random() < 0.5
    return RunOptions(
        page_size=random.choice((0, 1, 3, 3, 500)),
        streaming_list=streaming,
        list_resource_version=random.choice(("", "", "", "0")),
        min_watch_timeout=random.choice((2.0, 10.0, 300.0, 300.0)),
        backoff=BackoffOptions(),
        max_frame=_HIGHEST_BYTES,
    )


def _manner(random: Random, resync: float) -> Manner:
    return Manner(
        plain=random.random() < 0.3,
        paces=random.choice(((0.0,), (0.0,), (0.0, 0.0, 0.01), (0.1,), (0.0, 3.0), (0.0, 0.5, 20.0))),
        errors=random.choice((0.0, 0.0, 0.0, 0.2, 1.0)),
        resync=random.choice((None, None, 0.0, 3.0)) if resync else None,
        leaves_after=random.choice((0,) * 9 + (random.randint(1, 20),)),
        brings_after=random.choice((0,) * 9 + (random.randint(1, 20),)),
    )


def _actions(random: Random, length: float, resync: float) -> list[Action]:
    keys = [f"{random.choice(_NAMESPACES)}/{name}" for name in "abcdefghijkl"[: random.choice((2, 4, 8, 12))]]
    actions = [Action(0.0, "put", _object(random, key)) for key in keys if random.random() < 0.6]
    for _ in range(random.choice((5, 20, 40, 80))):
        actions += _write(random, random.uniform(0, length), keys)
    for _ in range(random.choice((0, 0, 1, 3))):
        actions.append(Action(random.uniform(0, length), "join", {"manner": _manner(random, resync)}))
    for _ in range(random.choice((0, 0, 1, 2))):
        actions.append(Action(random.uniform(0, length), "leave", {"number": random.randrange(4)}))
    for _ in range(random.choice((0, 0, 1))):
        in_slices = random.random() < 0.5
        actions.append(Action(random.uniform(0, length), "index", {"in_slices": in_slices}))
    for _ in range(random.choice((0, 0, 2))):
        params = {"key": random.choice(keys), "gone": random.random() < 0.4, "patience": random.choice((1.0, 50.0))}
        actions.append(Action(random.uniform(0, length), "wait_for", params))
    for _ in range(random.choice((0, 0, 2))):
        params = {"object": _object(random, random.choice(keys)), "patience": random.choice((0.5, 100.0))}
        actions.append(Action(random.uniform(0, length), "write_and_wait", params))
    names = random.sample((*_DRAWN, *_OFTEN), random.choice((0, 1, 2, 4, 6)))
    rewinding = [name for name in names if name in REWINDING]
    for name in names:
        if name in REWINDING and name != rewinding[0]:
            continue
        for _ in range(random.choice((1, 1, 2, 4))):
            fault = _fault(random, name, length)
            actions.append(fault)
            if name == "stale":  # a fail-over may lead to a replica that is behind
                restart = Fault("restart", 0.0, params={"keep": False})
                actions.append(Action(fault.at + 0.001, "fault", {"fault": restart}))
    return actions


def _alone(random: Random, length: float) -> list[Action]:
    """Return one of the faults that are drawn apart."""
    fault = Fault(random.choice(ALONE), random.choice((30.0, 150.0, 400.0)), frozenset({"watch"}))
    fault.params = {"retry_after": random.choice((0, 1, 5))}
    return [Action(random.choice((0.0, random.uniform(0, length))), "fault", {"fault": fault})]


def _on_grid(actions: list[Action], grid: float) -> list[Action]:
    """Return the scenario with rounded times, so that many actions and timers coincide."""
    return [replace(action, at=round(action.at / grid) * grid) for action in actions] if grid else actions


def _write(random: Random, at: float, keys: list[str]) -> list[Action]:
    key = random.choice(keys)
    match random.choices(
        ("put", "touch", "delete", "recreate", "noop", "unreadable", "burst"), (30, 30, 15, 10, 5, 2, 8)
    )[0]:
        case "recreate":
            later = at + random.choice((0.0, 0.0, 0.001, 0.5))
            return [Action(at, "delete", {"key": key}), Action(later, "put", _object(random, key))]
        case "unreadable":
            return [Action(at, "put", _object(random, key) | {"readable": False})]
        case "burst":
            count = random.choice((3, 10, 30))
            return [
                Action(at, random.choice(("touch", "touch", "put", "delete")), _object(random, random.choice(keys)))
                for _ in range(count)
            ]
        case kind:
            return [Action(at, kind, _object(random, key))]


def _object(random: Random, key: str) -> dict[str, Any]:
    size = random.choice((0, 0, 0, 50, 400))
    return {"key": key, "app": random.choice("aaabc"), "node": f"node-{random.randrange(3)}", "size": size}


def _fault(random: Random, name: str, length: float) -> Action:
    at = random.choice((0.0, random.uniform(0, length), random.uniform(0, length)))
    lasts = random.choice((0.1, 3.0, 30.0, 150.0))
    verbs = random.choice(({"list", "watch"}, {"list", "watch"}, {"list"}, {"watch"}))
    params: dict[str, Any] = {}
    match name:
        case "throttle" | "unavailable":
            params = {"retry_after": random.choice((0, 1, 5, 40)), "dated": random.random() < 0.2}
        case "html":
            params = {"status": random.choice((200, 502))}
        case "latency":
            params = {"seconds": random.choice((0.05, 1.0, 8.0))}
        case "slow":
            params = {"seconds": random.choice((0.01, 0.2, 2.0))}
        case "stale":
            params = {"back": random.choice((1, 3, 10))}
            at = random.uniform(length / 5, length)
        case "huge_line":
            params = {"size": _HIGHEST_BYTES + 1, "events": random.randrange(3)}
        case "restart":
            params = {"keep": random.random() < 0.5}
        case "compaction":
            params = {"keep": random.choice((0, 0, 3, 10))}
        case "restore":
            params = {
                "back": random.choice((1, 2, 5, 20)),
                "bump": random.random() < 0.3,
                "redo": random.random() < 0.5,
            }
        case "no_answer":
            lasts = min(lasts, 30.0)
        case _:
            params = {"events": random.choice((0, 0, 1, 3))}
    if name in STREAMS or name in ("refuse_streams", "ignore_streams", "no_bookmarks"):
        verbs = {"watch"}
    elif name in ("half_page", "stale"):
        verbs = {"list", "watch"}
    share = random.choice((1.0, 1.0, 0.5, 0.2))
    times = random.choice((0, 1, 5))
    return Action(at, "fault", {"fault": Fault(name, lasts, frozenset(verbs), share, times, params)})
