"""What a manager was configured with when it was started, and what it offers to its controllers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from aioinformer.authorization.users import Who
from aioinformer.backoff import BackoffOptions
from aioinformer.controller.answers import StatusAnswers
from aioinformer.controller.writes.permits import UnansweredWrites
from aioinformer.errors import OptionError, UsageError
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.leaderelection.leadership import LeaderElection
from aioinformer.reflector.options import check_metrics, check_seconds
from aioinformer.ring.declaration import ControllerRing
from aioinformer.state import NO_STATE
from aioinformer.webhooks.server import WebhookServer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from kubernetes_asyncio.client import ApiClient

    from aioinformer.client.client import Client
    from aioinformer.controller.writes.current import CurrentCaches
    from aioinformer.events import Recorder
    from aioinformer.factory.pool import ControllerInformers
    from aioinformer.metrics.provider import MetricsProvider
    from aioinformer.ring import Membership
    from aioinformer.transport import Transport
    from aioinformer.transport.auth.credentials import Connection
    from aioinformer.webhooks import Admission


#: The type of a condition, as the API has it.
_CONDITION: Final = re.compile(r"(?:[a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


class Restart(msgspec.Struct, frozen=True):
    """When a manager restarts a controller that has failed: one of its informers or its own code, not its reconciler.

    Attributes:
        policy: "on-failure" or "never".
        backoff: the delays before restarts; after two minutes without a failure, they begin anew.
        limit: the controller has failed for good after this many restarts in a row; None for no limit.

    Raises:
        OptionError: a value is invalid.
    """

    policy: Literal["on-failure", "never"] = "on-failure"
    backoff: BackoffOptions = BackoffOptions(initial=1.0, cap=60.0)
    limit: int | None = 10

    def __post_init__(self) -> None:
        if self.policy not in ("on-failure", "never"):
            raise OptionError(f"Restart: policy must be 'on-failure' or 'never', not {self.policy!r}")
        if self.limit is not None and self.limit < 0:
            raise OptionError(f"Restart: limit must be 0 or more, or None for no limit, not {self.limit!r}")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a manager was configured with when it was started; `Manager` describes it.

    Raises:
        UsageError: a value is invalid.
    """

    name: str
    client: Transport | Connection | ApiClient | str | None
    namespaces: tuple[str, ...]
    leader_election: LeaderElection | None
    ring: ControllerRing | None
    health_port: int | None
    health_host: str
    debug_port: int | None
    dry_run: bool
    show_values: bool
    strict_writes: bool | None
    failure_events: bool
    failure_condition: str | None
    grace: float
    restart: Restart
    resync_period: float
    max_staleness: float | None
    sync_timeout: float
    metrics: MetricsProvider | None
    metrics_check: Who | None
    factory: SharedInformerFactory | None
    recorder: Recorder | None
    admission: Admission
    webhooks: WebhookServer | None

    def __post_init__(self) -> None:
        if not self.name or str(self.name) != self.name:
            raise OptionError(f"Manager: name must be a text such as 'widgets', not {self.name!r}")
        self._check("leader_election", LeaderElection | None, "LeaderElection(…)")
        self._check("ring", ControllerRing | None, "a name such as 'widgets', or ControllerRing(…)")
        self._check("restart", Restart, "Restart(…)")
        self._check("factory", SharedInformerFactory | None, "a SharedInformerFactory")
        self._check("webhooks", WebhookServer | None, "WebhookServer(…)")
        if self.ring is not None and self.leader_election is not None:
            raise OptionError(
                "Manager: pass ring or leader_election, not both: with a ring, all replicas work, each on its objects; "
                "with leader_election, one works on all of them"
            )
        if self.factory is not None and self.namespaces:
            raise UsageError(
                "Manager: namespaces does not apply to the informers of factory; set the factory's namespace"
            )
        if self.recorder is not None and not callable(getattr(self.recorder, "event", None)):
            raise UsageError(f"Manager: recorder must be an EventRecorder, not {self.recorder!r}")
        for option, port in (("health_port", self.health_port), ("debug_port", self.debug_port)):
            if port is not None and not (type(port) is int and 0 <= port < 65536):
                raise OptionError(f"Manager: {option} must be a number from 0 to 65535, or None, not {port!r}")
        self._check("failure_events", bool, "True or False")
        if self.failure_condition is not None and not _CONDITION.fullmatch(str(self.failure_condition)):
            raise OptionError(
                "Manager: failure_condition must be the type of a condition such as 'Reconciled', or None, not "
                f"{self.failure_condition!r}"
            )
        check_seconds(self.grace, "Manager: grace")
        check_seconds(self.sync_timeout, "Manager: sync_timeout")
        if self.max_staleness is not None:
            check_seconds(self.max_staleness, "Manager: max_staleness")
        check_metrics(self.metrics)
        self._check("metrics_check", Who | None, "an Rbac")

    def _check(self, option: str, kind: Any, what: str) -> None:
        if not isinstance(value := getattr(self, option), kind):
            raise UsageError(f"Manager: {option} must be {what}, not {value!r}")


class GuardedThread(NamedTuple):
    """What runs in a thread of an attempt that needs the leadership, or a slot of the ring."""

    name: str
    slot: int | None


class Services(msgspec.Struct, frozen=True):
    """What a manager offers to its controllers.

    Attributes:
        client: its options are those of all clients of the reconcilers.
        event: records an Event: object, type, reason, message.
        caches: compares the caches with the server when a term of leadership begins.
        seen_by_leader: returns a time; earlier deletions were seen by a leader. -inf if it is not known.
        membership: in the ring of the manager; None without one.
        select_slots: waits until the caches have the objects of the slots of this replica; None without a ring.
        guarded_threads: the threads of attempts that need the leadership or a slot, by the futures of their ends.
        status_answers: what the server has answered to writes of statuses.
        unanswered: the writes of the reconcilers that have no answer.
        on_synced: is called when a controller has synced.
        state: the value of the lifespan of the manager.
    """

    settings: Settings
    client: Client
    informers: ControllerInformers
    event: Callable[[Any, str, str, str], None]
    caches: CurrentCaches
    seen_by_leader: Callable[[], float]
    membership: Membership | None = None
    select_slots: Callable[[], Coroutine[Any, Any, None]] | None = None
    guarded_threads: dict[asyncio.Future[None], GuardedThread] = msgspec.field(default_factory=dict)
    status_answers: StatusAnswers = msgspec.field(default_factory=StatusAnswers)
    unanswered: UnansweredWrites = msgspec.field(default_factory=UnansweredWrites)
    on_synced: Callable[[], object] = lambda: None
    state: Any = NO_STATE
