"""The data source of a persistent volume claim, which an older and a newer field have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIELDS = ("apiGroup", "kind", "name")
_SNAPSHOTS = "snapshot.storage.k8s.io"


def set_data_source(spec: dict[str, Any], former: Mapping[str, Any] | None = None) -> None:
    """Set each of the two fields from the other one.

    Sources in other namespaces are not supported. Values that the older field cannot have are dropped silently.

    Args:
        spec: of a claim; is changed.
        former: that of the claim that is updated.
    """
    former = former or {}
    if (spec.get("dataSourceRef") or {}).get("namespace") and former.get("dataSourceRef") is None:
        del spec["dataSourceRef"]
    is_new = former.get("dataSource") is None and former.get("dataSourceRef") is None
    if is_new and spec.get("dataSourceRef") is None and not _is_classic(spec.get("dataSource") or {}):
        spec.pop("dataSource", None)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = _told(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = _told(reference)


def _is_classic(source: Mapping[str, Any]) -> bool:
    kind, group = source.get("kind"), source.get("apiGroup") or ""
    return (kind, group) in (("PersistentVolumeClaim", ""), ("VolumeSnapshot", _SNAPSHOTS))


def _told(source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: source[name] for name in _FIELDS if name in source}
