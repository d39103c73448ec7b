"""Undecodable objects across lists, until they decode again, and their reasons."""

from __future__ import annotations

from aioinformer.errors import DecodeError
from aioinformer.reflector.protocol.changes import Quarantine


def quarantined(*names: str) -> Quarantine:
    made = Quarantine()
    for name in names:
        made.add(DecodeError(f"ns/{name}: bad", key=f"ns/{name}"))
    return made


def test_reason_is_kept_without_the_key() -> None:
    assert quarantined("a").reasons() == {"ns/a": "bad"}


def test_objects_of_the_last_list_count_until_the_next_ends() -> None:
    quarantine = quarantined("a", "b")
    quarantine.begin_list()
    assert (quarantine.reason("ns/a"), len(quarantine)) == ("bad", 2)
    quarantine.add(DecodeError("worse", key="ns/b"))
    quarantine.end_list({"ns/b"})
    assert quarantine.reasons() == {"ns/b": "worse"}
    assert quarantine.reason("ns/a") is None


def test_decoded_object_stays_known_until_it_is_cached() -> None:
    quarantine = quarantined("a")
    assert quarantine.release("ns/a")
    assert not quarantine
    for _ in range(3):
        assert quarantine.reason("ns/a") == "bad"
        quarantine.count_batch()
    assert quarantine.reason("ns/a") is None
    assert not quarantine.leaving


def test_object_decoded_in_a_list_stays_known_until_cached() -> None:
    quarantine = quarantined("a")
    quarantine.begin_list()
    quarantine.end_list({"ns/a"})
    assert (bool(quarantine), quarantine.reason("ns/a")) == (False, "bad")


def test_deleted_object_is_removed_at_once() -> None:
    quarantine = quarantined("a", "b")
    quarantine.release("ns/a", gone=True)
    quarantine.release("ns/b")
    quarantine.release("ns/b", gone=True)
    assert (quarantine.reason("ns/a"), quarantine.reason("ns/b")) == (None, None)
    assert not quarantine.is_tracking


def test_objects_without_readable_names_are_counted() -> None:
    quarantine = quarantined("a")
    quarantine.begin_list()
    for _ in range(3):
        quarantine.add(DecodeError("bad", key=""))
    quarantine.add(DecodeError("bad", key="ns/a"))
    assert len(quarantine) == 4
    quarantine.end_list({"ns/a", ""})
    assert str(quarantine).startswith("4 objects cannot be decoded (ns/a, …);")
    quarantine.begin_list()
    quarantine.end_list(())
    assert (len(quarantine), bool(quarantine)) == (0, False)


def test_each_version_and_the_end_are_reported() -> None:
    reports: list[tuple[str, str, str]] = []
    quarantine = Quarantine(lambda *report: reports.append(report))
    for key, version in (("shop/a", "1"), ("shop/a", "2"), ("shop/b", "3")):
        quarantine.add(DecodeError(f"{key}: no", key=key, version=version))
    assert reports == [("shop/a", "no", "1"), ("shop/a", "no", "2"), ("shop/b", "no", "3")]
    reports.clear()
    quarantine.begin_list()
    quarantine.add(DecodeError("no", key="shop/b", version="4"))
    quarantine.release("shop/a")
    quarantine.end_list({"shop/a", "shop/b"})
    assert reports == [("shop/b", "no", "4"), ("shop/a", "", "")]
    quarantine.release("shop/b", gone=True)
    assert reports[2:] == [("shop/b", "", "")]
    quarantine.add(DecodeError("no", key="shop/c", version="5"))
    quarantine.clear()
    assert reports[4:] == [("shop/c", "", "")]
