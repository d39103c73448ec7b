"""What the containers of a pod need together."""

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


def asked_by(container: Part, part: str) -> Part:
    """What a container asks for.

    Args:
        part: "requests" or "limits".
    """
    asked: Part = (container.get("resources") or {}).get(part) or {}
    return asked


def asked_by_all(spec: Part, part: str) -> dict[str, Decimal]:
    """What the containers of a pod ask for: those that begin it run one after another, except for those that stay.

    Args:
        spec: of the pod.
        part: "requests" or "limits".
    """
    total, staying, highest = (defaultdict[str, "Decimal"](lambda: _NOTHING) for _ in range(3))
    for container in spec.get("containers") or ():
        for name, quantity in asked_by(container, part).items():
            total[name] += amount(quantity)
    for container in spec.get("initContainers") or ():
        stays = container.get("restartPolicy") == "Always"
        for name, quantity in asked_by(container, part).items():
            now = staying[name] + amount(quantity)
            highest[name] = max(highest[name], now)
            if stays:
                staying[name] = now
                total[name] += amount(quantity)
    return {name: max(total[name], highest[name]) for name in {**total, **highest}}


def written_like(size: Decimal, like: str) -> str:
    """An amount with a suffix of the kind that another quantity has."""
    return canonical(f"{size / 1024:f}Ki" if like.endswith("i") else f"{size:f}")


def may_be_overcommitted(resource: str) -> bool:
    """Whether more of a resource may be used than was asked for."""
    return ("/" not in resource or _NATIVE in resource) and not resource.startswith(PAGES)
