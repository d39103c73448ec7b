"""The report: all that a manager knows of itself, as plain data for `json.dumps`. The page, SIGUSR1 and `top` show it.

It has names, counts, times and texts that the log has, too: no content of an object, and no credential. Lists of keys
have an upper bound, and the number of all beside them. Times are seconds since the epoch, durations seconds.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from functools import cache
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import asdict

from aioinformer.controller.debug.problems import problems, standby
from aioinformer.controller.debug.recording import longest
from aioinformer.controller.scrubbing import scrubbed
from aioinformer.exports import package_version
from aioinformer.functions import innermost_user_code, place
from aioinformer.workqueue.requests.outcomes import FAILURES

if TYPE_CHECKING:
    from collections.abc import Collection

    from aioinformer.controller.debug.recording import Recording
    from aioinformer.controller.running.active import ActiveController
    from aioinformer.controller.running.session import Session
    from aioinformer.resources.keys import ObjectName
    from aioinformer.workqueue.requests.request_queue import KeySnapshot, QueueSnapshot

E = TypeVar("E")

#: The most keys of each list.
KEYS: Final = 50
#: The lists of keys.
LISTS: Final = ("running", "failing", "parked", "waiting", "settling", "oldest", "hottest", "slowest")
#: The most frames of an attempt.
_FRAMES: Final = 16
#: Seconds from which on a run is slow.
_SLOW: Final = 0.001
#: Runs within so many seconds do not make a key hotter if they are closer together.
_CALM: Final = 10.0


def report(name: str, session: Session | None, recording: Recording | None = None, lag: float = 0.0) -> dict[str, Any]:
    """Return the report of a manager: what is wrong first, then what it is made of.

    Call it on the thread of the event loop.

    Args:
        name: of the manager.
        session: None if it does not run.
        recording: what was recorded for the page; None without one.
        lag: how late the timers of the event loop were of late.
    """
    found: dict[str, Any] = {
        "manager": name,
        "time": time.time(),
        "process": {
            "pid": os.getpid(),
            "started": process_started(),
            "python": sys.version.split()[0],
            "version": package_version(),
        },
        "running": session is not None and not session.is_ending(),
        "problems": [],
        "loop": {"lag": lag},
        "elector": None,
        "ring": None,
        "webhooks": {"waits_for": None, "failing": []},
        "lifespan": None,
        "background": {},
        "controllers": {},
        "keys": {},
        "key_counts": {},
        "caches": [],
        "recording": None,
    }
    if recording is not None:
        kept = recording.histories
        keys = sum(map(len, recording.histories.values()))
        found["recording"] = {"keys": keys, "bytes": kept.size(), "limit": kept.limit, "values": recording.values}
    if session is not None:
        snapshot = session.snapshot()
        found["failed"] = snapshot["failed"]
        found["ring"] = snapshot["ring"]
        found["leader"] = snapshot["leader"]
        if (leadership := session.leadership) is not None:
            found["elector"] = {
                "lease": leadership.lease,
                "identity": leadership.identity,
                "leader": leadership.leader(),
                "leads": leadership.is_leader(),
                "terms": leadership.terms,
                "failure": leadership.failure(),
                "trouble": snapshot["election"],
            }
        for each, supervised in session.controllers.items():
            found["controllers"][each] = _controller(supervised.active, dict(snapshot["controllers"][each]))
        found["lifespan"] = snapshot["lifespan"]
        found["background"] = snapshot["background"]
        found["webhooks"] = {"waits_for": snapshot["webhooks"], "failing": _failing_webhooks(session)}
        found["keys"], found["key_counts"] = _keys(session, recording)
        informers = snapshot["informers"]
        for known, cache in (informers or {"informers": {}})["informers"].items():
            moved = () if recording is None else recording.transitions.get(cache["name"], ())
            transitions = [{"time": at, "phase": phase, "reason": reason} for at, phase, reason in reversed(moved)]
            found["caches"].append({"cache": known, **cache, "transitions": transitions})
        found["alive"] = session.alive().reasons
    wrong = problems(found)
    found["standby"] = standby(found)
    found["problems"] = wrong
    cleaned: dict[str, Any] = scrubbed(found)
    return cleaned


def _failing_webhooks(session: Session) -> list[dict[str, Any]]:
    """Return the paths whose last review got no decision."""
    now = asyncio.get_running_loop().time()
    return [
        {"webhook": each.path, "failures": each.failures, "error": each.error, "seconds": now - each.failed_at}
        for each in session.admission.counters()
        if each.failures
    ]


def key_report(
    active: ActiveController, key: ObjectName, recording: Recording | None, summary: bool = False
) -> dict[str, Any]:
    """Return what is known of one key of a controller; in a summary, without its changes and its stack."""
    now = asyncio.get_running_loop().time()
    wall = time.time()
    known = active.queue.key(key)
    ran = None if recording is None else recording.ran(active.name, key)
    found: dict[str, Any] = {
        "controller": active.name,
        "key": str(key),
        "state": _state_of(active, known),
        "causes": [*map(str, known.causes)],
        "causes_left_out": known.causes_left_out,
        "attempts": 0,
        "error": "",
        "next_run": None if known.at is None else wall + max(0.0, known.at - now),
        "waited": max(0.0, now - known.at) if known.state == "ready" and known.at is not None else 0.0,
        "own_writes": active.own.describe(key),
    }
    if known.failing is not None:
        found["attempts"] = known.failing.attempts
        found["error"] = known.failing.error
        found["conflicts"] = known.failing.conflicts
    if known.parked is not None:
        parked = known.parked
        found["error"] = parked.reason
        found["parked"] = parked.kind
        found["attempts"] = 0 if parked.kind == "result" else parked.attempts  # of those that failed
        found["since"] = wall - (now - parked.since)
    if ran is not None and recording is not None:
        found["runs"] = ran
        for failed, error in recording.errors.get((active.name, key), ()):
            if not found["error"].startswith(error):
                found["last_error"] = {"error": error, "time": failed}
    for task, attempt in active.attempts.items():
        if attempt.run.key == key:
            stack = stack_of(task.get_coro())
            found["awaits"] = line_of(stack)
            if not summary:
                found["stack"] = [f"{place(file, line)} in {function}" for file, line, function in stack[-_FRAMES:]]
    if not summary:
        found["exists"] = active.inputs.has(key)
        resource = active.controller.resource
        found["changes"] = [] if recording is None else recording.changes(resource, key)
        cleaned: dict[str, Any] = scrubbed(found)
        return cleaned
    return found


def _state_of(active: ActiveController, known: KeySnapshot) -> str:
    if known.key in active.gate.settling:
        return "settling"
    if known.parked is not None and known.parked.kind == "result":
        return "waiting"
    return known.state


def _controller(active: ActiveController, snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of a controller: its snapshot with shorter lists, and the number of all beside each one."""
    now = asyncio.get_running_loop().time()
    lines = {str(each.run.key): line_of(stack_of(task.get_coro())) for task, each in active.attempts.items()}
    for each in snapshot["running"]:
        each["awaits"] = lines.get(each["key"], "")
    queued = active.queue.snapshot(None)
    undecodable = snapshot["undecodable"]
    snapshot["failures"] = _failures(queued)
    snapshot["parks"] = _parks(queued, undecodable)
    for name in ("parked", "waiting", "undecodable", "settling", "braked"):
        snapshot[f"{name}_keys"] = len(snapshot[name])
    for name in ("parked", "waiting", "undecodable", "braked"):
        snapshot[name] = dict(islice(snapshot[name].items(), KEYS))
    snapshot["settling"] = snapshot["settling"][:KEYS]
    snapshot["oldest"] = {}
    for key in active.queue.oldest(1):
        snapshot["oldest"] = {"key": str(key), "waited": max(0.0, now - (active.queue.key(key).at or now))}
    loops = active.loops.current(now)
    snapshot["looping_keys"] = len(loops)
    snapshot["looping"] = [{**asdict(each), "key": str(each.key)} for each in loops[:KEYS]]
    if active.loops.last is not None:
        key, ended = active.loops.last
        snapshot["last_loop"] = {"key": str(key), "time": time.time() - (now - ended)}
    snapshot["lost_keys"] = active.inputs.lost_keys()
    snapshot["caches"] = [each.name for each in active.inputs.informers()]  # that of the primary first
    snapshot["elected"] = active.controller.elected
    return snapshot


