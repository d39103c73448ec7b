"""CustomResourceDefinitions: defaults, field order, stored versions and conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aioinformer.testing.api.encoding import quote
from aioinformer.testing.api.statuses import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_APPROVED = "api-approved.kubernetes.io"


def default_definition(obj: dict[str, Any]) -> None:
    """Fill in the defaults of a definition.

    Args:
        obj: is changed.
    """
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names["singular"] = names.get("singular") or str(names["kind"]).lower()
        names["listKind"] = names.get("listKind") or f"{names['kind']}List"
    if not spec.get("conversion"):
        spec["conversion"] = {"strategy": "None"}
    client = (spec["conversion"].get("webhook") or {}).get("clientConfig") or {}
    if client.get("service") and client["service"].get("port") is None:
        client["service"]["port"] = 443
    spec["names"] = _in_order(names, ("plural", "singular", "shortNames", "kind", "listKind", "categories"))
    obj["spec"] = _in_order(spec, ("group", "names", "scope", "versions", "conversion"))


def note_stored_versions(obj: dict[str, Any], old: Mapping[str, Any] | None) -> None:
    """Record the storage version of a definition in its status.

    Args:
        obj: the definition, with its defaults; its status is changed.
    """
    stored = [version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")]
    if old is None:
        stored = stored[:1]
        obj["status"]["storedVersions"] = stored
    else:
        known = (old.get("status") or {}).get("storedVersions") or ()
        stored = [*known, *(name for name in stored if name not in known)]
        obj.setdefault("status", {})["storedVersions"] = stored


def naming_causes(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
    """Return what is wrong with the name and the approval of a definition, and with changes of what is immutable."""
    causes = list(_approval_causes(obj, old))
    if old is None:
        return [*_own_name_causes(str(obj["metadata"].get("name") or ""), obj["spec"]), *causes]
    return [*causes, *_change_causes(obj["spec"], old["spec"])]


def _approval_causes(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Yield what is wrong with the approval that the groups of Kubernetes need."""
    group = obj["spec"].get("group") or ""
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return
    approval = _approval(obj)
    if old is not None and _approval(old) == approval:
        return
    field = f"metadata.annotations[{_APPROVED}]"
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    needed = f'protected groups must have approval annotation "{_APPROVED}"'
    if not approval:
        yield Cause.required(field, f"{needed}, {see}")
        return
    url = urlsplit(approval)
    if not approval.startswith("unapproved") and not (url.scheme and url.netloc):
        either = 'with either a URL or a reason starting with "unapproved"'
        yield Cause.invalid(field, quote(approval), f"{needed} {either}, {see}")


def _approval(obj: Mapping[str, Any]) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(_APPROVED) or "")


def _own_name_causes(name: str, spec: Mapping[str, Any]) -> Iterator[Cause]:
    if name != f"{spec['names'].get('plural') or ''}.{spec.get('group') or ''}":
        yield Cause.invalid("metadata.name", f'"{name}"', 'must be spec.names.plural+"."+spec.group')


def _change_causes(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    for place in ("group", "scope", "names.kind", "names.plural"):
        part, _, below = place.partition(".")
        new, former = (each[part][below] if below else each[part] for each in (spec, old))
        if new != former:
            yield Cause.invalid(f"spec.{place}", f'"{new}"', "field is immutable")


def establish(obj: dict[str, Any], others: Iterable[Mapping[str, Any]], now: str) -> dict[str, Any]:
    """Set the accepted names and the conditions. The resource is served if all names are accepted.

    Args:
        obj: is changed.
        others: all stored definitions.
    """
    accepted, reason, message = _accepted_names(obj, others)
    obj["status"]["acceptedNames"] = accepted
    conditions = [
        ("NamesAccepted", reason or "NoConflicts", message or "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    if reason:
        conditions[1] = ("Established", "NotAccepted", "not all names are accepted")
    status = "False" if reason else "True"
    obj["status"]["conditions"] = [
        {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
        for kind, reason, message in conditions
    ]
    return obj


def is_established(obj: Mapping[str, Any]) -> bool:
    """Return whether the resource of a definition is served."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _accepted_names(obj: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], str, str]:
    """Return the names without conflicts in the group, and reason and message of the last conflict."""
    spec = obj["spec"]
    name = obj["metadata"]["name"]
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"]["group"] == spec["group"] and other["metadata"]["name"] != name:
            other_names = (other.get("status") or {}).get("acceptedNames") or {}
            resources.update(
                [other_names.get("plural", ""), other_names.get("singular", ""), *(other_names.get("shortNames") or ())]
            )
            kinds.update([other_names.get("kind", ""), other_names.get("listKind", "")])
    accepted: dict[str, Any] = {"plural": "", "kind": ""}
    reason = ""
    message = ""
    for part in ("plural", "singular", "shortNames", "kind", "listKind", "categories"):
        if part not in spec["names"]:
            continue
        values = spec["names"][part]
        taken = _taken_names(part, resources, kinds)
        if conflicts := [each for each in ([values] if isinstance(values, str) else values) if each in taken]:
            reason = f"{part[0].upper()}{part[1:].removesuffix('s')}Conflict"
            message = ", ".join(f'"{each}" is already in use' for each in conflicts)
        else:
            accepted[part] = values
    return accepted, reason, message


def _taken_names(part: str, resources: set[str], kinds: set[str]) -> set[str]:
    if part in ("kind", "listKind"):
        return kinds
    return resources if part != "categories" else set()


def _in_order(values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    known = {name: values[name] for name in names if name in values}
    return known | {name: value for name, value in values.items() if name not in known}
