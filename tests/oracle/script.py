"""Scripts: what a server does, as data. `docs/oracle.md` explains the notation."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
VERBS = frozenset(
    [
        "answer",
        "list",
        "head",
        "send",
        "raw",
        "wait",
        "hold",
        "end",
        "eof",
        "cut",
        "refuse",
        "half",
        "join",
        "pretty",
        "drip",
    ],
)
#: The kinds of requests: a list, a later page of one, a streaming list, a watch.
KINDS = ("list", "page", "stream", "watch")
#: The verbs that write objects or events, and may follow `half`, `join`, `pretty` and `drip`.
WRITERS = ("list", "send")
#: The verbs that end a reply.
LAST = ("answer", "list", "hold", "end", "eof", "cut")

Reply = tuple[str, ...]

_OBJECT = re.compile(
    r"(?:(?P<namespace>[a-z-]+)/)?(?P<name>[a-z0-9-]*)@(?P<version>[^=#*^%\s]*)"
    r"(?:=(?P<value>[^#*^%\s]*))?(?:#(?P<uid>[^*^%\s]*))?(?:\*(?P<size>\d+))?(?:\^(?P<depth>\d+))?(?P<bad>%)?"
)
_NESTED = "nested to a depth of "
_ERRORS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(frozen=True, slots=True)
class Script:
    """One server, and what aioinformer must do with it.

    Attributes:
        name: unique among all scripts.
        group: the file that it is in.
        says: what the script shows, in one sentence.
        replies: what the n-th request of each kind is answered with; the last reply of a kind is repeated.
        covers: rows of docs/conformance.toml.
        faults: rows of docs/faults.md, by a piece of their first column.
        settle: the script ends when a `hold` was left alone for so many seconds.
        requests: the record ends with the request of this number, and so may the script; 0 for none.
        options: of aioinformer's reflector, where its defaults take too long for a test.
        differs: rules of differences.toml that explain why `ours` is not what client-go does.
        ours: the parts of the record in which aioinformer differs, as they must be.
    """

    name: str
    group: str
    says: str
    replies: dict[str, tuple[Reply, ...]]
    covers: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    settle: float = 2.0
    requests: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    differs: tuple[str, ...] = ()
    ours: dict[str, Any] = field(default_factory=dict)

    @property
    def streaming(self) -> bool:
        """Whether clients may ask for a streaming list."""
        return "stream" in self.replies


def load(folder: Path = FOLDER / "scripts") -> list[Script]:
    """Return all scripts, in the order of their files."""
    return [
        _script(path.stem, said)
        for path in sorted(folder.glob("*.toml"))
        for said in tomllib.loads(path.read_text())["script"]
    ]


def _script(group: str, said: dict[str, Any]) -> Script:
    replies = {kind: tuple(tuple(reply) for reply in said.pop(kind)) for kind in KINDS if kind in said}
    for name in ("covers", "faults", "differs"):
        said[name] = tuple(said.get(name, ()))
    script = Script(group=group, replies=replies, **said)
    for kind, sequence in replies.items():
        for reply in sequence:
            _check(reply, f"{script.name}: {kind}")
    return script


def _check(reply: Reply, where: str) -> None:
    for position, step in enumerate(reply, 1):
        words = step.split()
        if not VERBS.issuperset(words[:1]):
            raise ValueError(f"{where}: {step!r} is none of the verbs {', '.join(sorted(VERBS))}")
        if words[0] in ("half", "join", "pretty", "drip") and not set(WRITERS) & set(words):
            raise ValueError(f"{where}: {step!r} must be followed by `list` or `send`")
        if position == len(reply) and words[0] not in (*LAST, "half", "refuse", "pretty", "drip"):
            raise ValueError(f"{where}: a reply must end with one of {', '.join(LAST)}, not with {step!r}")


def decode_object(text: str) -> dict[str, Any]:
    """Return the object that a notation such as `a@10`, `other/a@10=x#2` stands for."""
    match = _OBJECT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no object; write NAME@VERSION, with =VALUE, #UID, *SIZE, ^DEPTH or % if need be")
    name, version = match["name"], match["version"]
    uid = f"u-{name}" if match["uid"] is None else match["uid"]
    named = {"namespace": match["namespace"] or "default", "name": name, "uid": uid, "resourceVersion": version}
    metadata: dict[str, Any] = {field: text for field, text in named.items() if text}
    if match["bad"]:
        metadata["uid"] = 7
    spec: dict[str, Any] = {"value": f"v{version}" if match["value"] is None else match["value"]}
    if match["size"]:
        spec["padding"] = "x" * int(match["size"])
    if match["depth"]:
        spec["nested"] = f"{_NESTED}{match['depth']}"
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def encode(value: Any, indent: int | None = None) -> str:
    """Return the JSON of what the decoders here returned."""
    text = json.dumps(value, indent=indent)
    # Deeper than the recursion of an encoder.
    return re.sub(f'"{_NESTED}(\\d+)"', lambda match: '{"n":' * int(match[1]) + "{}" + "}" * int(match[1]), text)


def encode_object(namespace: str, name: str, version: str, uid: str, value: str) -> str:
    """Return the notation of an object, the opposite of `decode_object`."""
    text = f"{name}@{version}" if namespace == "default" else f"{namespace}/{name}@{version}"
    if value != f"v{version}":
        text += f"={value}"
    return text if uid == f"u-{name}" else f"{text}#{uid}"


def decode_event(text: str) -> dict[str, Any]:
    """Return the watch event that a notation stands for: +a@1 ~a@2 -a@3 ?a@4 =5 =5! !410."""
    kind, rest = text[0], text[1:]
    match kind:
        case "+" | "~" | "-" | "?":
            types = {"+": "ADDED", "~": "MODIFIED", "-": "DELETED", "?": "UNKNOWN"}
            return {"type": types[kind], "object": decode_object(rest)}
        case "=":
            metadata: dict[str, Any] = {"resourceVersion": rest.rstrip("!?")}
            if not rest[-1:].isdigit():
                metadata["annotations"] = {"k8s.io/initial-events-end": "true" if rest.endswith("!") else "false"}
            return {
                "type": "BOOKMARK",
                "object": {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata},
            }
        case "!":
            return {"type": "ERROR", "object": status(int(rest))}
        case _:
            raise ValueError(f"{text!r} is no event; write +a@1, ~a@2, -a@3, ?a@4, =5, =5!, =5? or !410")


def status(code: int, message: str = "", *, cause: str = "", retry_after: int = 0) -> dict[str, Any]:
    """Return the Status of a failure."""
    details: dict[str, Any] = {}
    if cause:
        details["causes"] = [{"reason": cause, "message": "Too large resource version"}]
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": message or f"as the script says: {code}",
        "reason": _ERRORS.get(code, "Unknown"),
        "code": code,
        **({"details": details} if details else {}),
    }