def _failures(queued: QueueSnapshot) -> list[dict[str, Any]]:
    """Return the failing keys by cause, the most frequent first, each with the key that has failed most often."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for key, each in queued.failing.items():
        kind = "conflict" if each.conflicts >= FAILURES else "failure"
        group = found.setdefault((kind, each.cause), {"kind": kind, "keys": 0, "times": -1})
        group["keys"] += 1
        times = each.conflicts if kind == "conflict" else each.attempts
        if times > group["times"]:
            group |= {"times": times, "key": str(key), "error": each.error}
    return sorted(found.values(), key=lambda each: -each["keys"])


def _parks(queued: QueueSnapshot, undecodable: Collection[str]) -> list[dict[str, Any]]:
    """Return the keys that errors have parked by cause, the most frequent first, without those of bad objects."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for key, each in queued.parked.items():
        if each.kind == "result" or str(key) in undecodable:
            continue
        new = {"kind": each.kind, "keys": 0, "key": str(key), "error": each.reason}
        found.setdefault((each.kind, each.cause or each.reason), new)["keys"] += 1
    return sorted(found.values(), key=lambda each: -each["keys"])


def _keys(session: Session, recording: Recording | None) -> tuple[dict[str, list[dict[str, Any]]], dict[str, int]]:
    """Return the keys of interest, those of all controllers together: at most `KEYS` in each list; and how many are."""
    lists: dict[str, list[list[tuple[ActiveController, ObjectName]]]] = {name: [] for name in LISTS}
    counts = dict.fromkeys(LISTS, 0)
    actives = {name: each.active for name, each in session.controllers.items()}
    for active in actives.values():
        queued = active.queue.snapshot(KEYS)
        waiting = [key for key, each in queued.parked.items() if each.kind == "result"]
        parked = [key for key, each in queued.parked.items() if each.kind != "result"]
        for name, keys, count in (
            ("running", (each.run.key for each in active.attempts.values()), len(active.attempts)),
            ("failing", queued.failing, queued.failing_keys),
            ("parked", parked, len(parked)),
            ("waiting", waiting, len(waiting)),
            ("settling", active.gate.settling, len(active.gate.settling)),
            ("oldest", active.queue.oldest(KEYS), queued.ready),
        ):
            lists[name].append([(active, key) for key in islice(keys, KEYS)])
            counts[name] += count
    if recording is not None:
        now = asyncio.get_running_loop().time()
        ran = [(actives[name], key, runs) for (name, key), runs in recording.fold().items() if name in actives]
        hot = [each for each in ran if len(each[2]) > 1]
        slow = [each for each in ran if longest(each[2]) >= _SLOW]
        counts |= {"hottest": len(hot), "slowest": len(slow)}
        hot = nlargest(KEYS, hot, key=lambda item: len(item[2]) / (_CALM + now - item[2][0][1]))
        slow = nlargest(KEYS, slow, key=lambda item: longest(item[2]))
        lists["hottest"] = [[(active, key) for active, key, _ in hot]]
        lists["slowest"] = [[(active, key) for active, key, _ in slow]]
    found = {
        name: [key_report(active, key, recording, summary=True) for active, key in _shared(parts, KEYS)]
        for name, parts in lists.items()
    }
    return found, counts


