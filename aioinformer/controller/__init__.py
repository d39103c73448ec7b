"""Controllers: reconcilers that are awaited for each object that changed, with retries, own writes and leadership."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.controller.declaration import Controller, controller
    from aioinformer.controller.health import Health
    from aioinformer.controller.helpers.expectations import Expectations
    from aioinformer.controller.helpers.finalizing import Ending, finalizing
    from aioinformer.controller.helpers.pruning import AppliedSet, ForeignObject, apply_set
    from aioinformer.controller.helpers.status import set_status
    from aioinformer.controller.manager import Manager
    from aioinformer.controller.request import (
        LOW_PRIORITY,
        NORMAL_PRIORITY,
        Cause,
        NothingToDo,
        ReconcileTimeout,
        Request,
        Result,
        Retry,
        RetryAfter,
        TerminalError,
    )
    from aioinformer.controller.running.report import ControllerReport, ControllerSnapshot, ManagerSnapshot, StopReport
    from aioinformer.controller.running.session import ControllerFailed
    from aioinformer.controller.running.supervised import Restart
    from aioinformer.inputs.change import Change
    from aioinformer.inputs.loops import LoopDetector
    from aioinformer.inputs.mapping import Input, Owns, Primary, Watch
    from aioinformer.inputs.owners import OWNER_INDEX
    from aioinformer.inputs.predicates import (
        Predicate,
        annotations_changed,
        condition_changed,
        content_changed,
        fields_changed,
        generation_changed,
        labels_changed,
        object_changed,
        predicate,
        version_changed,
    )
    from aioinformer.inputs.references import References
    from aioinformer.inputs.sources import Every, Source
    from aioinformer.leaderelection.leadership import LeaderElection
    from aioinformer.own_writes.own_writes import OwnWrites, StaleCache
    from aioinformer.own_writes.sender import UndeclaredWrite, WritePolicy
    from aioinformer.workqueue.requests.outcomes import (
        Again,
        Failing,
        Finished,
        Outcome,
        Park,
        Parked,
        QueueOptions,
        Run,
        Unfinished,
    )
    from aioinformer.workqueue.requests.request_queue import QueueSnapshot, RequestQueue

__all__ = [
    "LOW_PRIORITY",
    "NORMAL_PRIORITY",
    "OWNER_INDEX",
    "Again",
    "AppliedSet",
    "Cause",
    "Change",
    "Controller",
    "ControllerFailed",
    "ControllerReport",
    "ControllerSnapshot",
    "Ending",
    "Every",
    "Expectations",
    "Failing",
    "Finished",
    "ForeignObject",
    "Health",
    "Input",
    "LeaderElection",
    "LoopDetector",
    "Manager",
    "ManagerSnapshot",
    "NothingToDo",
    "Outcome",
    "OwnWrites",
    "Owns",
    "Park",
    "Parked",
    "Predicate",
    "Primary",
    "QueueOptions",
    "QueueSnapshot",
    "ReconcileTimeout",
    "References",
    "Request",
    "RequestQueue",
    "Restart",
    "Result",
    "Retry",
    "RetryAfter",
    "Run",
    "Source",
    "StaleCache",
    "StopReport",
    "TerminalError",
    "UndeclaredWrite",
    "Unfinished",
    "Watch",
    "WritePolicy",
    "annotations_changed",
    "apply_set",
    "condition_changed",
    "content_changed",
    "controller",
    "fields_changed",
    "finalizing",
    "generation_changed",
    "labels_changed",
    "object_changed",
    "predicate",
    "set_status",
    "version_changed",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "declaration": "Controller controller",
            "health": "Health",
            "aioinformer.leaderelection.leadership": "LeaderElection",
            "manager": "Manager",
            "running.report": "ControllerReport ControllerSnapshot ManagerSnapshot StopReport",
            "running.session": "ControllerFailed",
            "running.supervised": "Restart",
            "helpers.expectations": "Expectations",
            "helpers.finalizing": "Ending finalizing",
            "helpers.pruning": "AppliedSet ForeignObject apply_set",
            "helpers.status": "set_status",
            "aioinformer.workqueue.requests.outcomes": (
                "Again Failing Finished Outcome Park Parked QueueOptions Run Unfinished"
            ),
            "aioinformer.workqueue.requests.request_queue": "QueueSnapshot RequestQueue",
            "aioinformer.inputs.change": "Change",
            "aioinformer.inputs.loops": "LoopDetector",
            "aioinformer.inputs.mapping": "Input Owns Primary Watch",
            "aioinformer.inputs.references": "References",
            "aioinformer.inputs.owners": "OWNER_INDEX",
            "aioinformer.inputs.predicates": (
                "Predicate annotations_changed condition_changed content_changed fields_changed generation_changed "
                "labels_changed object_changed predicate version_changed"
            ),
            "aioinformer.inputs.sources": "Every Source",
            "request": (
                "LOW_PRIORITY NORMAL_PRIORITY Cause NothingToDo ReconcileTimeout Request Result Retry RetryAfter "
                "TerminalError"
            ),
            "aioinformer.own_writes.own_writes": "OwnWrites StaleCache",
            "aioinformer.own_writes.sender": "UndeclaredWrite WritePolicy",
        },
    )
