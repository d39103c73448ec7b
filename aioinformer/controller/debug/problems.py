"""What is wrong now: from a report to sentences, each with a remedy and the section of *Troubleshooting*. No I/O.

- A sentence counts all that it is about, whatever the lists of the report leave out, and names a key of it.
- One cause is one sentence: keys that fail at one line, caches with one reason, attempts that await one line. What
  follows from a cause that has a sentence has none: a controller that waits for a cache, a key whose object cannot be
  decoded.
- What was wrong and is not any more is no problem.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from aioinformer.workqueue.requests.outcomes import FAILURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ERROR: Final = "error"
WARNING: Final = "warning"
#: Seconds after which an attempt, a ready request, a call of a handler, and a first list are worth a sentence.
_LONG_ATTEMPT: Final = 60.0
_LONG_WAIT: Final = 60.0
_LONG_CALL: Final = 30.0
_LONG_SYNC: Final = 10.0
#: Pending notifications of a handler, and seconds by which the event loop is late.
_BACKLOG: Final = 10_000
_LATE: Final = 0.5
#: Of so many causes a controller has a sentence each, and the others one together; and so many names a sentence has.
_CAUSES: Final = 8
_NAMES: Final = 3
#: Of a controller that is failed and removed.
_NO_CACHES: Final[Mapping[str, Any]] = {"caches": ()}
#: What the reason of a cache says of objects that controllers report themselves.
_UNDECODABLE: Final = re.compile(r"\d+ objects? cannot be decoded( \([^)]*\))?(; |$)")

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
    found = [*_of_manager(report), *_of_caches(report), *_of_handlers(report), *_of_undecodable(report)]
    for name, controller in report["controllers"].items():
        found += _of_controller(report, name, controller)
    return sorted(found, key=lambda each: each["severity"] != ERROR)


def standby(report: Mapping[str, Any]) -> str:
    """Return that this replica is a standby, and for what it waits; "" if it is none."""
    elector = report["elector"]
    if elector is None or elector["leads"] or not report["running"]:
        return ""
    idle = [name for name, each in report["controllers"].items() if each["elected"]]
    waits = f"it waits for Lease {elector['lease']}, which {elector['leader'] or 'no replica'} holds"
    if elector["leader"] == elector["identity"]:  # nothing that was observed since
        waits = f"it has lost Lease {elector['lease']}, and competes for it again"
    if elector["trouble"]:
        trouble = f" It does not compete for it: {elector['trouble']}."
    else:
        trouble = ""
    does = ""
    if idle:
        verb = "does" if len(idle) == 1 else "do"
        does = f" Until it leads, {_named(idle)} {verb} nothing here."
    return f"This replica is a standby: {waits}.{trouble}{does}"


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
    if report["lifespan"] == "entering":
        remedy = "limit what it awaits with `asyncio.timeout`; a stop cancels it"
        yield _problem(WARNING, "The lifespan is being entered, and nothing runs before", remedy, "lifespan")
    for name, task in report["background"].items():
        if task["failure"]:
            restarts = f" after {task['restarts']} restarts" if task["restarts"] else ""
            text = f"The background task {name} has failed, and is {task['phase']}{restarts}: {task['failure']}"
            remedy = "read the traceback in the log; it is restarted with backoff until it runs for ten seconds"
            yield _problem(ERROR, text, remedy, "background-fails")
    elector = report["elector"]
    if elector is not None and not elector["leader"] and report["running"]:
        remedy = "look at the Lease with `kubectl get lease`, and at the permissions with `aioinformer check`"
        trouble = f": {elector['trouble']}" if elector["trouble"] else ""
        text = f"No replica holds Lease {elector['lease']}, so the elected controllers do nothing{trouble}"
        yield _problem(ERROR, text, remedy, "standby")
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
        if each["failures"] > 1:
            times = f"{each['failures']} times since its last decision"
        else:
            times = "its last review"
        text = f"The webhook {each['webhook']} failed {times}, {_age(each['seconds'])} ago; {each['error']}"
        if each["webhook"] == "/convert":
            remedy = "correct the step or the objects; lists, watches and writes of the kind fail until then"
        else:
            remedy = "the log has the traceback; the API server refuses requests, unless the failure policy is Ignore"
        yield _problem(ERROR, text, remedy, "webhook-fails")


def _of_caches(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    reported = {each["caches"][0] for each in report["controllers"].values() if each["undecodable_keys"]}
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for cache in report["caches"]:
        reason = cache["reason"]
        if cache["phase"] == "degraded" and cache["name"] in reported:
            reason = _UNDECODABLE.sub("", reason, count=1)
            if not reason:
                continue
        if what := _state_of(report, cache):
            found.setdefault((what, cache["phase"], reason), []).append(cache)
    for (what, phase, reason), caches in found.items():
        yield _of_similar(report, what, phase, reason, caches)


def _state_of(report: Mapping[str, Any], cache: Mapping[str, Any]) -> str:
    """Return what is wrong with a cache: "ended", "not synced", "stale" or "incomplete"; "" for nothing."""
    phase = cache["phase"]
    if phase == "stopped":
        return "ended"
    if not cache["synced"]:
        young = report["time"] - (cache["since"] or report["time"]) <= _LONG_SYNC
        return "" if young and phase in ("new", "syncing") else "not synced"
    if cache["stale_since"] is not None:
        return "stale"
    return "incomplete" if phase == "degraded" else ""


def _of_similar(
    report: Mapping[str, Any], what: str, phase: str, reason: str, caches: list[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the problem of some caches with one state and one reason."""
    names = _named([each["cache"] for each in caches])
    one = len(caches) == 1
    why = f" ({phase}: {reason})" if reason else f" ({phase})"
    remedy, see = _PHASES.get(phase, ("", ""))
    subject = f"The cache of {names} has" if one else f"{len(caches)} caches have"
    those = "" if one else f": {names}"
    if what == "ended":
        subject = f"The informer of {names} has" if one else f"{len(caches)} informers have"
        known = {each["name"] for each in caches}
        failed = [name for name in report["failed"] if known & {*report["controllers"].get(name, _NO_CACHES)["caches"]}]
        follows = f"; {_named(failed)} {'has' if len(failed) == 1 else 'have'} failed with {'it' if one else 'them'}"
        return _problem(ERROR, f"{subject} ended{why}{those}{follows if failed else ''}", remedy, see)
    if what == "not synced":
        listing = ", ".join(each["listing"] for each in caches if each["listing"])
        known = {each["name"] for each in caches}
        waits = [
            name for name, each in report["controllers"].items() if each["waits_for"] and known & {*each["caches"]}
        ]
        follows = f"; {_named(waits)} {'waits' if len(waits) == 1 else 'wait'} for {'it' if one else 'them'}"
        text = f"{subject} not synced{why}{those}{f': {listing}' if listing else ''}{follows if waits else ''}"
        return _problem(ERROR, text, remedy, see)
    if what == "stale":
        age = _age(report["time"] - min(each["stale_since"] for each in caches))
        text = f"{subject} not followed the server for {age}{why}{those}"
        return _problem(ERROR, text, remedy or "look at the API server", see or "late")
    subject = f"The cache of {names} is" if one else f"{len(caches)} caches are"
    return _problem(WARNING, f"{subject} incomplete{why}{those}", remedy, see)


