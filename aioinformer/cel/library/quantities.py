"""CEL extensions for quantities and semantic versions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from aioinformer.cel.functions import is_valid
from aioinformer.cel.values import LARGEST, SMALLEST, EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d+))?", re.ASCII)
_BINARY = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = dict(zip("num", (Decimal(1000) ** power for power in (-3, -2, -1)), strict=True)) | {
    letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)
}
_INVALID_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    "unable to parse quantity's suffix",
)
_NUMERIC = r"(?:0|[1-9]\d*)"
_IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = re.compile(rf"({_NUMERIC})\.({_NUMERIC})\.({_NUMERIC})(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity, such as "1.5Gi"."""

    type_name: ClassVar[str] = "kubernetes.Quantity"
    amount: Decimal

    @property
    def is_integer(self) -> bool:
        return self.amount == self.amount.to_integral_value() and SMALLEST <= self.amount <= LARGEST


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version. Build metadata is dropped, as it does not affect the order."""

    type_name: ClassVar[str] = "kubernetes.Semver"
    numbers: tuple[int, int, int]
    prerelease: tuple[str, ...]

    @property
    def order(self) -> tuple[Any, ...]:
        parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.prerelease]
        return self.numbers, not self.prerelease, parts


def _parse(text: str) -> Quantity:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        known = re.fullmatch(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*", text, re.ASCII)
        raise EvaluationError(_INVALID_QUANTITY[1 if known else 0])
    scale = _BINARY.get(match[2] or "") or _DECIMAL.get(match[3] or "") or Decimal(10) ** int(match[4] or 0)
    return Quantity(Decimal(match[1]) * scale)


def _to_int(quantity: Quantity) -> int:
    if not quantity.is_integer:
        raise EvaluationError("cannot convert value to integer")
    return int(quantity.amount)


def _order(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def _version(text: str, lenient: bool = False) -> Version:
    wanted = _normalize(text) if lenient else text
    match = _VERSION.fullmatch(wanted)
    if match is None:
        count = len(wanted.split("+")[0].split("-")[0].split("."))
        raise EvaluationError("No Major.Minor.Patch elements found" if count < 3 else "Invalid character(s) found")
    return Version((int(match[1]), int(match[2]), int(match[3])), tuple(match[4].split(".")) if match[4] else ())


def _normalize(text: str) -> str:
    match = re.fullmatch(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?([-+].*)?", text, re.ASCII)
    if match is None:
        return text
    return ".".join(str(int(match[part] or 0)) for part in (1, 2, 3)) + (match[4] or "")


_QUANTITIES = "kubernetes.Quantity.(kubernetes.Quantity)"
_VERSIONS = "kubernetes.Semver.(kubernetes.Semver)"

QUANTITIES: dict[str, dict[str, Callable[..., Any]]] = {
    "quantity": {"(string) -> kubernetes.Quantity": _parse},
    "isQuantity": {"(string) -> bool": is_valid(_parse)},
    "sign": {"(kubernetes.Quantity) -> int": lambda quantity: _order(quantity.amount, 0)},
    "isGreaterThan": {
        f"{_QUANTITIES} -> bool": lambda one, other: one.amount > other.amount,
        f"{_VERSIONS} -> bool": lambda one, other: one.order > other.order,
    },
    "isLessThan": {
        f"{_QUANTITIES} -> bool": lambda one, other: one.amount < other.amount,
        f"{_VERSIONS} -> bool": lambda one, other: one.order < other.order,
    },
    "compareTo": {
        f"{_QUANTITIES} -> int": lambda one, other: _order(one.amount, other.amount),
        f"{_VERSIONS} -> int": lambda one, other: _order(one.order, other.order),
    },
    "asApproximateFloat": {"kubernetes.Quantity.() -> double": lambda quantity: float(quantity.amount)},
    "asInteger": {"kubernetes.Quantity.() -> int": _to_int},
    "isInteger": {"kubernetes.Quantity.() -> bool": lambda quantity: quantity.is_integer},
    "add": {
        f"{_QUANTITIES} -> kubernetes.Quantity": lambda one, other: Quantity(one.amount + other.amount),
        "kubernetes.Quantity.(int) -> kubernetes.Quantity": lambda one, other: Quantity(one.amount + other),
    },
    "sub": {
        f"{_QUANTITIES} -> kubernetes.Quantity": lambda one, other: Quantity(one.amount - other.amount),
        "kubernetes.Quantity.(int) -> kubernetes.Quantity": lambda one, other: Quantity(one.amount - other),
    },
    "semver": {"(string) -> kubernetes.Semver": _version, "(string, bool) -> kubernetes.Semver": _version},
    "isSemver": {"(string) -> bool": is_valid(_version), "(string, bool) -> bool": is_valid(_version)},
    "major": {"kubernetes.Semver.() -> int": lambda version: version.numbers[0]},
    "minor": {"kubernetes.Semver.() -> int": lambda version: version.numbers[1]},
    "patch": {"kubernetes.Semver.() -> int": lambda version: version.numbers[2]},
}
