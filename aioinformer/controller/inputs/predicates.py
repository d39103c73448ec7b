"""Predicates: which updates of an object make a controller run. They are combined with `&`, `|` and `~`.

The predicates of this module compare two states of an object. For added objects and resyncs, where there are not two
states, they have no answer, and a predicate without an answer lets the change pass: also within `&`, `|` and `~`.
Deletions, and objects that were created again under their name, pass without asking a predicate.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeAlias

from aioinformer.cache.objects.fields import parse_path
from aioinformer.cache.objects.record import labels_of
from aioinformer.controller.inputs.content import (
    decoded,
    json_of,
    same_content,
    same_object,
    same_value,
    split,
    value_at,
)
from aioinformer.errors import UsageError
from aioinformer.functions import function_name, plain_function
from aioinformer.resources.keys import metadata_field, metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.controller.inputs.change import Change

    #: True, False, or None for no answer.
    Decide: TypeAlias = "Callable[[Change], bool | None]"


class Predicate:
    """Decides whether a change makes a controller run; call it with a `Change`.

    `a & b` passes changes that both pass, `a | b` those that one of them passes, and `~a` those that `a` does not pass.

    Args:
        decide: change -> True, False, or None for no answer.
        name: for logs.
    """

    __slots__ = ("_decide", "_name")

    def __init__(self, decide: Decide, name: str) -> None:
        self._decide = decide
        self._name = name

    def __call__(self, change: Change) -> bool:
        """Return whether the change passes.

        Raises:
            Exception: the function of a user raised it, or an object is not JSON.
        """
        return self._decide(change) is not False

    def __and__(self, other: Predicate) -> Predicate:
        mine, theirs = self._decide, _checked(other)._decide

        def both(change: Change) -> bool | None:
            first = mine(change)
            if first is False:
                return False
            second = theirs(change)
            return first if second else second

        return Predicate(both, f"({self} & {other})")

    def __or__(self, other: Predicate) -> Predicate:
        mine, theirs = self._decide, _checked(other)._decide

        def either(change: Change) -> bool | None:
            first = mine(change)
            if first:
                return True
            second = theirs(change)
            return True if second else (second if first is False else first)

        return Predicate(either, f"({self} | {other})")

    def __invert__(self) -> Predicate:
        decide = self._decide

        def opposite(change: Change) -> bool | None:
            answer = decide(change)
            return None if answer is None else not answer

        return Predicate(opposite, f"~{self}")

    def __bool__(self) -> bool:
        raise UsageError(f"{self}: combine predicates with & | ~, not with and, or, not")

    def __repr__(self) -> str:
        return self._name


def _checked(other: Any) -> Predicate:
    if not isinstance(other, Predicate):
        raise UsageError(f"expected a Predicate, not {type(other).__name__}; wrap a function: predicate(function)")
    return other


def predicate(function: Callable[[Change], Any]) -> Predicate:
    """Return the predicate of a function: it is called with each change but deletions, and decides by its truth value.

    If the function raises, the change passes, and the error is logged. It can be used as a decorator.

    Args:
        function: a plain function of a `Change`. It must return quickly.

    Raises:
        UsageError: it is not a plain function.
    """
    if isinstance(function, Predicate):
        return function
    plain_function(function, "predicate")
    name = function_name(function)

    def decide(change: Change) -> bool:
        result = function(change)
        if result is None or inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise UsageError(f"predicate {name} returned {type(result).__name__}; return True or False")
        return bool(result)

    return Predicate(decide, name)


def _of_updates(differs: Callable[[Change], bool], name: str) -> Predicate:
    return Predicate(lambda change: differs(change) if change.trigger == "updated" else None, name)


#: An update differs in more than `status`, and `resourceVersion`, `managedFields` and `generation` of the metadata.
#: Labels, annotations, finalizers, owner references and the mark of a deletion count. What the informer stores is
#: compared: with `storage="metadata"` or `"projection"` there are no whole objects, and every update passes; with your
#: own model, the members of its class are compared.
content_changed = _of_updates(
    lambda change: not (change.whole and same_content(change.old, change.new)), "content_changed"
)

#: An update differs in more than `resourceVersion` and `managedFields`. With `storage="metadata"` or `"projection"`,
#: every update passes.
object_changed = _of_updates(
    lambda change: not (change.whole and same_object(change.old, change.new)), "object_changed"
)


def _labels_differ(change: Change) -> bool:
    return labels_of(change.old) != labels_of(change.new)


def _versions_differ(change: Change) -> bool:
    first, second = (
        metadata_field(metadata_of(state), "resource_version", "resourceVersion") for state in (change.old, change.new)
    )
    return bool(first != second)


def _fields_differ(change: Change, paths: tuple[tuple[str, ...], ...], *, absent: bool = False) -> bool:
    """Return whether the value at one of the paths differs.

    Args:
        change: an update.
        paths: the paths.
        absent: the answer if a field is absent in both states.
    """
    old, new = split(json_of(change.old)), split(json_of(change.new))
    for steps in paths:
        first, second = value_at(old, steps), value_at(new, steps)
        if first is None and second is None:
            if absent or not change.whole:
                return True
        elif not same_value(first, second):
            return True
    return False


_GENERATION = (("metadata", "generation"),)
_ANNOTATIONS = (("metadata", "annotations"),)

#: An update has another `metadata.generation`. Updates of kinds without a generation, such as ConfigMaps, pass.
generation_changed = _of_updates(lambda change: _fields_differ(change, _GENERATION, absent=True), "generation_changed")
labels_changed = _of_updates(_labels_differ, "labels_changed")
annotations_changed = _of_updates(lambda change: _fields_differ(change, _ANNOTATIONS), "annotations_changed")
version_changed = _of_updates(_versions_differ, "version_changed")


def fields_changed(*paths: str) -> Predicate:
    """Return the predicate of updates in which the value at one of these paths differs.

    Args:
        paths: such as "spec.size", "spec.containers.0.image" or "metadata.labels['a.b/c']", with the keys of the JSON.

    Raises:
        UsageError: there is no path, or a path does not parse.
    """
    if not paths:
        raise UsageError('fields_changed: name at least one field, such as "spec.size"')
    parsed = tuple(map(parse_path, paths))
    return _of_updates(lambda change: _fields_differ(change, parsed), f"fields_changed({', '.join(map(repr, paths))})")


def condition_changed(type: str) -> Predicate:
    """Return the predicate of updates in which the status of a condition differs, or the condition came or went.

    Args:
        type: of the condition, such as "Ready".

    Raises:
        UsageError: the type is empty.
    """
    if not type:
        raise UsageError('condition_changed: name the type of the condition, such as "Ready"')

    def differs(change: Change) -> bool:
        first, second = (_condition(state, type) for state in (change.old, change.new))
        return first != second or (first is None and not change.whole)

    return _of_updates(differs, f"condition_changed({type!r})")


def _condition(state: Any, type: str) -> Any:
    found = value_at(split(json_of(state)), ("status", "conditions"))
    for condition in decoded(found) if found is not None else ():
        if condition.get("type") == type:
            return condition.get("status")
    return None
