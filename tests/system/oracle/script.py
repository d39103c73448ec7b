"""Scripts: the behaviour of a server, as data.

A script has a list of replies for each kind of request: `list`, `page` (of a list, by a continue token), `stream` (a
watch with sendInitialEvents) and `watch`. The n-th request of a kind receives the n-th reply; the last one is repeated.
A reply is a list of steps, each a verb and its arguments:

| step | what the server does |
|---|---|
| `answer 503 retry-after=8` | refuses; options are `reason=Gone`, `html`, `too-large`; `answer 200 html` is a page |
| `list 10 a@9 b@8` | sends a list at version 10; options are `next=TOKEN`, `kind=…`, `api=…`, `null`, `bare`, `gzip` |
| `head` | sends the head of a watch; without this step, the head is sent with the first event |
| `send ~a@11 =12` | sends events |
| `half send …` | sends a part of the events, or, as `half list …`, of a list |
| `join send …`, `pretty send …` | omits the newlines between events; indents events, or a list |
| `drip 0.2 send …` | sends the events in ten pieces, with this many seconds between them |
| `raw …` | sends this text |
| `wait 1.5` | waits for this many seconds |
| `hold` | waits until the client closes the connection |
| `end`, `eof`, `cut` | ends the response, closes the connection without ending it, resets the connection |
| `refuse 2` | refuses connections for this many seconds |

Objects are `NAME@VERSION`, in the namespace "default" unless it is given: `other/a@10`. The value of an object is
derived from its version, and its uid from its name, unless they are given: `a@10=value#uid`. `a@=x` has no version,
`a@5#` no uid. `*2000` pads an object, `^400` nests it, `%` makes it undecodable. Events are `+` ADDED, `~` MODIFIED,
`-` DELETED and `?` (an unknown type) before an object, `=12` a bookmark (`=12!` with the annotation that ends initial
events, `=12?` with the annotation and the value false), and `!410` an ERROR.

A script ends after a `hold` has lasted for `settle` seconds. Its record contains the requests, with the time since the
last action of the server ("at once", "backoff" or "held"), the notifications of each key, and the store.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
#: Verbs that modify `list` or `send`.
MODIFIERS = ("half", "join", "pretty", "drip")
VERBS = ("answer", "list", "head", "send", "raw", "wait", "hold", "end", "eof", "cut", "refuse", *MODIFIERS)
#: The kinds of requests: a list, a later page of one, a streaming list, a watch.
KINDS = ("list", "page", "stream", "watch")
#: The verbs that end a reply.
LAST = ("answer", "list", "hold", "end", "eof", "cut")

Reply = tuple[str, ...]

_OBJECT = re.compile(
    r"(?:(?P<namespace>[a-z-]+)/)?(?P<name>[a-z0-9-]*)@(?P<version>[^=#*^%\s]*)"
    r"(?:=(?P<value>[^#*^%\s]*))?(?:#(?P<uid>[^*^%\s]*))?(?:\*(?P<size>\d+))?(?:\^(?P<depth>\d+))?(?P<bad>%)?"
)
_NESTED = "nested to a depth of "
_REASONS = {
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
        group: the name of its table in a file of `scripts`.
        summary: what the script shows, in one sentence.
        replies: the replies to requests of each kind, in order; the last one is repeated.
        covers: rows of docs/conformance.toml.
        faults: rows of docs/faults.md, by a part of their first column.
        settle: the script ends after a `hold` has lasted for this many seconds.
        requests: the number of requests in the record; the script may end with the last of them. 0 for all.
        options: of aioinformer's reflector, if its defaults take too long for a test.
        without: general rules that do not apply because of `options`.
        differs: rules of differences.toml that explain the differences between `ours` and client-go's record.
        ours: the parts of the record in which aioinformer differs.
    """

    name: str
    group: str
    summary: str
    replies: dict[str, tuple[Reply, ...]]
    covers: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    settle: float = 2.0
    requests: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    ours: dict[str, Any] = field(default_factory=dict)

    @property
    def streaming(self) -> bool:
        """Return whether the script has replies to streaming lists."""
        return "stream" in self.replies


def load(folder: Path = FOLDER / "scripts") -> list[Script]:
    """Return all scripts, in the order of their files."""
    files = [tomllib.loads(path.read_text()) for path in sorted(folder.glob("*.toml"))]
    return [_script(group, entry) for file in files for group, entries in file.items() for entry in entries]


def _script(group: str, entry: dict[str, Any]) -> Script:
    replies = {kind: tuple(tuple(reply) for reply in entry.pop(kind)) for kind in KINDS if kind in entry}
    for name in ("covers", "faults", "without", "differs"):
        entry[name] = tuple(entry.get(name, ()))
    script = Script(group=group, replies=replies, **entry)
    for kind, sequence in replies.items():
        for reply in sequence:
            _check(reply, f"{script.name}: {kind}")
    return script


def _check(reply: Reply, where: str) -> None:
    for position, step in enumerate(reply, 1):
        modifier, verb, _ = split_step(step)
        if verb not in VERBS or verb in MODIFIERS:
            raise ValueError(f"{where}: {step!r} has none of the verbs {', '.join(VERBS)}")
        if modifier and verb not in ("list", "send"):
            raise ValueError(f"{where}: {modifier} in {step!r} must be followed by `list` or `send`")
        if position == len(reply) and verb not in LAST:
            raise ValueError(f"{where}: a reply must end with one of {', '.join(LAST)}, not with {step!r}")


def split_step(step: str) -> tuple[str, str, str]:
    """Return the modifier of a step, "" if it has none; its verb, and the arguments, those of `drip` first."""
    first, _, rest = step.partition(" ")
    if first not in MODIFIERS:
        return "", first, rest
    pause, _, rest = rest.partition(" ") if first == "drip" else ("", "", rest)
    verb, _, argument = rest.partition(" ")
    return first, verb, f"{pause} {argument}".lstrip()


def decode_object(text: str) -> dict[str, Any]:
    """Return the object for a notation such as `a@10` or `other/a@10=x#2`."""
    match = _OBJECT.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is not an object; write NAME@VERSION, optionally with =VALUE, #UID, *SIZE, ^DEPTH or %"
        )
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
    """Return a decoded object or event as JSON."""
    text = json.dumps(value, indent=indent)
    # Inserted as text, because the nesting exceeds the recursion limit of the encoder.
    return re.sub(f'"{_NESTED}(\\d+)"', lambda match: '{"n":' * int(match[1]) + "{}" + "}" * int(match[1]), text)


def encode_object(namespace: str, name: str, version: str, uid: str, value: str) -> str:
    """Return the notation of an object, the inverse of `decode_object`."""
    text = f"{name}@{version}" if namespace == "default" else f"{namespace}/{name}@{version}"
    if value != f"v{version}":
        text += f"={value}"
    return text if uid == f"u-{name}" else f"{text}#{uid}"


def decode_event(text: str) -> dict[str, Any]:
    """Return the watch event for a notation: +a@1 ~a@2 -a@3 ?a@4 =5 =5! !410."""
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
            raise ValueError(f"{text!r} is not an event; write +a@1, ~a@2, -a@3, ?a@4, =5, =5!, =5? or !410")


def status(code: int, *, reason: str = "", cause: str = "", retry_after: int = 0) -> dict[str, Any]:
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
        "message": f"scripted failure: {code}",
        "reason": reason or _REASONS.get(code, "Unknown"),
        "code": code,
        **({"details": details} if details else {}),
    }
