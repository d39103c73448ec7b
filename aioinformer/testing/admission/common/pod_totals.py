"""The resources that the containers of a pod need together."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from aioinformer.testing.schemas.quantities import amount, canonical

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    Part = Mapping[str, Any]

PAGES = "hugepages-"
_NATIVE = "kubernetes.io/"
_NOTHING = amount("0")


def resources_of(container: Part, part: str) -> Part:
    """Return the resources of a container.

    Args:
        container: the container.
        part: "requests" or "limits".
    """
    asked: Part = (container.get("resources") or {}).get(part) or {}
    return asked


def total_resources(spec: Part, part: str) -> dict[str, Decimal]:
    """Return the resources of all containers. Init containers run one after another, except for sidecars.

    Args:
        spec: of the pod.
        part: "requests" or "limits".
    """
    total, staying, highest = (defaultdict[str, "Decimal"](lambda: _NOTHING) for _ in range(3))
    for container in spec.get("containers") or ():
        for name, quantity in resources_of(container, part).items():
            total[name] += amount(quantity)
    for container in spec.get("initContainers") or ():
        stays = container.get("restartPolicy") == "Always"
        for name, quantity in resources_of(container, part).items():
            now = staying[name] + amount(quantity)
            highest[name] = max(highest[name], now)
            if stays:
                staying[name] = now
                total[name] += amount(quantity)
    return {name: max(total[name], highest[name]) for name in {**total, **highest}}


def written_like(size: Decimal, like: str) -> str:
    """Return an amount with the kind of suffix that another quantity has."""
    return canonical(f"{size / 1024:f}Ki" if like.endswith("i") else f"{size:f}")


def may_be_overcommitted(resource: str) -> bool:
    """Return whether the limit of a resource may exceed its request."""
    return ("/" not in resource or _NATIVE in resource) and not resource.startswith(PAGES)
