"""Quantities, such as "1.5Gi", in the form in which the API stores them."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {suffix: 3 * power for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)}
_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)")
_NANO = Decimal(1).scaleb(-9)
_MOST = Decimal(2**63 - 1)
# Exponents beyond this only lead to zero or to the largest value.
_LARGEST_EXPONENT = Decimal(1000)
#: Size of the cache; quantities of many pods are equal.
_CACHE_SIZE = 1024


class QuantityError(ValueError):
    """The text is not a quantity. The message is the API's."""


@lru_cache(_CACHE_SIZE)
def canonical(text: str) -> str:
    """Return a quantity as Go writes it: "1000m" becomes "1", and "2048Mi" becomes "2Gi".

    Raises:
        QuantityError: the text is not a quantity.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None or not (found[2] or found[3]):
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, whole, fraction, suffix = found.groups()
    number = Decimal(f"{sign}{whole or 0}.{fraction or 0}")
    exponent = _EXPONENT.fullmatch(suffix)
    power = _exponent(exponent[1]) if exponent else _DECIMAL.get(suffix)
    if _stays(whole.lstrip("0") or "0", fraction or "", power, suffix):
        return text.strip()
    if exponent is not None:
        return _with_exponent(_bounded(number.scaleb(_exponent(exponent[1]))))
    if suffix in _BINARY:
        return _with_binary_suffix(_bounded(number * _BINARY[suffix]))
    if suffix in _DECIMAL:
        return _with_decimal_suffix(_bounded(number.scaleb(_DECIMAL[suffix])))
    raise QuantityError("unable to parse quantity's suffix")


def _stays(whole: str, fraction: str, power: int | None, suffix: str) -> bool:
    """Return whether Go keeps the text, since it takes it for canonical: `1.483`, `1e0` and `+1` are not."""
    digits = whole + fraction
    if power is not None:
        scale = power - len(fraction)
        is_short = len(digits) <= 18 and scale >= -9
        return is_short and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    if suffix not in _BINARY or fraction:
        return False
    factor = (list(_BINARY).index(suffix) + 1) * 3
    return len(whole) + factor <= 14 and int(whole) % 8 != 0


def _exponent(digits: str) -> int:
    return int(max(-_LARGEST_EXPONENT, min(Decimal(digits), _LARGEST_EXPONENT)))


def _bounded(amount: Decimal) -> Decimal:
    return max(-_MOST, min(amount, _MOST))


def _with_decimal_suffix(amount: Decimal) -> str:
    amount = amount.quantize(_NANO, ROUND_CEILING)
    for suffix, power in reversed(_DECIMAL.items()):
        scaled = amount.scaleb(-power)
        if amount and scaled == scaled.to_integral_value():
            return f"{int(scaled)}{suffix}"
    return "0"


def _with_binary_suffix(amount: Decimal) -> str:
    if abs(amount) < 1024 or amount != amount.to_integral_value():
        return _with_decimal_suffix(amount)
    for suffix, factor in reversed(_BINARY.items()):
        if amount % factor == 0:
            return f"{int(amount / factor)}{suffix}"
    return str(int(amount))


def _with_exponent(amount: Decimal) -> str:
    amount = amount.quantize(_NANO, ROUND_CEILING)
    for power in range(18, -10, -3):
        scaled = amount.scaleb(-power)
        if amount and scaled == scaled.to_integral_value():
            return f"{int(scaled)}e{power}" if power else str(int(scaled))
    return "0"
