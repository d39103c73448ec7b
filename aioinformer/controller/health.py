"""Health of a manager: is it alive, is it ready, and the HTTP server that answers the probes of kubelet.

A process that is not alive must be restarted, so failures of the API server do not matter for that. A process that is
not ready works, or waits to work, on old caches. A standby that waits for the leadership is ready. With admission
functions, readiness decides whether the API server reaches them, and thus whether anybody can write: so only the checks
of these decide then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from aioinformer.authorization.users import AccessDenied, Unauthenticated, Who, permitted_path
from aioinformer.listening import listening
from aioinformer.logs import get_logger
from aioinformer.metrics.counters import LATENESS_BOUNDS, DurationCounter
from aioinformer.reflector.protocol.changes import summary
from aioinformer.serving import Answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.controller.report import ControllerSnapshot, ManagerSnapshot
    from aioinformer.serving import WebRequest

_log = get_logger("aioinformer.controller")

#: Seconds without progress after which a worker hangs.
STALLED: Final = 600.0
#: Seconds for which a cache that has synced may fail to follow the server until it is not fresh. They begin when the
#: loss is noticed: in a quiet cluster, the last event may have been hours before.
STALE: Final = 60.0
#: Seconds between two measurements of how late timers are.
_BEAT: Final = 1.0
#: Seconds by which a timer may be late until the event loop counts as blocked.
_LATE: Final = 10.0
#: At a time: those of kubelet, Prometheus and people.
_CONNECTIONS: Final = 64
#: Bytes: probes have no body.
_BODY: Final = 1024
#: The checks of readiness that decide whether reviews are answered.
_ANSWERING: Final = frozenset(("manager", "webhooks"))
_TEXT: Final = "text/plain; charset=utf-8"
_NO_METRICS: Final = (
    b"there are no metrics: install aioinformer[prometheus]; without `aioinformer run` or main(), also pass "
    b"metrics=PrometheusMetrics() to the manager\n"
)


class Health(msgspec.Struct, frozen=True):
    """The result of checks. It is true if all that decide have passed.

    Attributes:
        checks: name of each check -> why it has failed; "" if it has passed.
        deciding: the names of the checks that decide; None for all.
    """

    checks: Mapping[str, str] = {}
    deciding: frozenset[str] | None = None

    def __bool__(self) -> bool:
        return not any(why for name, why in self.checks.items() if self.deciding is None or name in self.deciding)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The failures of all checks, also of those that do not decide: "check: reason" of each."""
        return tuple(f"{name}: {reason}" for name, reason in self.checks.items() if reason)

    def __str__(self) -> str:
        return "; ".join(self.reasons) or "ok"


class Progress:
    """Detects workers that make no progress, from the snapshots of a manager that it is given.

    Args:
        limit: name of a controller -> seconds for which an attempt may run, and for which requests may wait for a free
            worker; `math.inf` for attempts without a limit.
    """

    def __init__(self, limit: Callable[[str], float] = lambda name: STALLED) -> None:
        self._limit = limit
        #: Controllers with requests for their free workers: how many attempts there have been, and since when.
        self._idle: dict[str, tuple[int, float]] = {}

    def check(self, controllers: Mapping[str, ControllerSnapshot], now: float) -> dict[str, str]:
        """Return "controller <name>" -> which worker hangs; "" for none. `now` is by the event loop's clock."""
        return {f"controller {name}": self._stall(name, each, now) for name, each in controllers.items()}

    def _stall(self, name: str, snapshot: ControllerSnapshot, now: float) -> str:
        limit = self._limit(name)
        running = snapshot["running"]
        for each in running:
            if each["seconds"] > limit:
                return f"the attempt for {each['key']} has been running for {each['seconds']:.0f} s"
        limit = STALLED if limit == float("inf") else limit
        attempts = sum(snapshot["results"].values()) + len(running)
        free = snapshot["workers"] - len(running)
        if snapshot["phase"] != "working" or not snapshot["ready"] or free <= 0:
            self._idle.pop(name, None)
            return ""
        known, since = self._idle.get(name, (attempts, now))
        if known != attempts:
            since = now
        self._idle[name] = (attempts, since)
        if now - since <= limit:
            return ""
        return f"{snapshot['ready']} requests wait for {free} free workers, and none has begun for {now - since:.0f} s"


def readiness(snapshot: ManagerSnapshot, max_staleness: float | None = STALE) -> Health:
    """Return whether the controllers of a manager have synced, see all of their objects, and their caches are fresh.

    With admission functions, it is decided by whether they can answer: the manager runs, serves them, and the caches
    that they read have synced.

    Args:
        max_staleness: seconds for which a cache that has synced may not have followed the server; None for no limit.
    """
    limit = float("inf") if max_staleness is None else max_staleness
    checks = {"manager": "" if snapshot["running"] else "it does not run"}
    if snapshot["leader"] is not None:
        checks["leader election"] = snapshot["election"]
    if (ring := snapshot["ring"]) is not None:
        checks["ring"] = ring["waits_for"] or ring["gap"]
    if snapshot["lifespan"] is not None:
        checks["lifespan"] = "it is being entered" if snapshot["lifespan"] == "entering" else ""
    for name, task in snapshot["background"].items():
        reason = task["failure"]
        checks[f"background task {name}"] = f"it has failed, and is {task['phase']}: {reason}" if reason else ""
    for name, each in snapshot["controllers"].items():
        failure = snapshot["failed"].get(name, "")
        lacking = each["waits_for"]
        lag = "not caught up" if each["phase"] == "catching up" else "not synced"
        unseen = each["undecodable"]
        if unseen:
            blind = f"{summary(unseen, len(unseen))}, and no handler is declared for them"
        else:
            blind = ""
        checks[f"controller {name}"] = failure or (f"{lag}: {', '.join(lacking)}" if lacking else blind)
    if (waits := snapshot["webhooks"]) is not None:
        checks["webhooks"] = f"not ready: {', '.join(waits)}" if waits else ""
    deciding = None if waits is None else _ANSWERING
    if (caches := snapshot["informers"]) is None:
        return Health(checks, deciding)
    for name, cache in caches["informers"].items():
        stale = cache["stale_since"]
        state = f"{cache['phase']}: {cache['reason']}"
        age = 0.0 if stale is None or not cache["synced"] else caches["time"] - stale
        checks[f"cache {name}"] = f"not fresh for {age:.0f} s: {state}" if age > limit else ""
        if cache["phase"] == "stopped":
            checks[f"cache {name}"] = state.removesuffix(": ")
    return Health(checks, deciding)


