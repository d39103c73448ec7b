"""Fields of users' classes that have the class of whole built-in objects, which msgspec cannot decode as a part."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

from aioinformer.cache.objects.models.model import Model
from aioinformer.cache.objects.views import View, view_resource


def refused_kind(cls: type[Any]) -> str:
    """Return what is wrong with the first such field of a class or of a class in it; "" if there is none."""
    return _in_class(cls, set())


def _in_class(cls: type[Any], seen: set[Any]) -> str:
    seen.add(cls)
    try:
        hints = get_type_hints(cls)
    except (NameError, TypeError):  # of a name that is known to a type checker only
        return ""
    for name, hint in hints.items():
        for each in _types_in(hint):
            if issubclass(each, View):
                module = view_resource(each).api_version.replace("/", "_")
                kind = each.__name__
                return (
                    f"{cls.__name__}.{name} has the class of whole objects, {kind}, which come from the server; use "
                    f"Embedded{kind} of aioinformer.models.{module if '_' in module else f'core_{module}'}"
                )
            is_of_user = each.__module__ != "builtins" and not issubclass(each, Model)
            if is_of_user and each not in seen and (found := _in_class(each, seen)):
                return found
    return ""


def _types_in(hint: Any) -> list[type[Any]]:
    if isinstance(hint, type) and not get_args(hint):
        return [hint]
    return [each for argument in get_args(hint) for each in _types_in(argument)]
