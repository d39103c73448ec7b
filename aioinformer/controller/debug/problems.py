"""What is wrong now: from a report to sentences, each with a remedy and the section of *Troubleshooting*. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ERROR: Final = "error"
WARNING: Final = "warning"
#: Seconds after which an attempt, a ready request, a call of a handler, and a first list are worth a sentence.
_LONG_ATTEMPT: Final = 60.0
_LONG_WAIT: Final = 60.0
_LONG_CALL: Final = 30.0
_LONG_SYNC: Final = 10.0
#: Pending notifications of a handler, failures of a key in a row, and seconds by which the event loop is late.
_BACKLOG: Final = 10_000
_FAILURES: Final = 3
_LATE: Final = 0.5

#: Phases of informers, each with its section and the remedy.
_PHASE_TABLE: Final = """
    backing_off cannot-connect compare the address with `kubectl cluster-info`, look at the API server; it is retried
    unauthorized unauthorized run `kubectl auth whoami` with the same credentials
    forbidden forbidden grant `list` and `watch`; `aioinformer check` prints the roles
    not_found not-found apply the CustomResourceDefinition, and compare the version with `kubectl api-resources`
    not_allowed not-allowed use another resource: this one cannot be listed
    stopped crashed read the traceback in the log
    degraded undecodable correct the objects or the class; `informer.undecodable()` has the reasons
    new never-started call `factory.start()` after the last new informer
    syncing cache-does-not-sync wait, or look at the load of the API server
"""
#: Phase -> the remedy, and the section.
_PHASES: Final = {
    phase: (remedy, see) for phase, see, remedy in (row.split(maxsplit=2) for row in _PHASE_TABLE.strip().splitlines())
}


def problems(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is wrong, the worst first; nothing if all is well.

    Each problem has `severity` ("error" or "warning"), `text`, `remedy`, `see` (a section of docs/troubleshooting.md),
    and may have `controller` and `key`.
    """
    found = [*_of_manager(report), *_of_caches(report)]
    for name, controller in report["controllers"].items():
        found += _of_controller(report, name, controller)
    return sorted(found, key=lambda each: each["severity"] != ERROR)


def _problem(severity: str, text: str, remedy: str, see: str, **subject: str) -> dict[str, Any]:
    return {
        "severity": severity,
        "text": f"{text}.",
        "remedy": f"{remedy[0].upper()}{remedy[1:]}.",
        "see": see,
    } | subject


