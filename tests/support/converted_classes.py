"""A resource in two versions: a field has another name, one is split, one has another type, and each has one more."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from aioinformer.crds import CustomResource, Map, Move, Split, custom_resource, list_map
from aioinformer.models import ObjectMeta  # noqa: TC001 - msgspec reads it


class OldPort(msgspec.Struct, frozen=True):
    name: str
    port: int = 0


class OldSpec(msgspec.Struct, frozen=True):
    size: int | None = None
    address: str | None = None
    weight: str | None = None
    ports: Annotated[tuple[OldPort, ...], list_map("name")] = ()
    legacy: str | None = None


class OldGate(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: OldSpec


class Port(msgspec.Struct, frozen=True):
    name: str
    number: int = 0
    protocol: str | None = None


class Spec(msgspec.Struct, frozen=True):
    replicas: int | None = None
    host: str | None = None
    zone: str | None = None
    weight: int | None = None
    ports: Annotated[tuple[Port, ...], list_map("name")] = ()
    extra: dict[str, Any] | None = None


class Gate(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec


def to_number(text: Any) -> Any:
    """Return the number of a text of digits, and all else as it is."""
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() else text


def to_text(number: Any) -> Any:
    """Return the text of a number, and all else as it is."""
    return str(number) if isinstance(number, int) else number


STEPS = (
    Move("spec.size", "spec.replicas"),
    Split("spec.address", ("spec.host", "spec.zone"), separator="/"),
    Map("spec.weight", to=to_number, back=to_text),
    Move("spec.ports[].port", "spec.ports[].number"),
)


def gates(group: str) -> tuple[CustomResource[Gate], CustomResource[OldGate]]:
    """Return the resource in its stored version, and in its old one."""
    old = custom_resource(OldGate, group, "v1alpha1", kind="Gate", storage=False, conversion=STEPS)
    return custom_resource(Gate, group, "v1", others=[old]), old
