"""What may not be changed about objects of built-in kinds, and what data some of them may hold.

Of all that kube-apiserver checks in the specifications of built-in kinds, this is what controllers meet: everything
else in them is taken as it comes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause

if TYPE_CHECKING:
    from collections.abc import Mapping

_LARGEST_DATA = 1024 * 1024
_LONGEST_KEY = 253
_KEY = "[-._a-zA-Z0-9]+"
_WITH_DATA = {"configmaps": ("data", "binaryData"), "secrets": ("data",)}
_REFERENCE = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}
_SELECTORS = frozenset({"deployments.apps", "replicasets.apps", "daemonsets.apps", "jobs.batch"})


def data_causes(group_resource: str, obj: Mapping[str, Any]) -> list[Cause]:
    """What is wrong with the keys of an object's data, and with its size."""
    fields = _WITH_DATA.get(group_resource, ())
    causes = [cause for field in fields for key in obj.get(field) or () for cause in _key_causes(field, key)]
    size = sum(len(each.encode()) for field in fields for each in (obj.get(field) or {}).values())
    if size > _LARGEST_DATA:
        # The field of a config map has no name, and that is how the API writes it.
        field = "data" if group_resource == "secrets" else "[]"
        causes.append(Cause("FieldValueTooLong", field, f"Too long: may not be more than {_LARGEST_DATA} bytes"))
    return causes


def _key_causes(field: str, key: str) -> list[Cause]:
    faults = [f"must be no more than {_LONGEST_KEY} characters"] if len(key) > _LONGEST_KEY else []
    if not re.fullmatch(_KEY, key):
        what = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        examples = "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is"
        faults.append(f"{what} {examples} '{_KEY}')")
    if key in (".", ".."):
        faults.append(f"must not be '{key}'")
    elif key.startswith(".."):
        faults.append("must not start with '..'")
    return [Cause.invalid(f"{field}[{key}]", json.dumps(key, ensure_ascii=False), fault) for fault in faults]


def change_causes(group_resource: str, obj: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    """What an update changes although it must not."""
    causes = []
    if group_resource in _WITH_DATA and old.get("immutable"):
        fields = {"immutable": old["immutable"], **{name: old.get(name) for name in _WITH_DATA[group_resource]}}
        causes += [
            Cause.forbidden(name, "field is immutable when `immutable` is set")
            for name, value in fields.items()
            if (obj.get(name) or None) != (value or None)
        ]
    if group_resource in _SELECTORS:
        new, before = ((each.get("spec") or {}).get("selector") for each in (obj, old))
        if new != before:
            shown = "null" if new is None else json.dumps(new, ensure_ascii=False, separators=(",", ":"))
            causes.append(Cause.invalid("spec.selector", shown, "field is immutable"))
    if group_resource == "secrets" and obj.get("type", "Opaque") != old.get("type", "Opaque"):
        causes.append(Cause.invalid("type", f'"{obj.get("type", "")}"', "field is immutable"))
    if group_resource.endswith("rolebindings.rbac.authorization.k8s.io") and obj.get("roleRef") != old.get("roleRef"):
        reference = obj.get("roleRef") or {}
        # It is shown as the API's own programs have it.
        named = {shown: reference.get(name, "") for name, shown in _REFERENCE.items()}
        shown = json.dumps(named, ensure_ascii=False, separators=(",", ":"))
        causes.append(Cause.invalid("roleRef", shown, "cannot change roleRef"))
    return causes
