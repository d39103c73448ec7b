"""Predicates: which updates of an object make a controller run. They are combined with `&`, `|` and `~`.

The predicates of this module compare the two states of an update. For added objects and resyncs they have no answer,
and a change without an answer passes: also a combination that needs this answer has none. Deletions, and objects that
were created again under their name, pass without a call of the predicate.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from aioinformer.cache.objects.fields import parse_path
from aioinformer.cache.objects.record import labels_of
from aioinformer.controller.inputs.content import (
    decode,
    json_of,
    same_content,
    same_object,
    same_value,
    split,
    value_at,
)
from aioinformer.errors import UsageError
from aioinformer.functions import function_name, plain_function

ChangeTrigger: TypeAlias = Literal["initial", "added", "updated", "deleted", "resync"]


class Change(msgspec.Struct, frozen=True):
    """One change of one object, or a resync of it.

    Attributes:
        trigger: what happened.
        old: the state before an update, or the last known state of a deleted object, or None.
        new: the present state; None for a deleted object.
        initial: whether the object belongs to the first list.
        whole: False if the storage tier of the informer drops members of objects. Then a member that is absent in both
            states may have changed.
    """

    trigger: ChangeTrigger
    old: Any = None
    new: Any = None
    initial: bool = False
    whole: bool = True


#: True, False, or None for no answer.
Decide: TypeAlias = Callable[[Change], bool | None]


class Predicate:
    """Decides whether a change makes a controller run; call it with a `Change`.

    `a & b` passes changes that both pass, `a | b` those that one of them passes, and `~a` those that `a` does not pass.
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
        mine = self._decide
        theirs = _checked(other)._decide

        def both(change: Change) -> bool | None:
            first = mine(change)
            second = first is not False and theirs(change)
            return first if second else second

        return Predicate(both, f"({self} & {other})")

    def __or__(self, other: Predicate) -> Predicate:
        return ~(~self & ~_checked(other))

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
    name = function_name(plain_function(function, "predicate"))

    def decide(change: Change) -> bool:
        result = function(change)
        if result is None or inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise UsageError(f"predicate {name} returned {type(result).__name__}; return True or False")
        return bool(result)

    return Predicate(decide, name)


def _of_updates(name: str, differs: Callable[[Change], bool]) -> Predicate:
    return Predicate(lambda change: differs(change) if change.trigger == "updated" else None, name)


#: An update differs in more than `status`, and `resourceVersion`, `managedFields` and `generation` of the metadata.
#: Labels, annotations, finalizers, owner references and the mark of a deletion count. What the informer stores is
#: compared: with `storage="metadata"` or `"projection"` there are no whole objects, and every update passes; with your
#: own model, the members of its class are compared.
content_changed = _of_updates("content_changed", lambda at: not (at.whole and same_content(at.old, at.new)))
#: An update differs in more than `resourceVersion`, `managedFields` and `generation`. With `storage="metadata"` or
#: `"projection"`, every update passes.
object_changed = _of_updates("object_changed", lambda at: not (at.whole and same_object(at.old, at.new)))
labels_changed = _of_updates("labels_changed", lambda at: labels_of(at.old) != labels_of(at.new))


def fields_changed(*paths: str) -> Predicate:
    """Return the predicate of updates in which the value at one of these paths differs.

    Args:
        paths: such as "spec.size", "spec.containers.0.image" or "metadata.labels['a.b/c']", with the keys of the JSON.

    Raises:
        UsageError: there is no path, or a path does not parse.
    """
    return _fields_changed(f"fields_changed({', '.join(map(repr, paths))})", *paths)


def _fields_changed(name: str, *paths: str, absent: bool = False) -> Predicate:
    """Return a predicate by fields; `absent` is its answer if all fields are absent in both states."""
    parsed = tuple(map(parse_path, paths))
    if not parsed:
        raise UsageError('fields_changed: name at least one field, such as "spec.size"')

    def differ(change: Change) -> bool:
        old = split(json_of(change.old))
        new = split(json_of(change.new))
        pairs = [(value_at(old, steps), value_at(new, steps)) for steps in parsed]
        if (absent or not change.whole) and all(pair == (None, None) for pair in pairs):
            return True
        return not all(same_value(first, second) for first, second in pairs)

    return _of_updates(name, differ)


annotations_changed = _fields_changed("annotations_changed", "metadata.annotations")
version_changed = _fields_changed("version_changed", "metadata.resourceVersion")
#: An update has another `metadata.generation`. Updates of kinds without a generation, such as ConfigMaps, pass.
generation_changed = _fields_changed("generation_changed", "metadata.generation", absent=True)


def condition_changed(type: str) -> Predicate:
    """Return the predicate of updates in which the status of a condition differs, or the condition came or went.

    Args:
        type: of the condition, such as "Ready".

    Raises:
        UsageError: the type is empty.
    """
    if not type:
        raise UsageError('condition_changed: name the type of the condition, such as "Ready"')

    def status_of(state: Any) -> Any:
        found = value_at(split(json_of(state)), ("status", "conditions"))
        conditions = decode(found) if found is not None else ()
        return next((each.get("status") for each in conditions if each.get("type") == type), None)

    def differs(change: Change) -> bool:
        before = status_of(change.old)
        return before != status_of(change.new) or (before is None and not change.whole)

    return _of_updates(f"condition_changed({type!r})", differs)
