"""Keys that functions of users return, and keys in fields of objects, as `ObjectName`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from aioinformer.cache.objects.views import View, view_record
from aioinformer.errors import KeyFuncError, UsageError
from aioinformer.resources.keys import ObjectName, metadata_field, metadata_of, object_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.resources.resource import Resource

_EXPECTED: Final = "return keys ('namespace/name'), ObjectNames or objects: one, several or None"


def key_of(obj: Any) -> ObjectName:
    """Return the key of an object of any form.

    Raises:
        UsageError: it has no name.
    """
    if isinstance(obj, View):
        record = view_record(obj)
        return ObjectName(record.namespace, record.name)
    try:
        return object_name(obj)
    except KeyFuncError as error:
        raise UsageError(f"{type(obj).__name__} has no key: give its class metadata with namespace and name") from error


def uid_of(obj: Any) -> str:
    """Return the uid of an object of any form; "" if it has none."""
    if isinstance(obj, View):
        return view_record(obj).uid
    try:
        return metadata_field(metadata_of(obj), "uid", "uid") or ""
    except KeyFuncError:
        return ""


def version_of(obj: Any) -> str:
    """Return the resourceVersion of an object of any form; "" if it has none."""
    if isinstance(obj, View):
        return view_record(obj).resource_version
    try:
        return metadata_field(metadata_of(obj), "resource_version", "resourceVersion") or ""
    except KeyFuncError:
        return ""


def keys_in(
    result: Any, resource: Resource[Any] | None, namespace: str, source: str, *, several: bool = True
) -> Iterator[ObjectName]:
    """Return the keys in what a function of a user returned, each as soon as it is found.

    Args:
        result: None or ""; a key as text or `ObjectName`; an object; or several of these.
        resource: of the keys; None if it is not known.
        namespace: of names without a namespace; "" if there is none.
        source: names the function, for errors.
        several: whether there may be several.

    Raises:
        UsageError: the result is, or contains, something else.
    """
    if isinstance(result, ObjectName):
        key = result
    elif isinstance(result, str) and result:
        first, slash, name = result.rpartition("/")
        if not name or (slash and not first) or "/" in first:
            raise UsageError(f"{source} returned a text with {result.count('/')} slashes that is no key; {_EXPECTED}")
        key = ObjectName(first if slash or (resource and not resource.namespaced) else namespace, name)
    elif isinstance(result, Mapping) or hasattr(result, "metadata"):
        key = key_of(result)
    elif several and isinstance(result, Iterable) and not isinstance(result, (str, bytes)):
        for each in result:
            yield from keys_in(each, resource, namespace, source, several=False)
        return
    elif result is None or result == "":
        return
    else:
        if inspect.iscoroutine(result):
            result.close()
        raise UsageError(f"{source} returned {type(result).__name__}{'' if several else ' in a sequence'}; {_EXPECTED}")
    if resource is not None and bool(key.namespace) != resource.namespaced:
        what = "a key with a namespace" if key.namespace else "a name without a namespace"
        scope = "namespaced" if resource.namespaced else "cluster-scoped"
        raise UsageError(f"{source} returned {what}, and {resource.group_resource} are {scope}")
    yield key
