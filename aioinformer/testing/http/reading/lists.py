"""Lists: pages of objects at one version, and the bodies in which they are sent.

A continue token has a version, and the key at which the next page begins, as base64 of JSON. Keys are relative to the
listed path: a token of one namespace continues at the same name in another one. Version -1 means no fixed version: the
list continues with the current objects.
"""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.http.reading.list_options import Options, Selection
    from aioinformer.testing.state.storage import Collection, Record

_TOO_OLD = "The resourceVersion for the provided list is too old."
_TOKEN_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_SELECT_AT_ONCE = 2_000
_CHUNK = 128 * 1024
_FORM = "meta.k8s.io/v1"
_FIELDS = {"v": str, "rv": int, "start": str}


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of one list response.

    Attributes:
        token: for the next page, "" for none.
        remaining: how many objects follow, None if that was not counted.
    """

    version: int
    records: list[Record]
    token: str = ""
    remaining: int | None = None


async def read_page(collection: Collection, options: Options, current: int) -> Page:
    """Return the objects that a list request asks for.

    Args:
        options: of the request. Wait for a version in the future before.

    Raises:
        StatusError: 400 for a malformed token, 410 for an expired version or token, 504 for a token of the future.
    """
    selection = options.selection
    version = current
    start = ""
    reported = current
    if options.token:
        version, start = _decode_token(options.token, selection.namespace)
        if version < 0:
            version = current
        elif version < collection.floor:
            raise statuses.expired(_TOKEN_TOO_OLD, metadata={"continue": _restart_token(options.token)})
        elif version > current:
            raise statuses.version_too_large(version, current)
        reported = version
    elif options.exact:
        version = options.version_number
        reported = version
        if version < collection.floor:
            raise statuses.expired(_TOO_OLD)
    records = collection.records(selection.namespace, start=start, version=version)
    # A real server answers version 0 from its cache, without pages.
    limit = 0 if options.version == "0" else options.limit
    if selection.everything:
        page = records[:limit] if limit else records
        left: int | None = len(records) - len(page)
    else:
        page, more = await _select(records, selection, limit)
        left = None
        if not more:
            limit = 0
    if not limit or left == 0:
        return Page(reported, page)
    return Page(
        reported, page, _encode_token(reported, page[-1].namespace, page[-1].name, scope=selection.namespace), left
    )


async def _select(records: list[Record], selection: Selection, limit: int) -> tuple[list[Record], bool]:
    """Return the matching records up to a limit, and whether any record follows, matching or not."""
    found: list[Record] = []
    for index, record in enumerate(records):
        if selection.matches(record):
            found.append(record)
            if len(found) == limit:
                return found, index + 1 < len(records)
        if index % _SELECT_AT_ONCE == _SELECT_AT_ONCE - 1:
            await asyncio.sleep(0)
    return found, False


def list_chunks(served: Served, page: Page) -> Iterator[bytes]:
    """Yield the body of a list in pieces of about 128 KiB. As in the API, it ends with a line feed."""
    resource = served.resource
    if served.custom:
        head = b'{"apiVersion":%s,"items":[' % encode_plain(resource.api_version)
        tail = b'],"kind":%s,"metadata":%s}\n' % (encode_plain(served.list_kind), list_metadata(page, custom=True))
        strip = 0
    else:
        names = encode_plain(served.list_kind), encode_plain(resource.api_version)
        head = b'{"kind":%s,"apiVersion":%s,"metadata":%s,"items":[' % (*names, list_metadata(page))
        tail = b"]}\n"
        strip = len(served.head)
    yield from _joined(head, (_item(served, record, strip) for record in page.records), tail)


def partial_chunks(page: Page, items: Iterator[bytes], group_version: str) -> Iterator[bytes]:
    """Yield the body of a `PartialObjectMetadataList`.

    Args:
        group_version: of the list, "meta.k8s.io/v1" or the beta.
    """
    names = group_version.encode(), list_metadata(page)
    head = b'{"kind":"PartialObjectMetadataList","apiVersion":"%s","metadata":%s,"items":' % names
    if page.records:
        yield from _joined(head + b"[", items, b"]}\n")
    else:
        yield head + b"null}\n"


def list_metadata(page: Page, *, custom: bool = False) -> bytes:
    """Return the `metadata` of a list. For custom resources it is sorted and has `continue` even if empty."""
    metadata: dict[str, str | int] = {} if custom else {"resourceVersion": str(page.version)}
    if page.token or custom:
        metadata["continue"] = page.token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    metadata["resourceVersion"] = str(page.version)
    return encode_plain(metadata)


def _item(served: Served, record: Record, strip: int) -> bytes:
    body = served.form(record)
    return b"{" + body[strip:] if strip else body


def _joined(head: bytes, items: Iterator[bytes], tail: bytes) -> Iterator[bytes]:
    parts = [head]
    size = 0
    comma = b""
    for item in items:
        parts += (comma, item)
        comma = b","
        size += len(item)
        if size >= _CHUNK:
            yield b"".join(parts)
            parts = []
            size = 0
    parts.append(tail)
    yield b"".join(parts)


def _encode_token(version: int, namespace: str, name: str, *, scope: str) -> str:
    """Return a token that continues after an object."""
    key = f"/{name}" if scope or not namespace else f"{namespace}/{name}"
    return _token(version, f"{key}\0")


def _restart_token(token: str) -> str:
    """Return a token that continues at the same key with the current objects."""
    return _token(-1, _content(token)["start"].removeprefix("/"))


def _decode_token(token: str, scope: str) -> tuple[int, str]:
    """Return the version, or -1, and the first key of the page."""
    content = _content(token)
    if content["v"] != _FORM:
        raise _bad_token(f"server does not recognize this encoded version {content['v']}")
    version = content["rv"]
    start = content["start"]
    if version == 0:
        raise _bad_token(f"incorrect encoded start resourceVersion (version {_FORM})")
    if not start:
        raise _bad_token(f"encoded start key empty (version {_FORM})")
    path = start if start.startswith("/") else f"/{start}"
    if "//" in path or normpath(path) != path:
        raise _bad_token(start)
    key = path.removeprefix("/")
    return version, f"{scope}/{key}" if scope else key


def _content(token: str) -> dict[str, Any]:
    """Return the fields of a token."""
    try:
        content = json.loads(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))
    except ValueError as error:
        raise _bad_token(str(error)) from None
    if not isinstance(content, dict) or not all(isinstance(content.get(name), kind) for name, kind in _FIELDS.items()):
        raise _bad_token("it is not a token of this server")
    return content


def _token(version: int, start: str) -> str:
    content = json.dumps({"v": _FORM, "rv": version, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def _bad_token(why: str) -> statuses.StatusError:
    return statuses.bad_request(f"invalid continue token: continue key is not valid: {why}")
