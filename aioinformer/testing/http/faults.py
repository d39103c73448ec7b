"""The faults of an API server, by the names that operators use.

A fault is active from `start` to `end`, or for `duration` seconds, or for a number of strikes (`times`). It strikes the
requests that match its `resources` and `verbs`. There are five sorts:

* **answers** replace the response;
* **transport** faults delay, slow down, truncate or drop the response;
* **stream** faults strike watches: those that are open when the fault starts, and those opened while it is active, each
  once, after `events` events;
* **beliefs** change what the server takes for true while they last: an old state, another time, expired credentials;
* **acts** happen once, when the fault starts: to the listening socket, to the history, or to all watches.

Faults never change stored objects, except `restore`. So after a fault, clients must converge on the state of the
server.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from aioinformer.errors import UsageError
from aioinformer.testing.api.routes import Target
from aioinformer.testing.http.fault_effects import FaultEffects

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from aioinformer.testing.state.storage import Storage

Sort = Literal["answer", "transport", "stream", "belief", "act"]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One kind of fault.

    Attributes:
        sort: see the module.
        about: what clients see.
        verbs: requests that it strikes by default; empty for all.
        defaults: its own parameters.
    """

    sort: Sort
    about: str
    verbs: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


_READS = ("list", "watch")

FAULTS: Mapping[str, FaultKind] = {
    "outage": FaultKind("act", "connections are cut and refused until the end; then the same port listens again"),
    "restart": FaultKind(
        "act",
        "watches end, connections close, the port listens again; optionally without history",
        defaults={"keep_history": False, "downtime": 0.0},
    ),
    "compaction": FaultKind("act", "all history is gone: old versions and continue tokens are 410"),
    "restore": FaultKind(
        "act", "an old state comes back, version counter included; watches end", defaults={"back": 0, "version": 0}
    ),
    "throttle": FaultKind("answer", "429 with Retry-After", defaults={"retry_after": 1}),
    "unavailable": FaultKind("answer", "503 with Retry-After", defaults={"retry_after": 1}),
    "server_error": FaultKind("answer", "5xx as a Status or as text", defaults={"status": 500, "text": False}),
    "storm": FaultKind(
        "answer",
        "one 5xx after the other; a status below 400 lets a request through",
        defaults={"statuses": (500, 502, 503, 504)},
    ),
    "unauthorized": FaultKind("answer", "401"),
    "expired_credentials": FaultKind(
        "belief",
        "401 until the client sends a new token, or one of `renewed`",
        defaults={"renewed": ()},
    ),
    "forbidden": FaultKind("answer", "403"),
    "not_found": FaultKind("answer", "404 for the resource"),
    "method_not_allowed": FaultKind("answer", "405"),
    "html": FaultKind("answer", "a web page, as proxies send it", defaults={"status": 200}),
    "too_large": FaultKind("answer", "504 'Too large resource version'; watches get it as an event", _READS),
    "expired": FaultKind(
        "answer", "410; watches get it as an event unless as_status", _READS, {"as_status": False, "events": 0}
    ),
    "refuse_send_initial_events": FaultKind("answer", "422 for streaming lists, as old servers answer", ("watch",)),
    "ignore_send_initial_events": FaultKind("answer", "streaming lists are served as ordinary watches", ("watch",)),
    "stale_replica": FaultKind(
        "belief",
        "lists and gets show the state of the start, or an older one; watches show the present",
        ("get", "list"),
        {"back": 0, "version": 0},
    ),
    "starting": FaultKind(
        "belief", "health checks fail, and 503 for custom resources and paths that are not known: parts are missing yet"
    ),
    "clock_skew": FaultKind("belief", "the Date header and all new timestamps are off", defaults={"seconds": -300.0}),
    "latency": FaultKind("transport", "answers start late", defaults={"seconds": 1.0}),
    "slow": FaultKind("transport", "a pause before every piece of an answer", _READS, {"seconds": 0.1}),
    "black_hole": FaultKind("transport", "connections stay open, and not another byte comes"),
    "slow_reader": FaultKind(
        "transport",
        "watches get nothing more, and end when `backlog` changes wait, as those of clients that do not keep up",
        ("watch",),
        {"backlog": 10},
    ),
    "half_page": FaultKind("transport", "the body of a list is cut in its middle", ("list",)),
    "no_bookmarks": FaultKind("transport", "bookmarks are not sent", ("watch",)),
    "version_only_bookmark": FaultKind("stream", "a bookmark with nothing but a version", ("watch",), {"events": 0}),
    "watch_close": FaultKind("stream", "the watch ends cleanly", ("watch",), {"events": 0}),
    "cut": FaultKind("stream", "the connection breaks in the middle of a line", ("watch",), {"events": 0}),
    "garbage": FaultKind(
        "stream", "a line that is not JSON", ("watch",), {"events": 0, "line": '{"type":"MODIFIED","object":{"kind'}
    ),
    "unknown_event_type": FaultKind("stream", "an unknown event type", ("watch",), {"events": 0}),
    "undecodable_object": FaultKind(
        "stream", "an object whose metadata is not an object", ("watch",), {"events": 0, "namespace": "", "name": ""}
    ),
    "huge_line": FaultKind("stream", "a line of many bytes", ("watch",), {"events": 0, "size": 5 * 1024 * 1024}),
    "error_event": FaultKind(
        "stream", "an ERROR event, then the end", ("watch",), {"events": 0, "status": 500, "reason": "InternalError"}
    ),
}
"""All kinds of faults, by name."""

_COMMON: Mapping[str, Any] = {"resources": (), "verbs": (), "times": 0, "duration": 0.0}


