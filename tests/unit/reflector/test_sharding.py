"""Shard selectors: ranges of the hash of a field."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.errors import OptionError, SelectorError
from aioinformer.reflector.options import ListOptions
from aioinformer.reflector.sharding import (
    HASHES,
    NAMESPACE,
    ShardRange,
    ShardSelector,
    parse_shard_selector,
    shard_hash,
    shard_selectors,
)

HALF = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"


@pytest.mark.conformance("SHD-01")
@pytest.mark.parametrize(
    ("value", "expected"),
    [("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)],
)
def test_hash_is_64_bit_fnv_1a(value: str, expected: int) -> None:
    assert shard_hash(value) == expected


@pytest.mark.conformance("SHD-01")
def test_selector_syntax_is_that_of_the_api() -> None:
    first, second = shard_selectors(2)
    assert str(first) == HALF
    assert str(second) == "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
    assert str(ShardSelector(first.ranges + second.ranges)) == f"{first} || {second}"


@pytest.mark.conformance("SHD-01")
def test_list_options_send_the_selector() -> None:
    assert ListOptions(shard_selector=HALF).to_query() == [("shardSelector", HALF)]


@pytest.mark.conformance("SHD-04")
@given(st.integers(1, 50), st.text(), st.text(), st.sampled_from(["object.metadata.uid", NAMESPACE]))
def test_every_object_is_in_exactly_one_shard(count: int, uid: str, namespace: str, field: str) -> None:
    shards = shard_selectors(count, field)
    assert sum(shard.matches(uid, namespace) for shard in shards) == 1


@pytest.mark.conformance("SHD-01")
def test_range_includes_its_start_only() -> None:
    at = shard_hash("u")
    assert ShardSelector((ShardRange(at, at + 1),)).matches("u", "")
    assert not ShardSelector((ShardRange(at - 1, at),)).matches("u", "")


@given(st.lists(st.tuples(st.integers(0, HASHES - 1), st.integers(0, HASHES)), min_size=1, max_size=4))
def test_selector_round_trip(bounds: list[tuple[int, int]]) -> None:
    ranges = tuple(ShardRange(start, end) for start, end in bounds if start < end) or (ShardRange(0, HASHES),)
    assert parse_shard_selector(str(ShardSelector(ranges))) == ShardSelector(ranges)


@pytest.mark.parametrize(
    "text", ["", "x", HALF + " ||", HALF.replace("uid", "name"), HALF.replace("0x8", "0x0"), HALF.replace("'0x0", "'0")]
)
def test_invalid_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_shard_selector(text)


def test_invalid_range_or_shard_count_is_refused() -> None:
    with pytest.raises(OptionError, match="field of a shard"):
        ShardRange(0, 1, "object.metadata.name")
    with pytest.raises(OptionError, match="start < end"):
        ShardRange(1, 1)
    with pytest.raises(OptionError, match="count of shards"):
        shard_selectors(0)
    with pytest.raises(OptionError, match="at least one range"):
        ShardSelector(())
