"""Keys that functions of users return, and keys in fields of objects, as `ObjectName`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from aioinformer.cache.objects.views import View
from aioinformer.errors import KeyFuncError, UsageError
from aioinformer.resources.keys import ObjectName, object_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.resources.resource import Resource


def key_of(obj: Any) -> ObjectName:
    """Return the key of an object of any form.

    Raises:
        KeyFuncError: it has no name.
    """
    if isinstance(obj, View):
        record = obj._record
        return ObjectName(record.namespace, record.name)
    return object_name(obj)


def keys_in(result: Any, resource: Resource[Any] | None, namespace: str, source: str) -> Iterator[ObjectName]:
    """Return the keys in what a function of a user returned, each as soon as it is found.

    Args:
        result: None; a key as text or `ObjectName`; an object; or several of these.
        resource: of the keys; None if it is not known.
        namespace: of names without a namespace; "" if there is none.
        source: names the function, for errors.

    Raises:
        UsageError: the result is, or contains, something else.
    """
    if result is None:
        return
    if isinstance(result, str):
        yield _parsed(result, resource, namespace, source)
    elif isinstance(result, ObjectName):
        yield _checked(result, resource, source)
    elif isinstance(result, Mapping) or hasattr(result, "metadata"):
        try:
            found = key_of(result)
        except KeyFuncError as error:
            raise UsageError(f"{source} returned an object without a name: {error}") from None
        yield _checked(found, resource, source)
    elif isinstance(result, Iterable) and not isinstance(result, (bytes, bytearray)):
        for each in result:
            if isinstance(each, (list, set, frozenset)) or each is None:
                raise UsageError(f"{source} returned {type(result).__name__} of {type(each).__name__}; {_EXPECTED}")
            yield from keys_in(each, resource, namespace, source)
    else:
        if inspect.iscoroutine(result):
            result.close()
        raise UsageError(f"{source} returned {type(result).__name__}; {_EXPECTED}")


_EXPECTED = "return keys ('namespace/name'), ObjectNames or objects: one, several, or None"


def _parsed(text: str, resource: Resource[Any] | None, namespace: str, source: str) -> ObjectName:
    first, slash, name = text.partition("/")
    if not slash:
        first, name = namespace if resource is None or resource.namespaced else "", text
    elif not first:
        name = ""
    if not name or "/" in name:
        raise UsageError(f"{source} returned a text with {text.count('/')} slashes that is no key; {_EXPECTED}")
    return _checked(ObjectName(first, name), resource, source)


def _checked(key: ObjectName, resource: Resource[Any] | None, source: str) -> ObjectName:
    if resource is None or bool(key.namespace) == resource.namespaced:
        return key
    if resource.namespaced:
        raise UsageError(f"{source} returned a name without a namespace, and {resource.group_resource} are namespaced")
    raise UsageError(f"{source} returned a key with a namespace, and {resource.group_resource} are cluster-scoped")
