"""CustomResourceDefinitions: their defaults, the order of their fields, and the conditions of an accepted one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing import statuses
from aioinformer.testing.statuses import Cause
from aioinformer.testing.validation import letter_label_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MIXED_CASE = "may have mixed case, but should otherwise match: "


def prepare_definition(obj: dict[str, Any], old: Mapping[str, Any] | None = None) -> None:
    """Fills in what a definition may leave out.

    Args:
        obj: is changed.
        old: what it replaces, None for a new one.

    Raises:
        StatusError: 422, its name is not made of its plural and its group, a part is missing or malformed, or one has
            changed that must not.
    """
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    name = obj["metadata"]["name"]
    if name != f"{names.get('plural')}.{spec.get('group')}":
        cause = Cause.invalid("metadata.name", f'"{name}"', 'must be spec.names.plural+"."+spec.group')
        raise statuses.invalid("CustomResourceDefinition", "apiextensions.k8s.io", name, [cause])
    missing = [part for part in ("scope", "versions") if not spec.get(part)]
    missing += [f"names.{part}" for part in ("kind",) if not names.get(part)]
    if missing:
        causes = [Cause.required(f"spec.{part}") for part in missing]
        raise statuses.invalid("CustomResourceDefinition", "apiextensions.k8s.io", name, causes)
    causes = [*_name_causes(names), *(_change_causes(spec, old["spec"]) if old is not None else ())]
    if causes:
        raise statuses.invalid("CustomResourceDefinition", "apiextensions.k8s.io", name, causes)
    obj["spec"] = spec = _in_order(spec, ("group", "names", "scope", "versions", "conversion"))
    spec["names"] = names = _in_order(names, ("plural", "singular", "shortNames", "kind", "listKind", "categories"))
    names.setdefault("singular", str(names.get("kind", "")).lower())
    names.setdefault("listKind", f"{names.get('kind', '')}List")
    spec.setdefault("conversion", {"strategy": "None"})
    if old is None:
        stored = [version["name"] for version in spec.get("versions", ()) if version.get("storage")]
        obj["status"]["storedVersions"] = stored


def _name_causes(names: Mapping[str, Any]) -> Iterator[Cause]:
    for part, lead in (("plural", ""), ("singular", ""), ("kind", _MIXED_CASE), ("listKind", _MIXED_CASE)):
        value = str(names.get(part) or "")
        for why in letter_label_faults(value.lower() if lead else value) if value else ():
            yield Cause.invalid(f"spec.names.{part}", f'"{value}"', lead + why)


def _change_causes(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    for place in ("group", "scope", "names.kind", "names.plural"):
        part, _, below = place.partition(".")
        new, former = (each[part][below] if below else each[part] for each in (spec, old))
        if new != former:
            yield Cause.invalid(f"spec.{place}", f'"{new}"', "field is immutable")


def established(obj: dict[str, Any], now: str) -> dict[str, Any]:
    """The definition as it is once its names are accepted and its resource is served.

    Args:
        obj: is changed.
        now: time of the transition.
    """
    obj["status"]["acceptedNames"] = obj["spec"]["names"]
    obj["status"]["conditions"] = [
        {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    return obj


def _in_order(values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    known = {name: values[name] for name in names if name in values}
    return known | {name: value for name, value in values.items() if name not in known}
