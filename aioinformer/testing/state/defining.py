"""Definitions that take effect: a custom resource is served from the moment its definition is stored."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.ownership.managers import Manager
from aioinformer.testing.ownership.writing import track
from aioinformer.testing.schemas.definitions import establish, is_established

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.ledger import Ledger


class Definitions:
    """Serves what definitions define.

    Args:
        ledger: where they are written down.
        now: the time, as objects show it.
    """

    def __init__(self, ledger: Ledger, now: Callable[[], str]) -> None:
        self._ledger = ledger
        self._now = now

    def accept_names(self, definitions: Served) -> None:
        """Serves the definitions whose names are free by now."""
        stored = [decode(record.body) for record in self._ledger.collection(definitions).records()]
        for obj in stored:
            if not is_established(obj) and is_established(establish(deepcopy(obj), stored, "")):
                self.establish(definitions, obj)

    def establish(self, served: Served, obj: dict[str, Any]) -> None:
        """Serves a new definition at once; the real server takes some hundred milliseconds."""
        old = decode(encode_object(obj, custom=False))
        others = [decode(record.body) for record in self._ledger.collection(served).records()]
        obj = establish(decode(encode_object(obj, custom=False)), others, self._now())
        track(served, old, obj, Manager("kube-apiserver", "Update", served.resource.api_version, "status"), self._now())
        if is_established(obj):
            self._ledger.registry.define(obj)
        self._ledger.commit(served, "MODIFIED", obj, self._ledger.get(served, "", obj["metadata"]["name"]))