class Fault:
    """One fault that is, or was, active.

    Attributes:
        name: as in `FAULTS`.
        params: all parameters, defaults included.
        active: whether it can still strike.
        replica: the storage that a stale replica answers from.
        expired: credentials that have expired.

    Raises:
        UsageError: there is no such fault, or it has no such parameter, or the value is of another type.
    """

    def __init__(self, name: str, params: Mapping[str, Any]) -> None:
        kind = FAULTS.get(name)
        if kind is None:
            raise UsageError(f"there is no fault named {name!r}; choose one of {', '.join(sorted(FAULTS))}")
        allowed = {**_COMMON, **kind.defaults}
        unknown = sorted(set(params) - set(allowed))
        if unknown:
            raise UsageError(f"fault {name!r} has no parameter {unknown[0]!r}; it takes {', '.join(sorted(allowed))}")
        self.name = name
        self.kind = kind
        self.params: dict[str, Any] = {**allowed, **params}
        self._resources = _names(name, "resources", self.params["resources"])
        if "renewed" in allowed:
            self.params["renewed"] = tuple(sorted(_names(name, "renewed", self.params["renewed"])))
        self._verbs = _names(name, "verbs", self.params["verbs"]) or frozenset(kind.verbs)
        for parameter, default in allowed.items():
            _check(name, parameter, default, self.params[parameter])
        self.strikes = 0
        self.active = True
        self.replica: Storage | None = None
        self.expired: frozenset[str] = frozenset()

    def matches(self, target: Target) -> bool:
        """Return whether this fault strikes a request."""
        if not self.active or (self._verbs and target.verb not in self._verbs):
            return False
        if not self._resources:
            return True
        if target.served is None:
            return False
        resource = target.served.resource
        return not self._resources.isdisjoint((resource.plural, resource.group_resource, resource.gvr))

    def strike(self) -> None:
        """Count one strike; the last one of `times` ends the fault."""
        self.strikes += 1
        if self.params["times"] and self.strikes >= self.params["times"]:
            self.active = False

    def status(self) -> int:
        """The HTTP status of the latest strike of a fault that responds with one."""
        if "statuses" not in self.params:
            return int(self.params["status"])
        statuses = self.params["statuses"]
        return int(statuses[(self.strikes - 1) % len(statuses)])

    def describe(self) -> dict[str, Any]:
        """Return a description for people and for `GET /_faults`."""
        params = {name: value for name, value in self.params.items() if value or name not in _COMMON}
        params = {name: list(value) if isinstance(value, (tuple, set)) else value for name, value in params.items()}
        return {"name": self.name, "active": self.active, "strikes": self.strikes, "params": params}


class FaultSet:
    """The faults of one server."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self.on_start: Callable[[Fault], None] = lambda fault: None

    def start(self, fault: Fault) -> None:
        self._faults = [known for known in self._faults if known.active]
        self._faults.append(fault)
        self.on_start(fault)

    def active(self, name: str = "") -> list[Fault]:
        return [fault for fault in self._faults if fault.active and name in ("", fault.name)]

    def strike(self, name: str, target: Target) -> Fault | None:
        """Return the active fault of this name that matches a request, and count a strike."""
        for fault in self._faults:
            if fault.name == name and fault.matches(target):
                fault.strike()
                return fault
        return None

    def standing(self, name: str, target: Target) -> Fault | None:
        """Return the active fault of this name that matches a request, without counting a strike."""
        return next((fault for fault in self._faults if fault.name == name and fault.matches(target)), None)

    def clock_skew(self) -> float:
        """Return the seconds by which the server's clock is wrong."""
        return sum(float(fault.params["seconds"]) for fault in self.active("clock_skew"))

    def strike_sort(self, sort: Sort, target: Target, *, but: Iterable[str] = ()) -> Fault | None:
        """Return the oldest active fault of a sort that matches a request, and count a strike."""
        for fault in self._faults:
            if fault.kind.sort == sort and fault.name not in but and fault.matches(target):
                fault.strike()
                return fault
        return None

    def matching(self, sort: Sort, target: Target) -> list[Fault]:
        """Return all active faults of a sort that match, without counting strikes."""
        return [fault for fault in self._faults if fault.kind.sort == sort and fault.matches(target)]


def _check(fault: str, parameter: str, default: Any, value: Any) -> None:
    """Refuse a value of another type than the default."""
    if isinstance(default, bool):
        right = isinstance(value, bool)
        wanted = "true or false"
    elif isinstance(default, (int, float)):
        least = -math.inf if default < 0 else 0
        right = isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value < math.inf
        wanted = "a number" if default < 0 else "a number of at least 0"
    elif isinstance(default, str):
        right = isinstance(value, str)
        wanted = "a text"
    elif parameter == "statuses":
        right = isinstance(value, (list, tuple)) and bool(value) and all(type(each) is int for each in value)
        wanted = "a list of HTTP statuses"
    else:
        return
    if not right:
        raise UsageError(f"fault {fault!r}: {parameter} must be {wanted}, not {value!r}")


def _names(fault: str, parameter: str, value: Any) -> frozenset[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"fault {fault!r}: {parameter} must be a name or a list of names, not {value!r}")
    return frozenset(names)


class FaultScope:
    """A fault that is about to start: `await` it, or use it as an async context manager that ends it."""

    def __init__(self, effects: FaultEffects, fault: Fault) -> None:
        self._effects = effects
        self.fault = fault

    def __await__(self) -> Generator[Any, None, Fault]:
        return self._start().__await__()

    async def end(self) -> None:
        """End the fault if it has not ended by itself."""
        await self._effects.end(self.fault)

    async def _start(self) -> Fault:
        await self._effects.start(self.fault)
        return self.fault

    async def __aenter__(self) -> Fault:
        return await self._start()

    async def __aexit__(self, *_: object) -> None:
        await self.end()
