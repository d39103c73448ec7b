"""Quantities, such as "1.5Gi": exact arithmetic, and the form in which the API stores them."""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering
from typing import TYPE_CHECKING, Any, Final, Literal

from aioinformer.exports import lazy_type

if TYPE_CHECKING:
    from decimal import Decimal
else:
    Decimal = lazy_type("decimal", "Decimal")

_BINARY: Final = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL: Final = {
    suffix: 3 * power for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}
_SUFFIXES: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE]([-+]?[0-9]+)", re.ASCII)
#: Amounts are counted in units of 1e-9, the smallest that the API knows.
_NANO: Final = 9
_ONE: Final = 10**_NANO
#: The server stores no larger amount.
_MOST: Final = (2**63 - 1) * _ONE
# Exponents beyond this only lead to the smallest or to the largest amount.
_LARGEST_EXPONENT: Final = 1000
#: The most digits that are read of an exponent, and of a number: Python refuses to make an int of many more.
_MOST_DIGITS: Final = 4000
#: Size of the cache; quantities of many pods are equal.
_CACHE_SIZE: Final = 1024

_Format = Literal["binary", "decimal", "exponent"]


class QuantityError(ValueError):
    """The text is not a quantity. The message is the API's."""


@total_ordering
class Quantity:
    """An amount as Kubernetes writes it: `Quantity("100m")`, `Quantity("1.5Gi")`, `Quantity(2)`.

        requested = sum((Quantity(each.resources.requests["cpu"]) for each in containers), Quantity(0))
        if requested > Quantity("4"): ...

    Quantities are immutable. They are compared by their amount: `Quantity("1000m") == Quantity(1)`. Sums and
    differences are exact. They have the suffixes of the first operand, or of the second one if the first is zero.
    `str()` is the form in which the API stores the quantity, "1536Mi"; `int()` rounds away from zero. Objects of the
    API have quantities as text.

    As the type of a field of a class for a CustomResourceDefinition, it is an integer or a text with the pattern of
    quantities.

    Args:
        value: a text, an integer, or a quantity. A fraction of less than 1e-9 is rounded away from zero.

    Raises:
        ValueError: the text is not a quantity.
        TypeError: the value is of another type. Write a `float` as text.

    It corresponds to `resource.Quantity` of k8s.io/apimachinery.
    """

    __slots__ = ("_format", "_nanos", "_text")

    def __init__(self, value: str | int | Quantity) -> None:
        if isinstance(value, bool) or not isinstance(value, str | int | Quantity):
            raise TypeError(f"Quantity: expected text such as '1.5Gi', or an int, not {type(value).__name__}")
        text = str(value)
        try:
            self._nanos, self._format = _parsed(text)
        except QuantityError as error:
            raise QuantityError(f"Quantity({value!r}): {error}") from None
        self._text = text if _stays(text) else _written(self._nanos, self._format)

    @classmethod
    def _of(cls, nanos: int, form: _Format) -> Quantity:
        made = object.__new__(cls)
        made._nanos = nanos
        made._format = form
        made._text = _written(nanos, form)
        return made

    @property
    def amount(self) -> Decimal:
        """The exact amount."""
        from decimal import Decimal

        return Decimal(f"{self._nanos}e-{_NANO}")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({self._text!r})"

    def __int__(self) -> int:
        return -(-self._nanos // _ONE) if self._nanos > 0 else self._nanos // _ONE

    def __float__(self) -> float:
        return self._nanos / _ONE

    def __bool__(self) -> bool:
        return self._nanos != 0

    def __eq__(self, other: object) -> bool:
        return self._nanos == other._nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._nanos < other._nanos

    def __hash__(self) -> int:
        return hash((Quantity, self._nanos))

    def __add__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity._of(self._nanos + other._nanos, self._format if self else other._format)

    def __sub__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self + -other

    def __neg__(self) -> Quantity:
        return Quantity._of(-self._nanos, self._format)

    def __reduce__(self) -> tuple[Any, ...]:
        return Quantity, (self._text,)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            quantity_of, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return json_schema()


def quantity_of(value: Any) -> Quantity:
    """Return the quantity of a JSON value.

    Raises:
        ValueError: it is none; decoders expect no TypeError.
    """
    try:
        return Quantity(value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of quantities."""
    number = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
    pattern = rf"^[+-]?{number}([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
    return {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": pattern, "maxLength": 64}]}


@lru_cache(_CACHE_SIZE)
def canonical(text: str) -> str:
    """Return a quantity as the API stores it: "1000m" becomes "1", and "2048Mi" becomes "2Gi".

    Raises:
        QuantityError: the text is not a quantity.
    """
    text = text.strip()
    nanos, form = _parsed(text)
    return text if _stays(text) else _written(max(-_MOST, min(nanos, _MOST)), form)


def _parts(text: str) -> tuple[str, str, str, str]:
    """Return the sign, the digits before and after the point, and the suffix."""
    found = _FORM.fullmatch(text)
    if found is None or not (found[2] or found[3]):
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign = found[1]
    whole = found[2]
    fraction = found[3] or ""
    suffix = found[4]
    if len(whole) + len(fraction) > _MOST_DIGITS:
        raise QuantityError("unable to parse numeric part of quantity")
    return sign, whole, fraction, suffix


def _parsed(text: str) -> tuple[int, _Format]:
    """Return an amount in units of 1e-9, rounded away from zero, and how it is written."""
    sign, whole, fraction, suffix = _parts(text)
    digits = int(whole + fraction)
    power = _NANO - len(fraction)
    form: _Format = "decimal"
    if (exponent := _EXPONENT.fullmatch(suffix)) is not None:
        power += _exponent(exponent[1])
        form = "exponent"
    elif suffix in _BINARY:
        digits *= _BINARY[suffix]
        form = "binary"
    elif suffix in _DECIMAL:
        power += _DECIMAL[suffix]
    else:
        raise QuantityError("unable to parse quantity's suffix")
    nanos = digits * 10**power if power >= 0 else -(-digits // 10**-power)
    return (-nanos if sign == "-" else nanos), form


def _exponent(digits: str) -> int:
    return max(-_LARGEST_EXPONENT, min(int(digits[:_MOST_DIGITS]), _LARGEST_EXPONENT))


def _stays(text: str) -> bool:
    """Return whether Go keeps the text, since it takes it for canonical: `1.483`, `1e0` and `+1` are not."""
    _, whole, fraction, suffix = _parts(text)
    whole = whole.lstrip("0") or "0"
    digits = whole + fraction
    exponent = _EXPONENT.fullmatch(suffix)
    power = _exponent(exponent[1]) if exponent else _DECIMAL.get(suffix)
    if power is not None:
        scale = power - len(fraction)
        is_short = len(digits) <= 18 and scale >= -_NANO
        return is_short and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    if fraction:
        return False
    factor = (list(_BINARY).index(suffix) + 1) * 3
    return len(whole) + factor <= 14 and int(whole) % 8 != 0


def _written(nanos: int, form: _Format) -> str:
    """Return the canonical text of an amount."""
    if nanos == 0:
        return "0"
    if form == "binary" and abs(nanos) >= 1024 * _ONE and nanos % _ONE == 0:
        whole = nanos // _ONE
        for suffix, factor in reversed(_BINARY.items()):
            if whole % factor == 0:
                return f"{whole // factor}{suffix}"
        return str(whole)
    power = -_NANO
    while nanos % 1000 == 0:
        nanos //= 1000
        power += 3
    if form == "exponent" or power not in _SUFFIXES:
        return f"{nanos}e{power}" if power else str(nanos)
    return f"{nanos}{_SUFFIXES[power]}"
