"""The query parameters of lists and watches, and the combinations that the API refuses.

What a resourceVersion means depends on the other parameters:

| request                                   | answered from                                                |
|-------------------------------------------|--------------------------------------------------------------|
| list, no version                          | the current state                                            |
| list, version 0                           | the current state, complete: `limit` is ignored              |
| list, version, NotOlderThan or no match   | the current state, once the version has happened             |
| list, version and limit, no match         | exactly that version (as before `resourceVersionMatch`)      |
| list, version, Exact                      | exactly that version                                         |
| list, continue                            | the version in the token                                     |
| watch, no version or 0                    | the current state as added events, then the changes          |
| watch, version                            | the changes after it                                         |
| watch, sendInitialEvents                  | added events for the state, a bookmark, then the changes     |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aioinformer.resources.field_selectors import FieldRequirement, FieldSelector
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import is_number
from aioinformer.testing.api.selectors import METADATA_FIELDS, read_field_selector, read_label_selector
from aioinformer.testing.api.statuses import Cause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.resources.label_selectors import LabelSelector
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.storage import Record

_EXACT = "Exact"
_NOT_OLDER = "NotOlderThan"


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of a resource that a request selects.

    Attributes:
        namespace: "" for all.
        known: the fields beyond name and namespace, in the order of `Record.fields`.
    """

    namespace: str
    labels: LabelSelector
    fields: FieldSelector
    known: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether neither selector excludes any object."""
        return self.labels.empty and self.fields.empty

    def matches(self, record: Record) -> bool:
        """Return whether a record is in the namespace and matches both selectors."""
        if self.namespace and record.namespace != self.namespace:
            return False
        if self.everything:
            return True

        def value(path: str) -> str:
            if path == "metadata.name" or path == "name":
                return record.name
            if path == "metadata.namespace":
                return record.namespace
            return record.fields[self.known.index(path)]

        return self.labels.matches(record.labels) and self.fields.matches(value)


@dataclass(frozen=True, slots=True)
class Options:
    """The checked parameters of one list or watch.

    Attributes:
        version: "", "0" or a number.
        match: "", "NotOlderThan" or "Exact".
        limit: 0 for none.
        token: the continue token, "" for none.
        send_initial_events: None if not given.
        timeout: seconds; 0 if not given; negative if the watch is over before it begins.
    """

    selection: Selection
    watch: bool = False
    version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""
    bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout: int = 0

    @property
    def version_number(self) -> int:
        return int(self.version or 0)

    @property
    def exact(self) -> bool:
        """Whether a list asks for the state at one version rather than for a recent one."""
        if self.match:
            return self.match == _EXACT
        return self.limit > 0 and self.version not in ("", "0")

    @property
    def starts_with_state(self) -> bool:
        """Whether a watch begins with the objects that exist."""
        if self.send_initial_events is not None:
            return self.send_initial_events
        return self.version in ("", "0")


def parse_options(
    query: Mapping[str, str], served: Served, namespace: str, name: str = "", *, watch_list: bool = True
) -> Options:
    """Read the parameters of a list or watch request.

    Args:
        name: from the URL, for the watch of one object.
        watch_list: whether the server knows `sendInitialEvents` for watches.
    """
    selection = parse_selection(query, served, namespace)
    timeout = _integer(query, "timeoutSeconds")
    limit = _integer(query, "limit")
    watch = _boolean(query, "watch")
    initial = _boolean(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    version = query.get("resourceVersion", "")
    match = query.get("resourceVersionMatch", "")
    token = query.get("continue", "")
    if watch:
        causes = _watch_causes(match, token, initial, watch_list)
    else:
        causes = _list_causes(version, match, token, initial)
    if causes:
        raise statuses.invalid("ListOptions", "meta.k8s.io", "", causes)
    if name:
        selection = _of_one(selection, name)
    if token and not watch and version not in ("", "0"):
        raise statuses.bad_request("specifying resource version is not allowed when using continue")
    if message := version_fault(version):
        if watch:
            raise statuses.internal_error(message)
        raise statuses.bad_request(f"invalid resource version: {message}")
    return Options(
        selection,
        watch,
        version,
        match,
        max(0, limit),
        token,
        _boolean(query, "allowWatchBookmarks"),
        initial,
        timeout,
    )


def parse_selection(query: Mapping[str, str], served: Served, namespace: str) -> Selection:
    """Read the two selectors.

    Raises:
        StatusError: 400 for a malformed selector, or a field that is not selectable for the resource.
    """
    labels = read_label_selector(query.get("labelSelector", ""))
    fields = read_field_selector(query.get("fieldSelector", ""))
    for requirement in fields.requirements:
        if requirement.path in METADATA_FIELDS or requirement.path in served.fields:
            continue
        if requirement.path == "name" and served.resource.group_resource == "namespaces":
            continue
        if served.resource.group_resource == "jobs.batch":
            raise statuses.bad_request(f'field label "{requirement.path}" not supported for Job')
        if served.custom or served.fields:
            raise statuses.bad_request(f"field label not supported: {requirement.path}")
        known = ", ".join(f'"{name}"' for name in METADATA_FIELDS)
        raise statuses.bad_request(f'"{requirement.path}" is not a known field selector: only {known}')
    return Selection(
        namespace or _one_namespace(fields), labels, fields, served.stored_fields if served.custom else served.fields
    )


def _one_namespace(fields: FieldSelector) -> str:
    """Return the namespace that a field selector requires, "" for all."""
    found = (each.value for each in fields.requirements if each.path == "metadata.namespace" and not each.negated)
    return next(found, "")


def _of_one(selection: Selection, name: str) -> Selection:
    wanted = FieldRequirement("metadata.name", name)
    if not selection.fields.empty and wanted not in selection.fields.requirements:
        raise statuses.bad_request("fieldSelector metadata.name doesn't match requested name")
    if wanted in selection.fields.requirements:
        return selection
    return replace(selection, fields=FieldSelector((wanted,)))


def version_fault(version: str) -> str:
    """Return what is wrong with the version that a client sent; "" if it is empty or a number."""
    is_valid = not version or is_number(version, bits=64)
    if is_valid:
        return ""
    return f'resourceVersion: Invalid value: "{version}": it is not a number'


def _list_causes(version: str, match: str, token: str, initial: bool | None) -> list[Cause]:
    causes = []
    field = "resourceVersionMatch"
    if match:
        if not version:
            causes.append(
                Cause.forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if token:
            causes.append(Cause.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in (_EXACT, _NOT_OLDER):
            causes.append(Cause.unsupported(field, f'"{match}"', (_EXACT, _NOT_OLDER, "")))
        if match == _EXACT and version == "0":
            why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            causes.append(Cause.forbidden(field, why))
    if initial is not None:
        causes.append(Cause.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return causes


def _watch_causes(match: str, token: str, initial: bool | None, watch_list: bool) -> list[Cause]:
    causes = []
    field = "resourceVersionMatch"
    if initial is not None:
        if match != _NOT_OLDER:
            why = f"sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER}"
            causes.append(Cause.forbidden(field, why))
        if not watch_list:
            why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            causes.append(Cause.forbidden("sendInitialEvents", why))
    if match:
        if initial is None:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            causes.append(Cause.forbidden(field, why))
        if match != _NOT_OLDER:
            causes.append(Cause.unsupported(field, f'"{match}"', (_NOT_OLDER,)))
    if token:
        causes.append(Cause.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    return causes


def _boolean(query: Mapping[str, str], name: str) -> bool:
    return name in query and query[name].lower() not in ("0", "false")


def _integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name)
    if text is None:
        return 0
    if not is_number(text, bits=63, signed=True):
        raise statuses.bad_request(f'{name}: Invalid value: "{text}": it is not a number')
    return int(text)
