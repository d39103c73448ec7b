"""Lists: pages of objects at one version, and the bodies in which they are sent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.http.reading.continue_tokens import decode_token, encode_token, restart_token

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


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of one list response.

    Attributes:
        version: of the list.
        records: in the order of their keys.
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
        collection: of the resource.
        options: of the request. Wait for a version in the future before.
        current: version of the server.

    Raises:
        StatusError: 400 for a malformed token, 410 for an expired version or token, 504 for a token of the future.
    """
    selection = options.selection
    version, start, reported = current, "", current
    if options.token:
        version, start = decode_token(options.token, selection.namespace)
        if version < 0:
            version = current
        elif version < collection.floor:
            raise statuses.expired(_TOKEN_TOO_OLD, metadata={"continue": restart_token(options.token)})
        elif version > current:
            raise statuses.version_too_large(version, current)
        reported = version
    elif options.exact:
        version = reported = options.version_number
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
        reported, page, encode_token(reported, page[-1].namespace, page[-1].name, scope=selection.namespace), left
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
        page: the records.
        items: the metadata of its records.
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
    body = served.body(record.body)
    return b"{" + body[strip:] if strip else body


def _joined(head: bytes, items: Iterator[bytes], tail: bytes) -> Iterator[bytes]:
    parts, size = [head], 0
    comma = b""
    for item in items:
        parts += (comma, item)
        comma = b","
        size += len(item)
        if size >= _CHUNK:
            yield b"".join(parts)
            parts, size = [], 0
    parts.append(tail)
    yield b"".join(parts)
