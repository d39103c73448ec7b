"""Controllers: reconcilers that are awaited for each object that changed, with retries, own writes and leadership."""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(
    __name__,
    {
        "debug.access": "DebugRequest",
        "debug.app": "DebugApp",
        "declaration": "Controller controller",
        "health": "Health",
        "helpers.finalizing": "Ending finalizing",
        "helpers.pruning": "AppliedSet ForeignObject apply_set",
        "helpers.status": "set_status",
        "inputs.loops": "LoopDetector",
        "inputs.mapping": "Input Owns Primary Watch",
        "inputs.owners": "OWNER_INDEX",
        "inputs.predicates": (
            "Change Predicate annotations_changed condition_changed content_changed fields_changed "
            "generation_changed labels_changed object_changed predicate version_changed"
        ),
        "inputs.references": "References",
        "inputs.sources": "Every Source",
        "manager": "Manager",
        "own_writes.own_writes": "OwnWrites StaleCache",
        "own_writes.sender": "UndeclaredWrite WritePolicy",
        "request": (
            "Cause LOW_PRIORITY NORMAL_PRIORITY NothingToDo ReconcileTimeout Request Result Retry RetryAfter "
            "TerminalError"
        ),
        "report": "ControllerReport ControllerSnapshot ManagerSnapshot StopReport",
        "running.session": "ControllerFailed",
        "running.settings": "Restart",
        "aioinformer.leaderelection.leadership": "LeaderElection",
        "aioinformer.workqueue.requests.outcomes": (
            "Again Failing Finished Outcome Park Parked QueueOptions Run Unfinished"
        ),
        "aioinformer.workqueue.requests.request_queue": "QueueSnapshot RequestQueue",
    },
)
