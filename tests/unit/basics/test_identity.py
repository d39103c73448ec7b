"""Names of informers, and the identities made from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import UsageError
from aioinformer.metrics import InformerName
from aioinformer.resources.catalog import find

if TYPE_CHECKING:
    from aioinformer.resources.resource import Resource


def resource(plural: str) -> Resource[Any]:
    found = find("", "v1", plural)
    assert found is not None
    return found


@pytest.mark.conformance("MET-05")
@pytest.mark.parametrize("name", ["", "shop"])
def test_name_must_be_unique_and_not_empty(name: str) -> None:
    with InformerName("shop"), pytest.raises(UsageError, match=f"name=[\"']{name}[\"']"):
        InformerName(name)


@pytest.mark.conformance("MET-05")
def test_released_name_can_be_used_again() -> None:
    first = InformerName("shop")
    first.release()
    first.release()
    with InformerName("shop") as second:
        first.release()  # does not release the second
        with pytest.raises(UsageError, match="in use"):
            InformerName("shop")
        assert second.with_resource(resource("pods")).reserved


@pytest.mark.conformance("MET-06")
def test_first_identity_of_name_and_resource_is_reserved(caplog: pytest.LogCaptureFixture) -> None:
    with InformerName("shop") as shop, InformerName("office") as office:
        identities = [name.with_resource(resource("pods")) for name in (shop, shop, office)]
        identities.append(shop.with_resource(resource("nodes")))
        assert [identity.reserved for identity in identities] == [True, False, True, True]
        assert "v1/pods of shop has no metrics" in caplog.text


@pytest.mark.conformance("MET-07")
def test_release_of_a_name_releases_its_identities() -> None:
    shop = InformerName("shop")
    pods = shop.with_resource(resource("pods"))
    shop.release()
    assert not pods.reserved
    assert not shop.with_resource(resource("nodes")).reserved


@pytest.mark.conformance("MET-07")
def test_released_identity_can_be_reserved_again() -> None:
    with InformerName("shop") as shop:
        first = shop.with_resource(resource("pods"))
        first.release()
        second = shop.with_resource(resource("pods"))
        first.release()
        assert (first.reserved, second.reserved) == (False, True)
