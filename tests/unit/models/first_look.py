"""A program in which several threads are the first to read objects. It prints "ok" if it succeeds.

It reads from its standard input, as JSON:

    scenario    the name of a function below
    threads     how many look at the same time
    objects     [group, version, plural, JSON of an object] each
"""

from __future__ import annotations

import gc
import json
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec

from aioinformer import Indexer, Lister, Resource
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.models import struct_for
from aioinformer.cache.objects.record import decode_record
from aioinformer.cache.objects.views import view_class
from aioinformer.resources.catalog import find

#: User models, each of which contains the previous one, and one that contains all of them.
PARTS = [msgspec.defstruct("Part0", [("name", str, "")])]
for _number in range(1, 60):
    PARTS.append(msgspec.defstruct(f"Part{_number}", [("inner", PARTS[-1] | None, None), ("name", str, "")]))
Mine = msgspec.defstruct("Mine", [("spec", PARTS[-1]), *((f"p{i}", part | None, None) for i, part in enumerate(PARTS))])


def look(value: Any) -> Any:
    """Return all attributes of an object, recursively."""
    if hasattr(value, "openapi_types"):
        return {name: look(getattr(value, name)) for name in value.openapi_types}
    if isinstance(value, dict):
        return {name: look(each) for name, each in value.items()}
    return [look(each) for each in value] if isinstance(value, tuple) else repr(value)


def view_of(row: list[str], record: Any) -> Any:
    """Return the view of a record; the first call builds the class."""
    return view_class(resource_of(row))(record)


def together(count: int, function: Any) -> list[Any]:
    """Call a function with a number in each of several threads that begin together; return the results."""
    barrier = threading.Barrier(count)

    def begin(number: int) -> Any:
        barrier.wait()
        return function(number)

    with ThreadPoolExecutor(count) as executor:
        return list(executor.map(begin, range(count)))


def resource_of(row: list[str]) -> Resource[Any]:
    """Return a built-in resource, or a custom one."""
    group, version, plural = row[:3]
    return find(group, version, plural) or Resource(group, version, plural, plural.title())


def listers(threads: int, objects: list[list[str]]) -> None:
    """Each thread lists all kinds, in its own order, and unpickles the objects."""
    caches = []
    for row in objects:
        indexer: Indexer[Any] = Indexer(to_view=partial(view_of, row))
        indexer.store.put("a", decode_record(row[3].encode()))
        caches.append(Lister(indexer, resource_of(row)))

    def read(number: int) -> list[Any]:
        order = [(number + step) % len(caches) for step in range(len(caches))]
        seen = {}
        for place in order:
            [view] = caches[place].list()
            seen[place] = look(view), view.metadata.annotations, type(view), look(pickle.loads(pickle.dumps(view)))
            gc.collect(0)
        return [seen[place] for place in sorted(seen)]

    first, *others = together(threads, read)
    assert all(seen == first for seen in others), "threads saw different things"


def models(threads: int, objects: list[list[str]]) -> None:
    """Each thread creates object types of one user model, and decodes."""

    def read(number: int) -> list[Any]:
        seen = []
        for row in objects:
            resource = resource_of(row)
            objects_of: ObjectType[Any] = ObjectType(resource, decoder=Mine, fields=["spec.nodeName"])
            seen.append(objects_of.to_view(objects_of.on_arrival(objects_of.decode(row[3].encode()))))
            if resource.model:
                msgspec.json.Decoder(struct_for(resource.model))  # a published class is complete
        return seen

    first, *others = together(threads, read)
    assert all(seen == first for seen in others), "threads saw different things"


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    sys.setswitchinterval(1e-5)
    globals()[asked["scenario"]](asked["threads"], asked["objects"])
    print("ok")
