"""`Office`: what a replica holds beside the others, the leadership or slots of a ring: it stands, leads and steps down.

`Standing` decides whether the replica stands; this module applies that, and lets the controllers work meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from aioinformer.controller.running.standing import Standing
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.controller.running.active import ActiveController
    from aioinformer.controller.running.background_tasks import BackgroundTasks
    from aioinformer.controller.running.replica import Replica
    from aioinformer.controller.running.settings import GuardedThread, Settings
    from aioinformer.controller.running.supervised import Supervised
    from aioinformer.controller.writes.permits import UnansweredWrites
    from aioinformer.leaderelection.elector import Term
    from aioinformer.leaderelection.leadership import Leadership

_log = get_logger("aioinformer.controller")

#: Seconds between two looks at whether the controllers are able to work.
_LOOK: Final = 1.0


class Office:
    """The office of one replica. Without leader election and ring, its controllers always work.

    Args:
        settings: of the manager.
        controllers: the running controllers by name.
        background: the background tasks, some of which need the leadership.
        threads: the threads that go on after their attempts, which the leadership must outlast.
        unanswered: the writes that are aborted at the end of a term.
        has_stopped: returns whether the stop has given up the threads that are left.

    Attributes:
        leadership: None without leader election.
        replica: of the ring; None without one.
        term: in which this replica leads; None while it does not.
        unfit: why this replica has stepped down; "" while it has not.
        able_changed: set it when a controller has synced.
    """

    def __init__(
        self,
        settings: Settings,
        controllers: Mapping[str, Supervised],
        background: BackgroundTasks,
        threads: Mapping[asyncio.Future[None], GuardedThread],
        unanswered: UnansweredWrites,
        has_stopped: Callable[[], bool],
    ) -> None:
        self.leadership: Leadership | None = None
        self.replica: Replica | None = None
        self.term: Term | None = None
        self.unfit = ""
        self.able_changed = asyncio.Event()
        self._settings = settings
        self._controllers = controllers
        self._background = background
        self._threads = threads
        self._unanswered = unanswered
        self._has_stopped = has_stopped
        #: Set while this replica does not stand.
        self._resigned = asyncio.Event()

    def permit(self, active: ActiveController) -> None:
        """Let a controller that is new work, if this replica may."""
        if self.leadership is None or not active.controller.elected:
            active.permit()
            if self.replica is not None and (accepted := set(self.replica.membership.accepted)):
                active.change_share(accepted, set(), set())
        elif self.term is not None:
            active.permit(self.term)

    def compete(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Take part in the election, or in the ring. Return the tasks to cancel at the stop."""
        competing = []
        if self.leadership is not None or self.replica is not None:
            standing = Standing(self._settings.sync_timeout, asyncio.get_running_loop().time())
            self._apply(standing)
            self._decide(standing)
            competing.append(tasks.create_task(self._stand(standing), name=f"manager {self._settings.name}: standing"))
        if self.leadership is not None:
            leading = self._lead_repeatedly(self.leadership)
            competing.append(tasks.create_task(leading, name=f"manager {self._settings.name}: leadership"))
        if self.replica is not None:
            self.replica.start(tasks)
        return competing

    async def _stand(self, standing: Standing) -> None:
        """Decide again whenever a controller has synced, and every second."""
        clock = asyncio.get_running_loop().time
        while True:
            self.able_changed.clear()
            try:
                async with asyncio.timeout(min(_LOOK, standing.seconds_left(clock()))):
                    await self.able_changed.wait()
            except TimeoutError:
                pass
            self._decide(standing)

    def _decide(self, standing: Standing) -> None:
        elected = [each for each in self._controllers.values() if each.controller.elected]
        able = [each.is_able for each in elected]
        in_office = self.term is not None or (self.replica is not None and bool(self.replica.membership.accepted))
        if not standing.update(able, asyncio.get_running_loop().time(), in_office=in_office):
            return
        waits = "; ".join(filter(None, (", ".join(each.active.inputs.waits_for()) for each in elected)))
        name = self._settings.name
        limit = self._settings.sync_timeout
        if not standing.stands:
            line = "manager %s gives up %s: no controller has been able to work for %g s (%s); it stands again in %g s"
            office = "the leadership" if self.replica is None else "its slots"
            _log.warning(line, name, office, limit, waits or "see their states", standing.paused)
        elif able and not any(able):
            line = "manager %s stands although no controller has been able to work for %g s: %s"
            _log.warning(line, name, limit, waits or "see their states")
        self._apply(standing)

    def _apply(self, standing: Standing) -> None:
        """Let the election and the ring know whether this replica stands."""
        if standing.stands:
            reason = ""
        else:
            reason = "this replica does not stand before its controllers have synced"
        if standing.paused:
            limit = self._settings.sync_timeout
            reason = f"no controller of this replica has been able to work for {limit:g} s: another one may"
        self.unfit = reason if standing.paused else ""
        if standing.stands:
            self._resigned.clear()
        else:
            self._resigned.set()
        if self.leadership is not None:
            self.leadership.stand(standing.stands)
        if self.replica is not None:
            self.replica.membership.stand(standing.stands, reason)

    async def _lead_repeatedly(self, leadership: Leadership) -> None:
        while True:
            await leadership.run(self._lead)  # which returns when this replica steps down

    async def _lead(self, term: Term) -> None:
        """Let the elected controllers and background tasks work during a term, until this replica steps down."""
        self.term = term
        for each in self._elected():
            each.permit(term)
        self._background.begin(elected=True, term=term)
        try:
            await self._resigned.wait()
        finally:
            self.term = None
            self._unanswered.abort_refused()
            threads = self._threads
            try:
                revoking = (each.revoke() for each in self._elected())
                await asyncio.gather(*revoking, self._background.end(elected_only=True))
                while threads and not self._has_stopped():  # the stop has given up those that are left
                    await asyncio.wait(threads)
            finally:
                if threads:
                    term.release = False
                    names = ", ".join(each.name for each in threads.values())
                    _log.error("the Lease is not released, and must expire: threads go on: %s", names)
                term.end()
                self._unanswered.abort_refused()

    def _elected(self) -> list[ActiveController]:
        return [each.active for each in self._controllers.values() if each.controller.elected]