def _of_handlers(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for cache in report["caches"]:
        for handler in cache["handlers"]:
            call = handler["current"]
            if call is not None and call["seconds"] > _LONG_CALL:
                text = f"{call['function']} has not returned for {_age(call['seconds'])}, for {call['key']}"
                if handler["pending"] > 1:
                    behind = f": {handler['pending'] - 1} notifications wait"
                else:
                    behind = ""
                yield _problem(ERROR, f"{text}{behind}", "limit what it awaits with `asyncio.timeout`", "overdue")
            elif handler["pending"] > _BACKLOG:
                text = f"{handler['name']} falls behind: {handler['pending']:,} notifications are pending"
                yield _problem(WARNING, text, "make it faster, or use a `CoalescingHandler`", "backlog")


def _of_undecodable(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects of each cache that do not fit their class: one problem for all controllers of the cache."""
    found: dict[str, list[str]] = {}
    for name, each in report["controllers"].items():
        if each["undecodable_keys"]:
            found.setdefault(each["caches"][0], []).append(name)
    for names in found.values():
        first = report["controllers"][names[0]]
        key, reason = next(iter(first["undecodable"].items()))
        reason = reason.removeprefix(f"{key}: ")
        count = _keys(first["undecodable_keys"], "does", "do")
        text = f"{count} not fit the class of {_named(names)}; {key}: {reason}"
        who = {"controller": names[0], "key": key}
        yield _problem(ERROR, text, "correct the object or the class", "undecodable-widget", **who)


def _of_controller(report: Mapping[str, Any], name: str, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    who = {"controller": name}
    yield from _of_phase(report, name, found)
    yield from _of_attempts(name, found)
    if found["phase"] != "standby":  # these keys are the leader's now
        yield from _of_parked(name, found)
        yield from _of_failing(name, found)
    oldest = found["oldest"]
    if oldest and oldest["waited"] > _LONG_WAIT and found["phase"] == "working" and not _all_hang(found):
        count = _keys(found["ready"], "waits", "wait")
        busy = f"{len(found['running'])} of {found['workers']} run"
        text = f"{count} for a worker of {name}, {oldest['key']} for {_age(oldest['waited'])}; {busy}"
        yield _problem(
            WARNING, text, "raise `workers=`, or make the runs shorter", "keys-wait", **who, key=oldest["key"]
        )
    if loops := found["looping"]:
        first = loops[0]
        others = found["looping_keys"] - 1
        times = f"{first['runs']} times in {first['seconds']:.1f} s"
        also = f", and {others:,} others do so" if others else ""
        if others == 1:
            also = ", and another key does so"
        text = f"Controller {name} triggers itself: {first['key']} ran {times}, each time after its own write{also}"
        remedy = "write only what differs, or filter the change with `when=`"
        if braked := found["braked_keys"]:
            also = f"{_keys(braked, 'runs', 'run')} after 1 to 30 s only, because the loop is proven"
            remedy = f"{remedy}; a change of anybody else runs the key at once"
        else:
            also = ""
        text = "; ".join(filter(None, (text, first["fields"], also)))
        yield _problem(WARNING, text, remedy, "loop", **who, key=first["key"])
    for each, lost in found["lost_changes"].items():
        changes = f"Changes of {lost:,} objects are" if lost > 1 else "The change of an object is"
        last = f"; {'the last one is ' if lost > 1 else ''}{found['lost_keys'].get(each, 'unknown')}"
        text = f"{changes} lost for {name}: the function of {each} raises{last}"
        yield _problem(ERROR, text, "correct the function; a restart maps all objects", "lost-changes", **who)


def _of_phase(report: Mapping[str, Any], name: str, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    who = {"controller": name}
    states = {_state_of(report, each) for each in report["caches"] if each["name"] in found["caches"]}
    if failure := report["failed"].get(name):
        if "ended" not in states:
            again = failure.startswith("it has failed")  # and is restarted
            if again:
                text = f"Controller {name}: {failure}"
            else:
                text = f"Controller {name} has failed: {failure}"
            yield _problem(ERROR, text, "read the traceback in the log", "crashed", **who)
    elif found["phase"] == "catching up":
        text = f"Controller {name} leads, and waits for its caches: {', '.join(found['waits_for'])}"
        yield _problem(WARNING, text, "it begins by itself; look at the caches below", "catching-up", **who)
    elif found["waits_for"] and found["phase"] == "syncing" and "not synced" not in states:
        text = f"Controller {name} waits for {', '.join(found['waits_for'])}"
        yield _problem(WARNING, text, "`aioinformer check` says what the cluster lacks", "waits", **who)


def _all_hang(found: Mapping[str, Any]) -> bool:
    """Return whether each worker of a controller has an attempt that takes long."""
    hanging = [each for each in found["running"] if each["seconds"] > _LONG_ATTEMPT]
    return len(hanging) >= int(found["workers"])


def _of_attempts(name: str, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the attempts that take long: one problem for all that await one line."""
    hanging: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for each in found["running"]:
        if each["seconds"] > _LONG_ATTEMPT:
            hanging.setdefault((each["awaits"], *each["threads"]), []).append(each)
    for (awaits, *threads), attempts in hanging.items():
        first = max(attempts, key=lambda each: each["seconds"])
        key = first["key"]
        age = _age(first["seconds"])
        where = f" at {awaits}" if awaits else ""
        calls = f", and runs {', '.join(threads)} in a thread" if threads else ""
        text = f"The attempt for {key} of {name} has waited for {age}{where}{calls}"
        if len(attempts) > 1:
            text = f"{len(attempts)} attempts of {name} wait{where}{calls}; the longest, for {key}, for {age}"
        if _all_hang(found) and found["ready"]:
            text = f"{text}; no worker is free for {_keys(found['ready'], 'that waits', 'that wait')}"
        remedy = "limit what it awaits with `asyncio.timeout`, or set `timeout=` of the controller"
        yield _problem(ERROR, text, remedy, "attempt-hangs", controller=name, key=key)


def _of_parked(name: str, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    remedy = "correct the object, whose change runs the key; or the program, whose restart runs all keys"
    parks = found["parks"][:_CAUSES]
    others = found["parks"][_CAUSES:]
    for each in parks:
        text = f"{_keys(each['keys'], 'is', 'are')} parked in {name}; {each['key']}: {each['error']}"
        yield _problem(ERROR, text, remedy, "parked", controller=name, key=each["key"])
    if others:
        count = sum(each["keys"] for each in others)
        key = others[0]["key"]
        text = f"{_keys(count, 'is', 'are')} parked in {name} for {len(others):,} other reasons, {key} for one"
        yield _problem(ERROR, text, remedy, "parked", controller=name, key=key)


def _of_failing(name: str, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lasting = [each for each in found["failures"] if each["times"] >= FAILURES]
    for each in lasting[:_CAUSES]:
        conflict = each["kind"] == "conflict"
        what = ("conflicts", "conflict") if conflict else ("fails", "fail")
        remedy = "correct the code, or what it depends on; the key is retried until it succeeds"
        if conflict:
            remedy = "let one of the writers leave the field or the object to the other one"
        text = f"{_keys(each['keys'], *what)} again and again in {name}; {each['key']}: {each['times']} times"
        see = "lasting-conflict" if conflict else "reconciler-fails"
        yield _problem(ERROR, f"{text}, {each['error']}", remedy, see, controller=name, key=each["key"])
    if others := lasting[_CAUSES:]:
        count = sum(each["keys"] for each in others)
        key = others[0]["key"]
        text = (
            f"{_keys(count, 'fails', 'fail')} again and again in {name} for {len(others):,} other causes, {key} for one"
        )
        remedy = "correct these causes after the others; the list of failing keys has the errors"
        yield _problem(ERROR, text, remedy, "reconciler-fails", controller=name, key=key)


def _keys(count: int, one: str, many: str) -> str:
    return f"{count:,} {f'key {one}' if count == 1 else f'keys {many}'}"


def _named(names: list[str]) -> str:
    """Return some names as a list: "a, b, c and 4 more"."""
    if len(names) > _NAMES:
        return f"{', '.join(names[:_NAMES])} and {len(names) - _NAMES:,} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _age(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
