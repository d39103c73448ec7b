"""Which objects do not decode: over lists, while they come back, and as text."""

from __future__ import annotations

from aioinformer.errors import DecodeError
from aioinformer.reflector.relist import Quarantine


def quarantined(*names: str) -> Quarantine:
    made = Quarantine()
    for name in names:
        made.add(DecodeError(f"ns/{name}: bad", key=f"ns/{name}"))
    return made


def test_a_reason_is_kept_without_the_key() -> None:
    assert quarantined("a").reasons() == {"ns/a": "bad"}


def test_objects_of_the_list_before_count_until_the_next_is_complete() -> None:
    quarantine = quarantined("a", "b")
    quarantine.begin()
    assert (quarantine.reason("ns/a"), len(quarantine)) == ("bad", 2)
    quarantine.add(DecodeError("worse", key="ns/b"))
    quarantine.end({"ns/b"})
    assert quarantine.reasons() == {"ns/b": "worse"}
    assert quarantine.reason("ns/a") is None


def test_an_object_that_decodes_again_is_known_until_the_cache_has_it() -> None:
    quarantine = quarantined("a")
    assert quarantine.release("ns/a")
    assert not quarantine
    for _ in range(3):
        assert quarantine.reason("ns/a") == "bad"
        quarantine.settle()
    assert quarantine.reason("ns/a") is None
    assert not quarantine.leaving


def test_an_object_that_decodes_in_a_list_is_known_until_the_cache_has_it() -> None:
    quarantine = quarantined("a")
    quarantine.begin()
    quarantine.end({"ns/a"})
    assert (bool(quarantine), quarantine.reason("ns/a")) == (False, "bad")


def test_a_deleted_object_is_forgotten_at_once() -> None:
    quarantine = quarantined("a", "b")
    quarantine.release("ns/a", gone=True)
    quarantine.release("ns/b")
    quarantine.release("ns/b", gone=True)
    assert (quarantine.reason("ns/a"), quarantine.reason("ns/b")) == (None, None)
    assert not quarantine.remembers


def test_each_object_without_a_readable_name_counts() -> None:
    quarantine = quarantined("a")
    quarantine.begin()
    for _ in range(3):
        quarantine.add(DecodeError("bad", key=""))
    quarantine.add(DecodeError("bad", key="ns/a"))
    assert len(quarantine) == 4
    quarantine.end({"ns/a", ""})
    assert str(quarantine).startswith("4 objects cannot be decoded (ns/a, …);")
    quarantine.begin()
    quarantine.end(())
    assert (len(quarantine), bool(quarantine)) == (0, False)