class Pulse:
    """Measures every second how late the timers of the event loop are.

    Attributes:
        late: the last result, in seconds.
        delays: all results.
    """

    def __init__(self) -> None:
        self.late = 0.0
        self.delays = DurationCounter(LATENESS_BOUNDS)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to measure."""
        self._beat(asyncio.get_running_loop().time())

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self, due: float) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self.late = now - due
        self.delays.observe(self.late)
        self._timer = loop.call_at(now + _BEAT, self._beat, now + _BEAT)


class HealthServer:
    """Answers `/livez`, `/healthz` (the same) and `/readyz`, with `?verbose` for all checks, and `/metrics`.

    The status is 200, or 503 with the checks. With `?verbose`, all checks count, also those that do not decide.

    Args:
        alive: returns whether the process is alive; the server adds a check of the event loop.
        ready: returns whether it is ready.
        host: the address to listen on; "" for all.
        port: 0 for any free port.
        metrics: a `PrometheusMetrics`, whose registry `/metrics` exports; other providers are not exported.
        late: returns by how many seconds timers of the event loop are late.
        metrics_check: who may read `/metrics`; None for everybody who reaches the port.

    Attributes:
        port: the port; of 0, the one that was chosen, once the server listens.
    """

    def __init__(
        self,
        alive: Callable[[], Health],
        ready: Callable[[], Health],
        *,
        host: str = "",
        port: int = 0,
        metrics: Any = None,
        late: Callable[[], float] = lambda: 0.0,
        metrics_check: Who | None = None,
    ) -> None:
        self.port = port
        self._host = host
        self._probes = {"/livez": lambda: self._with_loop(alive()), "/readyz": ready}
        self._registry: Any = getattr(metrics, "registry", None)
        self._metrics_check = metrics_check
        self._failed: set[str] = set()
        self._late = late

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Self]:
        """Listen while the block runs.

        Raises:
            UsageError: the server cannot listen at its address.
        """
        remedy = "choose another health_port (--health-port) or host"
        async with listening(
            self._respond, _BODY, self._host, self.port, what="the health server", remedy=remedy, most=_CONNECTIONS
        ) as found:
            self.port = found.number
            if self._registry is None:
                paths = "/livez and /readyz"
            else:
                paths = "/livez, /readyz and /metrics"
            _log.info("probes listen at http://%s:%d%s", _in_url(self._host), self.port, paths)
            yield self

    def _with_loop(self, health: Health) -> Health:
        late = self._late()
        reason = f"it was blocked for {late:.0f} s" if late > _LATE else ""
        return Health({"event loop": reason, **health.checks})

    async def _respond(self, request: WebRequest) -> Answer:
        path = f"/{request.path.strip('/')}"
        path = "/livez" if path == "/healthz" else path
        if path == "/metrics" and self._registry is None:
            return Answer(404, _TEXT, _NO_METRICS)
        if path not in self._probes and path != "/metrics":
            return Answer(404, _TEXT, b"read /livez or /readyz\n")
        if request.method not in ("GET", "HEAD"):
            return Answer(405, _TEXT, b"probes are read by GET\n", {"Allow": "GET, HEAD"})
        if path == "/metrics":
            return await self._metrics(request)
        return self._probe(path, verbose="verbose" in request.query)

    def _probe(self, path: str, *, verbose: bool) -> Answer:
        health = self._probes[path]()
        if bool(health) is (path in self._failed):
            if health:
                self._failed.discard(path)
                _log.info("probe %s passes again", path)
            else:
                self._failed.add(path)
                _log.warning("probe %s fails: %s", path, health)
        passed = not health.reasons if verbose else bool(health)
        if passed and not verbose:
            return Answer(200, _TEXT, b"ok\n")
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in health.checks.items()]
        lines.append(f"{path[1:]} check {'passed' if passed else 'failed'}")
        if health and not passed:
            lines.append("reviews are answered, so the probe without ?verbose passes")
        return Answer(200 if passed else 503, _TEXT, "\n".join([*lines, ""]).encode())

    async def _metrics(self, request: WebRequest) -> Answer:
        from prometheus_client.exposition import choose_encoder

        if self._metrics_check is not None:
            try:
                await permitted_path(self._metrics_check, request.headers, request.client, request.method, "/metrics")
            except (Unauthenticated, AccessDenied) as refused:
                return Answer(refused.status, _TEXT, f"{refused}\n".encode(), refused.headers)
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        body = await asyncio.to_thread(encode, self._registry)
        return Answer(200, content_type, body)


def _in_url(host: str) -> str:
    """Return how a URL names the address that a server listens on."""
    if not host:
        return "0.0.0.0"
    return f"[{host}]" if ":" in host else host
