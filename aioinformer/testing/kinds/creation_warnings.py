"""What the API warns of when something is created that it would rather not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_USE_FIELD = 'use "storageClassName" attribute instead'
_TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def creation_warnings(group_resource: str, obj: Mapping[str, Any]) -> list[str]:
    """What is to be said of a new object.

    Args:
        group_resource: "services".
        obj: as it is stored.
    """
    warn = _WARNINGS.get(group_resource)
    return [] if warn is None else list(warn(obj))


def _service(obj: Mapping[str, Any]) -> Iterator[str]:
    if (obj.get("spec") or {}).get("externalIPs"):
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"


def _slice(obj: Mapping[str, Any]) -> Iterator[str]:
    if obj.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"


def _volume(obj: Mapping[str, Any]) -> Iterator[str]:
    if _STORAGE_CLASS in (obj["metadata"].get("annotations") or {}):
        yield f"metadata.annotations[{_STORAGE_CLASS}]: deprecated since v1.8; {_USE_FIELD}"


def _claim(obj: Mapping[str, Any]) -> Iterator[str]:
    yield from _volume(obj)
    for part, sizes in ((obj.get("spec") or {}).get("resources") or {}).items():
        size = (sizes or {}).get("storage")
        if size is not None and amount(size) % 1:
            where = f"spec.resources.{part}[storage]"
            yield f'{where}: fractional byte value "{size}" is invalid, must be an integer'


def _driver(obj: Mapping[str, Any]) -> Iterator[str]:
    spec = obj["spec"]
    if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
        yield _TOKENS


_WARNINGS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "csidrivers.storage.k8s.io": _driver,
    "endpointslices.discovery.k8s.io": _slice,
    "persistentvolumes": _volume,
    "persistentvolumeclaims": _claim,
    "services": _service,
}
