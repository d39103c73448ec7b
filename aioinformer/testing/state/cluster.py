"""The state of a server and the operations on it.

What the real server leaves to controllers (emptying a namespace, removing the objects of a CustomResourceDefinition) is
left to `housekeeping`, which `ObjectStore.on_cleanup_needed` wakes.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.validation import metadata_causes
from aioinformer.testing.state.deletion import delete_record
from aioinformer.testing.state.preconditions import check_delete_preconditions, check_permanence, checked_metadata
from aioinformer.testing.state.strategies import Naming

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import Cause
    from aioinformer.testing.state.admission import Admission
    from aioinformer.testing.state.object_store import ObjectStore
    from aioinformer.testing.state.storage import Record
    from aioinformer.testing.state.writer import Writer


class Cluster:
    """The state of a server and the operations on it.

    Args:
        clock: seconds since 1970, for timestamps.

    Attributes:
        load_admission: called once, when something first depends on a built-in kind.
    """

    def __init__(self, store: ObjectStore, clock: Callable[[], float], rng: random.Random) -> None:
        self.store = store
        self.clock = clock
        self.load_admission: Callable[[], Admission]
        self.naming = Naming(rng)

    @cached_property
    def writer(self) -> Writer:
        """Creates, updates and applies objects. It is loaded by the first write: many servers are only read."""
        from aioinformer.testing.state.writer import Writer

        return Writer(self)

    @cached_property
    def admission(self) -> Admission:
        """What depends on built-in kinds; loaded when it is first needed."""
        return self.load_admission()

    def now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock()))

    def load(self, served: Served, obj: dict[str, Any], *, version: int | None = None) -> Record:
        """Store an object with its status and timestamps, as if it had always been there. Missing uid and times are
        set.

        An object of the same name is replaced. No webhook is called: an object is stored in the version of `served`.

        Args:
            obj: is changed and kept; pass a copy.
            version: its resourceVersion; None for the next one.

        Raises:
            StatusError: the name is missing or malformed.
        """
        namespace = str((obj.get("metadata") or {}).get("namespace") or "")
        if served.resource.namespaced and not namespace:
            namespace = "default"
        metadata = checked_metadata(served, namespace, obj)
        check_metadata(served, metadata)
        metadata.setdefault("creationTimestamp", self.now())
        metadata.setdefault("uid", self.naming.uid())
        old = self.store.find(served, namespace, metadata["name"])
        served = served.as_stored(encode_plain(obj))
        return self.store.commit(served, "MODIFIED" if old else "ADDED", obj, old, version)

    def delete(
        self,
        served: Served,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        version: str = "",
        policy: str = "",
        dry_run: bool = False,
    ) -> tuple[bytes, bool]:
        """Delete an object, or mark it for deletion.

        Args:
            policy: "", "Background", "Foreground" or "Orphan".

        Returns:
            The last state of the object, and whether it is deleted.
        """
        check_permanence(served, name)
        record = self.store.get(served, namespace, name)
        check_delete_preconditions(served, record, uid, version)
        return delete_record(self.store, served, record, policy, self.now(), dry_run=dry_run)


def check_metadata(served: Served, metadata: Mapping[str, Any], others: Sequence[Cause] = ()) -> None:
    """Raise `StatusError` (422) if the metadata of an object are malformed, or if there are other causes."""
    causes = [*metadata_causes(served.resource, metadata, custom=served.custom), *others]
    if causes:
        raise statuses.invalid_object(served.stored_as, str(metadata.get("name") or ""), causes)
