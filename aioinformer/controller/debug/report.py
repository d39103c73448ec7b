"""The report: all that a manager knows of itself, as plain data for `json.dumps`. The page, SIGUSR1 and `top` show it.

It has names, counts, times and texts that the log has, too: no content of an object, and no credential. Lists of keys
have an upper bound, and the number of all beside them. Times are seconds since the epoch, durations seconds.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from aioinformer.controller.debug.problems import problems
from aioinformer.controller.debug.recording import longest
from aioinformer.exports import package_version
from aioinformer.functions import innermost_user_code, place
from aioinformer.logs import get_logger, visible

if TYPE_CHECKING:
    from aioinformer.controller.debug.recording import Recording
    from aioinformer.controller.running.active import ActiveController
    from aioinformer.controller.running.session import Session
    from aioinformer.resources.keys import ObjectName

_log = get_logger("aioinformer.controller")

#: The most keys of each list.
KEYS: Final = 50
#: The most frames of an attempt, and keys of which a controller says why they are parked.
_FRAMES: Final = 16
_PARKED: Final = 200
#: Runs within so many seconds do not make a key hotter if they are closer together.
_CALM: Final = 10.0
#: A text with a credential has one of these; most texts have none.
_MARKS: Final = (" ", "://", "eyJ", "=", '":', "':")
#: Credentials in texts of servers, proxies and programs. `token:` and `secret:` count in quotes only: resources are
#: named so.
_NAMES: Final = r"passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|private[_-]?key"
_CREDENTIALS: Final = re.compile(
    r"(?P<scheme>\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}"
    r"|(?P<user>://)[^/\s@]+@"
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    rf"|(?P<name>(?:{_NAMES})(?:[\"']?\s*:\s*|\s*=\s*)|(?:secret|token)(?:[\"']\s*:\s*|\s*=\s*))"
    r"(?:\"[^\"]+(?:\"|$)|'[^']+(?:'|$)|[^\s\"'&,;)}]+)",
    re.IGNORECASE | re.DOTALL,
)


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
        "process": {"pid": os.getpid(), "python": sys.version.split()[0], "version": package_version()},
        "running": session is not None and not session.is_ending(),
        "problems": [],
        "loop": {"lag": lag},
        "elector": None,
        "ring": None,
        "webhooks": {"waits_for": None, "failing": []},
        "controllers": {},
        "keys": {},
        "caches": [],
        "recording": None,
    }
    if recording is not None:
        kept, keys = recording.histories, sum(map(len, recording.histories.values()))
        found["recording"] = {"keys": keys, "bytes": kept.size(), "limit": kept.limit, "values": recording.values}
    if session is not None:
        snapshot = session.snapshot()
        found["failed"], found["ring"], found["leader"] = snapshot["failed"], snapshot["ring"], snapshot["leader"]
        if (leadership := session.leadership) is not None:
            found["elector"] = {
                "identity": leadership.identity,
                "leader": leadership.leader(),
                "leads": leadership.is_leader(),
                "terms": leadership.terms,
                "failure": leadership.failure(),
            }
        for each, supervised in session.controllers.items():
            found["controllers"][each] = _controller(supervised.active, dict(snapshot["controllers"][each]))
        found["webhooks"] = {"waits_for": snapshot["webhooks"], "failing": _failing_webhooks(session)}
        found["keys"] = _keys(session, recording)
        informers = snapshot["informers"]
        for known, cache in (informers or {"informers": {}})["informers"].items():
            moved = () if recording is None else recording.transitions.get(cache["name"], ())
            transitions = [{"time": at, "phase": phase, "reason": reason} for at, phase, reason in reversed(moved)]
            found["caches"].append({"cache": known, **cache, "transitions": transitions})
        found["alive"] = session.alive().reasons
    found["problems"] = problems(found)
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
    now, wall = asyncio.get_running_loop().time(), time.time()
    known = active.queue.key(key)
    ran = None if recording is None else recording.ran(active.name, key)
    found: dict[str, Any] = {
        "controller": active.name,
        "key": str(key),
        "state": "settling" if key in active.gate.settling else known.state,
        "causes": [*map(str, known.causes)],
        "causes_left_out": known.causes_left_out,
        "attempts": 0,
        "error": "",
        "next_run": None if known.at is None else wall + max(0.0, known.at - now),
        "waited": max(0.0, now - known.at) if known.state == "ready" and known.at is not None else 0.0,
        "own_writes": active.own.describe(key),
    }
    if known.failing is not None:
        found["attempts"], found["error"] = known.failing.attempts, known.failing.error
        found["conflicts"] = known.failing.conflicts
    if known.parked is not None:
        parked = known.parked
        found["attempts"], found["error"], found["parked"] = parked.attempts, parked.reason, parked.kind
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


def _controller(active: ActiveController, snapshot: dict[str, Any]) -> dict[str, Any]:
    lines = {str(each.run.key): line_of(stack_of(task.get_coro())) for task, each in active.attempts.items()}
    for each in snapshot["running"]:
        each["awaits"] = lines.get(each["key"], "")
    snapshot["parked_keys"], snapshot["failing_keys"] = len(snapshot["parked"]), active.queue.problems()[1]
    snapshot["parked"] = dict(islice(snapshot["parked"].items(), _PARKED))
    snapshot["settling"] = snapshot["settling"][:KEYS]
    snapshot["elected"] = active.controller.elected
    return snapshot


def _keys(session: Session, recording: Recording | None) -> dict[str, list[dict[str, Any]]]:
    """Return the keys of interest, those of all controllers together: at most `KEYS` in each list."""
    lists: dict[str, list[tuple[ActiveController, ObjectName]]] = {
        name: [] for name in ("running", "failing", "parked", "settling", "oldest", "hottest", "slowest")
    }
    actives = {name: each.active for name, each in session.controllers.items()}
    limit = max(5, KEYS // max(1, len(actives)))  # each controller has its part
    for active in actives.values():
        queued = active.queue.snapshot(limit)
        lists["running"] += [(active, each.run.key) for each in islice(active.attempts.values(), limit)]
        lists["failing"] += [(active, key) for key in queued.failing]
        lists["parked"] += [(active, key) for key in islice(queued.parked, limit)]
        lists["settling"] += [(active, key) for key in islice(active.gate.settling, limit)]
        lists["oldest"] += [(active, key) for key in active.queue.oldest(limit)]
    if recording is not None:
        now = asyncio.get_running_loop().time()
        ran = [(actives[name], key, runs) for (name, key), runs in recording.fold().items() if name in actives]
        hot = nlargest(KEYS, ran, key=lambda item: len(item[2]) / (_CALM + now - item[2][0][1]))
        lists["hottest"] = [(active, key) for active, key, runs in hot if len(runs) > 1]
        slow = nlargest(KEYS, ran, key=lambda item: longest(item[2]))
        lists["slowest"] = [(active, key) for active, key, runs in slow if longest(runs) >= 0.001]
    return {
        name: [key_report(active, key, recording, summary=True) for active, key in found[:KEYS]]
        for name, found in lists.items()
    }


def stack_of(coroutine: Any) -> list[tuple[str, int, str]]:
    """Return the frames of a coroutine that waits, outermost first: file, line and function."""
    found: list[tuple[str, int, str]] = []
    while coroutine is not None and len(found) < 100:
        for prefix, awaited in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
            if hasattr(coroutine, f"{prefix}_frame"):
                frame, following = getattr(coroutine, f"{prefix}_frame"), getattr(coroutine, f"{prefix}_{awaited}")
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


def scrubbed(value: Any) -> Any:
    """Return plain data without credentials and control characters in its texts."""
    if isinstance(value, str):
        shown = visible(value)
        return _CREDENTIALS.sub(_hidden, shown) if any(mark in shown for mark in _MARKS) else shown
    if isinstance(value, dict):
        return {str(name): scrubbed(each) for name, each in value.items()}
    return [scrubbed(each) for each in value] if isinstance(value, (list, tuple)) else value


def _hidden(found: re.Match[str]) -> str:
    return f"{found['scheme'] or found['user'] or found['name'] or ''}<redacted>{'@' if found['user'] else ''}"
