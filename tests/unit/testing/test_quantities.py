from __future__ import annotations

import pytest

from aioinformer.testing.schemas.values import QuantityError, canonical


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1500", "1500"),
        ("1.5k", "1500"),
        ("2000000", "2M"),
        ("2048Mi", "2Gi"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("-1", "-1"),
        ("0", "0"),
        (".1n", "1n"),
        ("9" * 40, "9223372036854775807"),
        ("-1e9999", "-9223372036854775807"),
        ("1e-9999", "1e-9"),
        ("9" * 30 + "Ei", "9223372036854775807"),
    ],
)
def test_quantity_has_one_canonical_form(said: str, written: str) -> None:
    assert canonical(said) == written


@pytest.mark.parametrize("said", ["", "lots", "1 Gi", "1Gib", "--1"])
def test_invalid_quantity_is_refused(said: str) -> None:
    with pytest.raises(QuantityError):
        canonical(said)
