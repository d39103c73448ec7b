"""Controllers: reconcilers that are awaited for each object that changed, with retries, own writes and leadership."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.controller.declaration import Controller as Controller
    from aioinformer.controller.declaration import controller as controller
    from aioinformer.controller.health import Health as Health
    from aioinformer.controller.helpers.expectations import Expectations as Expectations
    from aioinformer.controller.helpers.finalizing import Ending as Ending
    from aioinformer.controller.helpers.finalizing import finalizing as finalizing
    from aioinformer.controller.helpers.pruning import AppliedSet as AppliedSet
    from aioinformer.controller.helpers.pruning import ForeignObject as ForeignObject
    from aioinformer.controller.helpers.pruning import apply_set as apply_set
    from aioinformer.controller.helpers.status import set_status as set_status
    from aioinformer.controller.inputs.loops import LoopDetector as LoopDetector
    from aioinformer.controller.inputs.mapping import Input as Input
    from aioinformer.controller.inputs.mapping import Owns as Owns
    from aioinformer.controller.inputs.mapping import Primary as Primary
    from aioinformer.controller.inputs.mapping import Watch as Watch
    from aioinformer.controller.inputs.owners import OWNER_INDEX as OWNER_INDEX
    from aioinformer.controller.inputs.predicates import Change as Change
    from aioinformer.controller.inputs.predicates import Predicate as Predicate
    from aioinformer.controller.inputs.predicates import annotations_changed as annotations_changed
    from aioinformer.controller.inputs.predicates import condition_changed as condition_changed
    from aioinformer.controller.inputs.predicates import content_changed as content_changed
    from aioinformer.controller.inputs.predicates import fields_changed as fields_changed
    from aioinformer.controller.inputs.predicates import generation_changed as generation_changed
    from aioinformer.controller.inputs.predicates import labels_changed as labels_changed
    from aioinformer.controller.inputs.predicates import object_changed as object_changed
    from aioinformer.controller.inputs.predicates import predicate as predicate
    from aioinformer.controller.inputs.predicates import version_changed as version_changed
    from aioinformer.controller.inputs.references import References as References
    from aioinformer.controller.inputs.sources import Every as Every
    from aioinformer.controller.inputs.sources import Source as Source
    from aioinformer.controller.manager import Manager as Manager
    from aioinformer.controller.own_writes.own_writes import OwnWrites as OwnWrites
    from aioinformer.controller.own_writes.own_writes import StaleCache as StaleCache
    from aioinformer.controller.own_writes.sender import UndeclaredWrite as UndeclaredWrite
    from aioinformer.controller.own_writes.sender import WritePolicy as WritePolicy
    from aioinformer.controller.request import LOW_PRIORITY as LOW_PRIORITY
    from aioinformer.controller.request import NORMAL_PRIORITY as NORMAL_PRIORITY
    from aioinformer.controller.request import Cause as Cause
    from aioinformer.controller.request import NothingToDo as NothingToDo
    from aioinformer.controller.request import ReconcileTimeout as ReconcileTimeout
    from aioinformer.controller.request import Request as Request
    from aioinformer.controller.request import Result as Result
    from aioinformer.controller.request import Retry as Retry
    from aioinformer.controller.request import RetryAfter as RetryAfter
    from aioinformer.controller.request import TerminalError as TerminalError
    from aioinformer.controller.running.report import ControllerReport as ControllerReport
    from aioinformer.controller.running.report import ControllerSnapshot as ControllerSnapshot
    from aioinformer.controller.running.report import ManagerSnapshot as ManagerSnapshot
    from aioinformer.controller.running.report import StopReport as StopReport
    from aioinformer.controller.running.session import ControllerFailed as ControllerFailed
    from aioinformer.controller.running.supervised import Restart as Restart
    from aioinformer.leaderelection.leadership import LeaderElection as LeaderElection
    from aioinformer.workqueue.requests.outcomes import Again as Again
    from aioinformer.workqueue.requests.outcomes import Failing as Failing
    from aioinformer.workqueue.requests.outcomes import Finished as Finished
    from aioinformer.workqueue.requests.outcomes import Outcome as Outcome
    from aioinformer.workqueue.requests.outcomes import Park as Park
    from aioinformer.workqueue.requests.outcomes import Parked as Parked
    from aioinformer.workqueue.requests.outcomes import QueueOptions as QueueOptions
    from aioinformer.workqueue.requests.outcomes import Run as Run
    from aioinformer.workqueue.requests.outcomes import Unfinished as Unfinished
    from aioinformer.workqueue.requests.request_queue import QueueSnapshot as QueueSnapshot
    from aioinformer.workqueue.requests.request_queue import RequestQueue as RequestQueue
else:  # a type checker must not accept misspelt names
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
            "inputs.loops": "LoopDetector",
            "inputs.mapping": "Input Owns Primary Watch",
            "inputs.references": "References",
            "inputs.owners": "OWNER_INDEX",
            "inputs.predicates": (
                "Change Predicate annotations_changed condition_changed content_changed fields_changed "
                "generation_changed labels_changed object_changed predicate version_changed"
            ),
            "inputs.sources": "Every Source",
            "request": (
                "LOW_PRIORITY NORMAL_PRIORITY Cause NothingToDo ReconcileTimeout Request Result Retry RetryAfter "
                "TerminalError"
            ),
            "own_writes.own_writes": "OwnWrites StaleCache",
            "own_writes.sender": "UndeclaredWrite WritePolicy",
        },
    )