def _shared(parts: list[list[E]], most: int) -> list[E]:
    """Return the first entries of each part, at most `most` together: what one part does not need, the others get."""
    lengths = [0] * len(parts)
    left = most
    while left and any(length < len(part) for length, part in zip(lengths, parts, strict=True)):
        for at, part in enumerate(parts):
            if left and lengths[at] < len(part):
                lengths[at] += 1
                left -= 1
    return [each for length, part in zip(lengths, parts, strict=True) for each in part[:length]]


@cache
def process_started() -> float:
    """Return when this process was started, in seconds since the epoch; where the system does not say: now."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        since_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # the first one of these is field 3
        return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.time()


def stack_of(coroutine: Any) -> list[tuple[str, int, str]]:
    """Return the frames of a coroutine that waits, outermost first: file, line and function."""
    found: list[tuple[str, int, str]] = []
    while coroutine is not None and len(found) < 100:
        for prefix, awaited in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
            if hasattr(coroutine, f"{prefix}_frame"):
                frame = getattr(coroutine, f"{prefix}_frame")
                following = getattr(coroutine, f"{prefix}_{awaited}")
                if frame is not None:
                    code = frame.f_code
                    found.append((code.co_filename, frame.f_lineno or 0, code.co_name))
                break
        else:
            return found
        coroutine = following
    return found


def line_of(stack: list[tuple[str, int, str]]) -> str:
    """Return the innermost line of user code, "shop/widgets.py:31 in widgets"; of none, the innermost line."""
    if not stack:
        return ""
    file, line, function = stack[innermost_user_code([file for file, _, _ in stack])]
    return f"{place(file, line)} in {function}"
