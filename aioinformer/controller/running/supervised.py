"""`Supervised`: one controller of a running manager, and its restarts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from aioinformer.backoff import Backoff, BackoffOptions
from aioinformer.controller.own_writes.own_writes import OwnWrites
from aioinformer.controller.own_writes.sender import WritePolicy
from aioinformer.controller.running.active import ActiveController
from aioinformer.errors import InformerStopped, OptionError, UsageError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.controller.declaration import Controller
    from aioinformer.controller.manager import Manager
    from aioinformer.controller.running.attached import Services
    from aioinformer.controller.report import ControllerReport
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.workqueue.requests.request_queue import RequestQueue

_log = get_logger("aioinformer.controller")


class Restart(msgspec.Struct, frozen=True):
    """When a manager restarts a controller that has failed: one of its informers or its own code, not its reconciler.

    Attributes:
        policy: "on-failure" or "never".
        backoff: the delays before restarts; after `reset_after` seconds without a failure, they begin anew.
        limit: the controller has failed for good after this many restarts in a row; None for no limit.

    Raises:
        OptionError: a value is invalid.
    """

    policy: Literal["on-failure", "never"] = "on-failure"
    backoff: BackoffOptions = BackoffOptions(initial=1.0, cap=60.0, reset_after=300.0)
    limit: int | None = 10

    def __post_init__(self) -> None:
        if self.policy not in ("on-failure", "never"):
            raise OptionError(f"Restart: policy must be 'on-failure' or 'never', not {self.policy!r}")
        if self.limit is not None and self.limit < 0:
            raise OptionError(f"Restart: limit must be 0 or more, or None for no limit, not {self.limit!r}")


class Supervised:
    """One controller of a running manager. Call `attach`, start the informers, and call `start`.

    `permit` lets a new `ActiveController` work if it may; `on_failed` is called when the controller fails for good.

    Attributes:
        controller: the declaration.
        active: the running controller; after a restart, another one.
        restarting: why it is about to be restarted; "" if it is not.

    Raises:
        UsageError: the controller runs already.
    """

    def __init__(
        self,
        controller: Controller[Any],
        services: Services,
        manager: Manager,
        *,
        permit: Callable[[ActiveController], None],
        on_failed: Callable[[Controller[Any], BaseException], None],
    ) -> None:
        if controller._active is not None:
            raise UsageError(
                f"controller {controller.name} already runs in a manager; make another Controller for manager "
                f"{manager.name}"
            )
        self.controller = controller
        self._services = services
        self._manager = manager
        self._permit = permit
        self._on_failed = on_failed
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._backoff = Backoff(manager.restart.backoff, random=services.random)
        self._restarts = 0
        self.restarting = ""
        policy = WritePolicy(controller.writes, strict=services.strict, dry_run=services.dry_run, log=_log)
        self._own = OwnWrites(self._informers_of, services.client, field_manager=controller.name, policy=policy)
        if controller._own is not None:
            self._own.take_over(controller._own)
        controller._own = self._own
        self.active = self._new()

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run the controller in a task."""
        self._task = tasks.create_task(self._run(), name=f"controller {self.controller.name}")

    async def stop(self, hurry: asyncio.Future[None]) -> ControllerReport:
        """Stop the controller, and release its informers. Once `hurry` is done, attempts are cancelled at once."""
        self._stopping = True
        grace = self._manager.grace if self.controller.grace is None else self.controller.grace
        report = await self.active.stop(grace, hurry)
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
        """Let another manager run the controller."""
        if self.controller._active is self.active:
            self.controller._active = None

    async def attach(self) -> None:
        """Attach the inputs.

        Raises:
            UsageError: an option of an informer contradicts another controller.
        """
        await self.active.attach()
        self._permit(self.active)

    def _new(self, earlier: RequestQueue | None = None) -> ActiveController:
        active = self.controller._active = ActiveController(self.controller, self._services, self._own, earlier)
        return active

    def _informers_of(self, group: str, plural: str) -> list[SharedIndexInformer[Any]]:
        return self.active.inputs.informers_of(group, plural)

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
        clock, name = asyncio.get_running_loop().time, self.controller.name
        while not self._is_final(failure):
            delay = self._backoff.next(clock())
            self._restarts += 1
            self.restarting = f"it has failed, and is restarted after {delay:.0f} s: {failure}"
            _log.error("controller %s has failed; restarting it in %.1f s", name, delay, exc_info=failure)
            await asyncio.sleep(delay)
            try:
                await self.active.wait_for_threads()
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
        restart = self._manager.restart
        wrong = isinstance(failure, UsageError) and not isinstance(failure, InformerStopped)
        return wrong or restart.policy == "never" or (restart.limit is not None and self._restarts >= restart.limit)
