"""`Supervised`: one controller of a running manager, and its restarts."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, Final

from aioinformer.backoff import Backoff
from aioinformer.controller.running.active import ActiveController
from aioinformer.controller.writes import defaults
from aioinformer.controller.writes.own_writes import OwnWrites
from aioinformer.controller.writes.sender import WritePolicy
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.logs import get_logger
from aioinformer.reflector.state import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.controller.declaration import Controller
    from aioinformer.controller.report import ControllerReport
    from aioinformer.controller.running.settings import Services
    from aioinformer.workqueue.requests.request_queue import RequestQueue

_log = get_logger("aioinformer.controller")

#: Phases of an informer whose requests the server refuses, and would answer to another replica perhaps.
_REFUSED: Final = frozenset({Phase.FORBIDDEN, Phase.UNAUTHORIZED, Phase.NOT_FOUND, Phase.NOT_ALLOWED})


class Supervised:
    """One controller of a running manager. Call `attach`, start the informers, and call `start`.

    `permit` lets a new `ActiveController` work if it may; `on_failed` is called when the controller fails for good.

    Attributes:
        active: the running controller; after a restart, another one.
        ended: whether it has stopped or failed for good.
        restarting: why it is about to be restarted; "" if it is not.

    Raises:
        UsageError: the controller runs already, in another manager.
    """

    def __init__(
        self,
        controller: Controller[Any],
        services: Services,
        *,
        permit: Callable[[ActiveController], None],
        on_failed: Callable[[Controller[Any], BaseException], None],
    ) -> None:
        settings = services.settings
        controller.ledger.check_free(controller.name, settings.name)
        self.controller = controller
        self._services = services
        self._ledger = controller.ledger
        self._permit = permit
        self._on_failed = on_failed
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._backoff = Backoff(settings.restart.backoff, random=random.random)
        self._restarts = 0
        self.restarting = ""
        self.ended = False
        if settings.strict_writes is None:
            strict = defaults.strict_writes
        else:
            strict = settings.strict_writes
        policy = WritePolicy(
            controller.writes,
            status_of=controller.resource,
            strict=strict,
            dry_run=settings.dry_run,
            show_values=settings.show_values,
            log=_log,
        )
        self._own = OwnWrites(
            lambda group, plural: self.active.inputs.informers_of(group, plural),  # of the run that is active then
            services.client,
            field_manager=controller.name,
            policy=policy,
        )
        self.active = self._new()
        earlier = self._ledger.begin(settings.name)  # when nothing can fail any more
        if earlier is not None:
            self._own.take_over(earlier)

    @property
    def is_able(self) -> bool:
        """Whether the controller can work: it has synced, and the server does not refuse one of its inputs."""
        if self.restarting or self.ended or not self.active.synced:
            return False
        return not any(each.state.phase in _REFUSED for each in self.active.inputs.informers())

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run the controller in a task."""
        self._task = tasks.create_task(self._run(), name=f"controller {self.controller.name}")

    async def stop(self, hurry: asyncio.Future[None]) -> ControllerReport:
        """Stop the controller, and release its informers. Once `hurry` is done, attempts are cancelled at once."""
        self._stopping = True
        report = await self.active.stop(self._services.settings.grace, hurry)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self.active.inputs.detach()
        self.release_declaration()
        return report

    def check_not_within(self) -> None:
        """Check that the caller is not an attempt of this controller, which would wait for itself.

        Raises:
            UsageError: it is.
        """
        if self.active.is_attempt(asyncio.current_task()):
            raise UsageError(
                f"the reconciler of controller {self.controller.name} cannot wait for its own end: remove the "
                "controller in another task"
            )

    def release_declaration(self) -> None:
        """Let another manager run the controller. May be repeated."""
        if not self.ended:
            self.ended = True
            self._ledger.end(self._own)

    async def attach(self) -> None:
        """Attach the inputs.

        Raises:
            UsageError: an option of an informer contradicts another controller.
        """
        await self.active.inputs.attach()
        self._permit(self.active)

    def _new(self, earlier: RequestQueue | None = None) -> ActiveController:
        return ActiveController(self.controller, self._services, self._own, earlier)

    async def _run(self) -> None:
        failure: Exception | None = None
        while failure is None:
            try:
                await self.active.run()
            except Exception as error:
                if self._stopping:
                    return
                await self.active.abandon("the controller has failed")
                failure = await self._restart(error)
        self.active.queue.shut_down()
        _log.error("controller %s has failed, and is not restarted", self.controller.name, exc_info=failure)
        self.release_declaration()
        self._on_failed(self.controller, failure)

    async def _restart(self, failure: Exception) -> Exception | None:
        """Make another `ActiveController` after a delay; return why there is none."""
        clock = asyncio.get_running_loop().time
        name = self.controller.name
        while not self._is_final(failure):
            delay = self._backoff.next(clock())
            self._restarts += 1
            self.restarting = f"it has failed, and is restarted after {delay:.0f} s: {failure}"
            _log.error("controller %s has failed; restarting it in %.1f s", name, delay, exc_info=failure)
            await asyncio.sleep(delay)
            try:
                await self.active.cancellation.wait_for_threads()
                self.active = self._new(self.active.queue)
                await self.attach()
                self._services.informers.start()
            except Exception as error:
                failure = error
                await self.active.abandon("the restart has failed")
            else:
                self.restarting = ""
                return None
        return failure

    def _is_final(self, failure: Exception) -> bool:
        if self._backoff.at_rest(asyncio.get_running_loop().time()):
            self._restarts = 0
        restart = self._services.settings.restart
        wrong = isinstance(failure, UsageError) and not isinstance(failure, InformerStopped)
        return wrong or restart.policy == "never" or (restart.limit is not None and self._restarts >= restart.limit)
