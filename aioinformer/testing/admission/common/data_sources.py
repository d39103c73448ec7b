"""What the volume of a claim is filled with at first: one thing, said in two fields, an older and a newer one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIELDS = ("apiGroup", "kind", "name")
_SNAPSHOTS = "snapshot.storage.k8s.io"


def settle_data_source(spec: dict[str, Any], former: Mapping[str, Any] | None = None) -> None:
    """Says in both fields what one of them says.

    Sources in other namespaces are not served. What the older field cannot say is dropped from it, without a word.

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
