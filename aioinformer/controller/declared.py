"""`Declared`: what a manager runs, checked when it is declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.controller.declaration import Controller
from aioinformer.crds import CustomResource
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from aioinformer.controller.background import BackgroundTask
    from aioinformer.ring.declaration import ControllerRing
    from aioinformer.webhooks.admission import Admission


class Declared:
    """The controllers and background tasks of a manager. Each has a name of its own, since it is a field manager, too.

    Args:
        manager: the name of the manager, for errors.
        admission: gets the resources of controllers whose versions convert.

    Attributes:
        controllers, background: by name, in the order of their declarations.
    """

    def __init__(self, manager: str, admission: Admission) -> None:
        self.controllers: dict[str, Controller[Any]] = {}
        self.background: dict[str, BackgroundTask] = {}
        self._manager = manager
        self._admission = admission

    def add(self, declared: Any) -> None:
        """Add a controller.

        Raises:
            UsageError: it is no controller, or its name is taken.
        """
        if not isinstance(declared, Controller):
            raise UsageError(f"manager {self._manager}: expected a Controller, not {declared!r}")
        self._check_name(declared.name)
        self.controllers[declared.name] = declared
        inputs = (declared.primary(), *declared.owns, *declared.watches)
        for resource in (*(each.resource for each in inputs), *(declared.writes or ())):
            if isinstance(resource, CustomResource) and resource.others and resource.converts:
                self._admission.convert(resource)

    def add_task(self, task: BackgroundTask, ring: ControllerRing | None) -> None:
        """Add a background task.

        Args:
            task: the declaration.
            ring: of the manager; None if it has none.

        Raises:
            UsageError: the name is taken, or the task needs a leader and the ring has none.
        """
        self._check_name(task.name)
        self._check_leader(task, ring)
        self.background[task.name] = task

    def check_leaders(self, ring: ControllerRing | None) -> None:
        """Check the background tasks once more, with the ring that the manager has at its start.

        Raises:
            UsageError: a task needs a leader, and the ring has none.
        """
        for task in self.background.values():
            self._check_leader(task, ring)

    def _check_name(self, name: str) -> None:
        if name in self.controllers or name in self.background:
            what = "a controller" if name in self.controllers else "a background task"
            raise UsageError(f"manager {self._manager} has {what} {name} already; give the other one another name")

    def _check_leader(self, task: BackgroundTask, ring: ControllerRing | None) -> None:
        if task.elected and ring is not None:
            raise UsageError(
                f"manager {self._manager}: background task {task.name} needs a leader, and the replicas of a ring have "
                "none; pass elected=False, or add it to a second Manager with leader_election=…, in the same process"
            )
