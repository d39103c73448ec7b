"""The query parameters of writes: field manager, dry run, field validation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from aioinformer.testing.api import statuses
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.ownership.managers import LONGEST_MANAGER, Manager, manager_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiohttp import web

    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served

_DIRECTIVES = ("", "Ignore", "Strict", "Warn")
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})


class WriteOptions(NamedTuple):
    """The options of one write.

    Attributes:
        by: the field manager, from `fieldManager` or the user agent.
        directive: what to do about unknown and repeated fields: "Ignore", "Warn" or "Strict".
        dry_run: store nothing.
        force: let an apply take fields from other managers.
        whole: require all required fields; always true for clients.
    """

    by: Manager
    directive: str
    dry_run: bool = False
    force: bool = False
    whole: bool = True


def write_options(
    request: web.BaseRequest, target: Target, served: Served, kind: str, *, applies: bool = False
) -> WriteOptions:
    """Return the options of a request.

    Args:
        request: the request.
        target: what it is about.
        served: the resource.
        kind: the kind of options, such as "CreateOptions".
        applies: whether the request is a server-side apply.

    Raises:
        StatusError: 422, with everything that is wrong with them.
    """
    query = target.query
    if causes := list(_faults(query, kind, applies)):
        raise statuses.invalid(kind, "meta.k8s.io", "", causes)
    name = manager_name(query.get("fieldManager", ""), request.headers.get("User-Agent", ""))
    by = Manager(name, "Apply" if applies else "Update", served.resource.api_version, target.subresource)
    directive = query.get("fieldValidation", "") or "Warn"
    return WriteOptions(by, directive, "dryRun" in query, query.get("force", "") in _TRUE)


def dry_run_faults(query: Mapping[str, str]) -> Iterator[Cause]:
    """Yield what is wrong with `dryRun`."""
    value = query.get("dryRun", "All")
    if value != "All":
        yield Cause.unsupported("dryRun", f'["{value}"]', ("All",))


def _faults(query: Mapping[str, str], kind: str, applies: bool) -> Iterator[Cause]:
    manager, directive = query.get("fieldManager", ""), query.get("fieldValidation", "")
    if applies and not manager:
        yield Cause.required("fieldManager", "is required for apply patch")
    elif kind == "PatchOptions" and not applies and query.get("force"):
        yield Cause.forbidden("force", "may not be specified for non-apply patch")
    yield from _manager_faults(manager)
    yield from dry_run_faults(query)
    if directive not in _DIRECTIVES:
        yield Cause.unsupported("fieldValidation", f'"{directive}"', _DIRECTIVES)


def _manager_faults(manager: str) -> Iterator[Cause]:
    if len(manager.encode()) > LONGEST_MANAGER:
        yield Cause("FieldValueTooLong", "fieldManager", f"Too long: may not be more than {LONGEST_MANAGER} bytes")
    for at, character in enumerate(manager):
        if not character.isprintable():
            shown = json.dumps(manager, ensure_ascii=False)
            why = f"invalid character U+{ord(character):04X} (at position {at})"
            yield Cause.invalid("fieldManager", shown, why)
            return
