"""Server-sent events as bytes, in the format of the HTML standard.

```
event: put
data: {"resource":"v1/pods","key":"shop/web-1","object":{"node":"a"}}

event: delete
data: {"resource":"v1/pods","key":"shop/web-2"}
id: WmR…
```

A part of the log becomes one run of events, which all readers share. Of what is sent at once, only the first and the
last event have an `id`, the cursor of the reader. That of the first one says that the client may have some of the
events: if it loses the connection in between, it gets all of them again, and what has been deleted since then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.cache.objects.codec import to_json
from aioinformer.streams.log import Changed
from aioinformer.streams.views import ViewMaker, view_maker

if TYPE_CHECKING:
    from aioinformer.cache.objects.record import Record
    from aioinformer.resources.resource import Resource

#: The headers of a response with events. Proxies must neither keep, change, compress nor buffer it.
HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}
#: A comment, which clients ignore, and without which proxies close an idle connection.
HEARTBEAT: Final = b":\n\n"
SYNCED: Final = b"event: synced\ndata: {}\n\n"

#: What kubectl apply writes into each object: all of its values, those of a Secret included.
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_VALUES: Final = ("data", "stringData")
_text = msgspec.json.encode


def retry(seconds: float) -> bytes:
    """Return the field that says after which time a client connects again."""
    return b"retry: %d\n\n" % round(seconds * 1000)


def reset(resource: Resource[Any]) -> bytes:
    """Return the event by which a client forgets all objects of a resource."""
    return b'event: reset\ndata: {"resource":%b}\n\n' % _text(resource.gvr)


def with_cursors(events: bytes, before: str, after: str) -> bytes:
    """Return events with ids: the first one has the cursor of a client that has some of them, the last one of all."""
    return b"id: %b\n%bid: %b\n\n" % (before.encode(), events[:-1], after.encode())


def with_cursor(event: bytes, cursor: str) -> bytes:
    """Return one event with the cursor as its id."""
    return b"%bid: %b\n\n" % (event[:-1], cursor.encode())


def run_of(changes: Iterable[Changed], resource: Resource[Any]) -> bytes:
    """Return the events of changes whose values are events already, as `event_maker` makes them."""
    start = _start("delete", resource)
    return b"".join(
        b"%b%b}\n\n" % (start, _text(change.key)) if change.value is None else change.value for change in changes
    )


def event_maker(view: Callable[..., Any] | None, resource: Resource[Any]) -> ViewMaker:
    """Return what makes the `put` event of an object: with its view, or its version if there is none.

    Args:
        view: as for `view_maker`.
        resource: of the objects.

    Raises:
        UsageError: the view is invalid.
    """
    maker = view_maker(view, resource)
    start = _start("put", resource)
    name = b"version" if view is None else b"object"
    encode = _encoder(maker, resource)
    make = maker.make

    def event(record: Record, obj: Any) -> bytes | None:
        value = make(record, obj)
        if value is None:
            return None
        return b'%b%b,"%b":%b}\n\n' % (start, _text(record.key), name, encode(value))

    return maker._replace(make=event)


def _start(kind: str, resource: Resource[Any]) -> bytes:
    return b'event: %b\ndata: {"resource":%b,"key":' % (kind.encode(), _text(resource.gvr))


def _encoder(maker: ViewMaker, resource: Resource[Any]) -> Callable[[Any], bytes]:
    is_secret = resource.holds_secrets
    named = maker.paths or ()
    values_named = any(path[0] in _VALUES for path in named)
    annotation_named = any(path[-1] == LAST_APPLIED for path in named)

    def encode(value: Any) -> bytes:
        raw = to_json(value)
        if is_secret:
            document = msgspec.json.decode(raw)
            if not annotation_named:
                _drop_last_applied(document)
            if not values_named:
                _drop_values(document)
            return _text(document)
        if b"\n" in raw or b"\r" in raw:  # JSON as a server sent it; a line feed would end the field
            return _text(msgspec.json.decode(raw))
        return raw

    return encode


def _drop_last_applied(document: Any) -> None:
    """Drop the annotation that repeats the values, wherever it is."""
    if isinstance(document, dict):
        document.pop(LAST_APPLIED, None)
        for value in document.values():
            _drop_last_applied(value)
    elif isinstance(document, list):
        for value in document:
            _drop_last_applied(value)


def _drop_values(document: Any) -> None:
    """Drop the values of whole Secrets, wherever they are."""
    if isinstance(document, dict):
        if isinstance(document.get("metadata"), dict):
            for name in _VALUES:
                document.pop(name, None)
        for value in document.values():
            _drop_values(value)
    elif isinstance(document, list):
        for value in document:
            _drop_values(value)