def _of_manager(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if not report["running"]:
        yield _problem(ERROR, f"Manager {report['manager']} does not run", "read why it has stopped in the log", "stop")
    lag = report["loop"]["lag"]
    if lag > _LATE:
        remedy = "the log names the function that blocks it; await slow operations, or run them in a thread"
        yield _problem(ERROR, f"The event loop was late by {lag:.1f} s: nothing else ran meanwhile", remedy, "blocked")
    for reason in report.get("alive", ()):
        if reason.startswith(("leadership:", "ring:")) or "requests wait for" in reason:
            remedy = "the liveness probe fails, so kubelet restarts the process; look at the running attempts below"
            yield _problem(ERROR, f"The process is not alive: {reason}", remedy, "attempt-hangs")
    elector = report["elector"]
    if elector is not None and not elector["leader"]:
        remedy = "look at the Lease with `kubectl get lease`, and at the permissions with `aioinformer check`"
        yield _problem(ERROR, "No replica leads: the elected controllers do nothing", remedy, "standby")
    yield from _of_webhooks(report["webhooks"])
    if (ring := report["ring"]) is not None:
        if ring["gap"]:
            remedy = "look at the replicas that own these slots"
            yield _problem(ERROR, f"Slots of the ring have no owner: {ring['gap']}", remedy, "slots")
        if ring["waits_for"]:
            remedy = "wait for the other replicas, or look at the requests to the ring object"
            yield _problem(WARNING, f"This replica waits for slots: {ring['waits_for']}", remedy, "slots")


def _of_webhooks(webhooks: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if waits := webhooks["waits_for"]:
        remedy = "the API server refuses what it must ask about meanwhile, unless the failure policy is Ignore"
        yield _problem(ERROR, f"Reviews cannot be answered: {', '.join(waits)}", remedy, "webhook-fails")
    for each in webhooks["failing"]:
        times = f"{each['failures']} times since its last decision" if each["failures"] > 1 else "its last review"
        text = f"The webhook {each['webhook']} failed {times}, {_age(each['seconds'])} ago; {each['error']}"
        remedy = "the log has the traceback; the API server refuses the request, unless the failure policy is Ignore"
        yield _problem(ERROR, text, remedy, "webhook-fails")


def _of_caches(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for cache in report["caches"]:
        name, phase = cache["cache"], cache["phase"]
        remedy, see = _PHASES.get(phase, ("", ""))
        reason = f" ({phase}: {cache['reason']})" if cache["reason"] else f" ({phase})"
        age = report["time"] - (cache["stale_since"] or report["time"])
        if phase == "stopped":
            yield _problem(ERROR, f"The informer of {name} has ended{reason}", remedy, see)
        elif not cache["synced"]:
            if phase not in ("new", "syncing") or report["time"] - (cache["since"] or report["time"]) > _LONG_SYNC:
                progress = f": {cache['listing']}" if cache["listing"] else ""
                yield _problem(ERROR, f"The cache of {name} has not synced{reason}{progress}", remedy, see)
        elif cache["stale_since"] is not None:
            text = f"The cache of {name} has not followed the server for {_age(age)}{reason}"
            yield _problem(ERROR, text, remedy or "look at the API server", see or "late")
        elif phase == "degraded":
            yield _problem(WARNING, f"The cache of {name} is incomplete{reason}", remedy, see)
        for handler in cache["handlers"]:
            call = handler["current"]
            if call is not None and call["seconds"] > _LONG_CALL:
                text = f"{call['function']} has not returned for {_age(call['seconds'])}, for {call['key']}"
                behind = f": {handler['pending'] - 1} notifications wait" if handler["pending"] > 1 else ""
                yield _problem(ERROR, f"{text}{behind}", "limit what it awaits with `asyncio.timeout`", "overdue")
            elif handler["pending"] > _BACKLOG:
                text = f"{handler['name']} falls behind: {handler['pending']:,} notifications are pending"
                yield _problem(WARNING, text, "make it faster, or use a `CoalescingHandler`", "backlog")


def _of_controller(report: Mapping[str, Any], name: str, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    who = {"controller": name}
    if failure := report["failed"].get(name):
        yield _problem(
            ERROR, f"Controller {name} has failed: {failure}", "read the traceback in the log", "crashed", **who
        )
    elif found["phase"] == "catching up":
        text = f"Controller {name} leads, and waits for its caches: {', '.join(found['waits_for'])}"
        yield _problem(WARNING, text, "it begins by itself; look at the caches below", "catching-up", **who)
    elif found["waits_for"] and found["phase"] == "syncing":
        text = f"Controller {name} waits for {', '.join(found['waits_for'])}"
        yield _problem(WARNING, text, "`aioinformer check` says what the cluster lacks", "waits", **who)
    for each in found["running"]:
        if each["seconds"] > _LONG_ATTEMPT:
            where = f" at {each['awaits']}" if each["awaits"] else ""
            threads = f", and runs {', '.join(each['threads'])} in a thread" if each["threads"] else ""
            text = f"The attempt for {each['key']} of {name} has waited for {_age(each['seconds'])}{where}{threads}"
            remedy = "limit what it awaits with `asyncio.timeout`, or set `timeout=` of the controller"
            yield _problem(ERROR, text, remedy, "attempt-hangs", **who, key=each["key"])
    if count := found["parked_keys"]:
        key, reason = next(iter(found["parked"].items()))
        text = f"{_keys(count, 'is', 'are')} parked in {name}; {key}: {reason}"
        remedy = "correct the object, whose change runs the key; or the program, whose restart runs all keys"
        yield _problem(ERROR, text, remedy, "parked", **who, key=key)
    yield from _of_failing(report, name, found)
    if waited := max((each["waited"] for each in report["keys"]["oldest"] if each["controller"] == name), default=0.0):
        busy = len(found["running"])
        if waited > _LONG_WAIT and found["phase"] == "working":
            text = f"{found['ready']:,} keys of {name} wait for a worker, the oldest for {_age(waited)}; {busy} run"
            yield _problem(WARNING, text, "raise `workers=`, or make the runs shorter", "keys-wait", **who)
    if unseen := found["undecodable"]:
        key, reason = next(iter(unseen.items()))
        text = f"{_keys(len(unseen), 'does', 'do')} not fit the class of {name}; {key}: {reason}"
        yield _problem(ERROR, text, "correct the object or the class", "undecodable-widget", **who, key=key)
    if found["loops"]:
        text = f"Controller {name} has triggered itself: {found['loops']} runs followed its own writes"
        yield _problem(WARNING, text, "write only what differs, or filter the change with `when=`", "loop", **who)
    for each, lost in found["lost_changes"].items():
        text = f"Changes of {lost} objects are lost for {name}: the function of {each} raises"
        yield _problem(ERROR, text, "correct the function; a restart maps all objects", "lost-changes", **who)


def _of_failing(report: Mapping[str, Any], name: str, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    failing = [each for each in report["keys"]["failing"] if each["controller"] == name]
    conflicts = [each for each in failing if each.get("conflicts", 0) >= _FAILURES]
    lasting = [each for each in failing if each["attempts"] >= _FAILURES and each not in conflicts]
    for keys, remedy, see in (
        (conflicts, "let one of the writers leave the field or the object to the other one", "lasting-conflict"),
        (lasting, "correct the code, or what it depends on; the key is retried until it succeeds", "reconciler-fails"),
    ):
        if keys:
            first = keys[0]
            times = max(first["attempts"], first.get("conflicts", 0))
            what = "conflict again and again" if see == "lasting-conflict" else "fail again and again"
            text = f"{_keys(len(keys), what.replace(' ', 's ', 1), what)} in {name}; {first['key']}: {times} times"
            yield _problem(ERROR, f"{text}, {first['error']}", remedy, see, controller=name, key=first["key"])


def _keys(count: int, one: str, many: str) -> str:
    return f"{count:,} {f'key {one}' if count == 1 else f'keys {many}'}"


def _age(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
