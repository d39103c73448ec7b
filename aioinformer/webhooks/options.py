"""For which requests the API server calls an admission function: the options of a declaration, as the API has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypedDict

from aioinformer.errors import OptionError, SelectorError
from aioinformer.resources.label_selectors import LabelSelector
from aioinformer.resources.resource import Resource

Operation: TypeAlias = Literal["create", "update", "delete"]
Purpose: TypeAlias = Literal["default", "validate"]

#: `re` compiles these at their first use.
_SUBRESOURCE: Final = r"[a-z]+"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_CONDITION: Final = rf"({_LABEL}(\.{_LABEL})*/)?(?=.{{1,63}}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
#: The API accepts 64, of which one is for the manager's own objects.
_CONDITIONS: Final = 63


class HookOptions(TypedDict, total=False):
    """When the API server calls an admission function, and what it does if that fails.

    All but `operations`, `subresources` and `reads` are for the configurations that `aioinformer manifests` writes.

    Attributes:
        operations: "create", "update" and "delete", or some of them; by default, the first two.
        subresources: that clients write, such as "status" and "scale"; "" for the object itself, which is the default.
        reads: resources whose lister the function uses; the manager keeps caches of them.
        failure_policy: what the API server does without an answer: "Fail" (default) refuses the request, "Ignore"
            accepts it.
        timeout: seconds that the API server waits for the answer, 1 to 30; by default 10.
        namespace_selector: a label selector of the API, `{"matchLabels": {"team": "shop"}}`: only for objects in
            namespaces with these labels. By default, it leaves out the manager's own namespaces and kube-system for
            built-in kinds, so that a manager whose function cannot be called can start; {} for all namespaces.
        object_selector: only for objects with these labels, before or after the request.
        match_conditions: name -> CEL expression of `object`, `oldObject` and `request`; all must be true. For
            cluster-scoped built-in kinds, one more leaves out the manager's own objects.
        match_policy: "Equivalent" (default): also for requests in other versions of the resource; "Exact": only in that
            of the declaration.
        side_effects: "None" (default), or "NoneOnDryRun" for a function that changes something else.
    """

    operations: Iterable[Operation]
    subresources: Iterable[str]
    reads: Iterable[Resource[Any]]
    failure_policy: Literal["Fail", "Ignore"]
    timeout: int
    namespace_selector: Mapping[str, Any]
    object_selector: Mapping[str, Any]
    match_conditions: Mapping[str, str]
    match_policy: Literal["Equivalent", "Exact"]
    side_effects: Literal["None", "NoneOnDryRun"]


class Registration:
    """The options of one admission function, checked.

    Args:
        options: as declared.
        what: the function, for errors.

    Attributes:
        namespace_selector: None for the default.

    Raises:
        OptionError: the API would refuse an option.
    """

    def __init__(self, options: HookOptions, purpose: Purpose, resource: Resource[Any], what: str) -> None:
        self._options: Mapping[str, Any] = options
        self._what = what
        if unknown := options.keys() - HookOptions.__annotations__.keys():
            raise OptionError(f"{what}: {unknown.pop()} is no option of {purpose}")
        known = ("create", "update", "delete") if purpose == "validate" else ("create", "update")
        self.operations: tuple[str, ...] = self._listed("operations", ("create", "update"))
        if not set(self.operations) <= set(known):
            raise self._refused("operations", f"a list of {', '.join(known)}")
        self.subresources: tuple[str, ...] = self._listed("subresources", ("",))
        for name in self.subresources:
            if name and not re.fullmatch(_SUBRESOURCE, name):
                raise self._refused("subresources", 'a list of names such as "status", and "" for the object')
            if name and resource.subresources and name not in resource.subresources:
                raise self._refused("subresources", f"of {', '.join(resource.subresources)}, which {resource.gvr} has")
        self.failure_policy: str = self._one_of("failure_policy", "Fail", "Ignore")
        self.match_policy: str = self._one_of("match_policy", "Equivalent", "Exact")
        self.side_effects: str = self._one_of("side_effects", "None", "NoneOnDryRun")
        self.timeout: int = self._options.get("timeout", 10)
        if type(self.timeout) is not int or not 1 <= self.timeout <= 30:
            raise self._refused("timeout", "a number of seconds from 1 to 30")
        self.namespace_selector = self._selector("namespace_selector")
        self.object_selector = self._selector("object_selector")
        self.match_conditions = self._conditions()

    def _refused(self, option: str, expected: str) -> OptionError:
        return OptionError(f"{self._what}: {option} must be {expected}, not {self._options[option]!r}")

    def _listed(self, option: str, default: tuple[str, ...]) -> tuple[str, ...]:
        found = self._options.get(option, default)
        texts = () if isinstance(found, str) else tuple(dict.fromkeys(found))
        if not texts or not all(isinstance(each, str) for each in texts):
            raise self._refused(option, "a list of texts")
        return texts

    def _one_of(self, option: str, default: str, other: str) -> str:
        found: str = self._options.get(option, default)
        if found not in (default, other):
            raise self._refused(option, f'"{default}" or "{other}"')
        return found

    def _selector(self, option: str) -> dict[str, Any] | None:
        found = self._options.get(option)
        if found is None:
            return None
        if not isinstance(found, Mapping) or found.keys() - {"matchLabels", "matchExpressions"}:
            raise self._refused(option, "a label selector with matchLabels and matchExpressions")
        try:
            LabelSelector.from_dict(dict(found))
        except SelectorError as error:
            raise OptionError(f"{self._what}: {option}: {error}") from error
        return dict(found)

    def _conditions(self) -> list[dict[str, str]]:
        found = self._options.get("match_conditions", {})
        if not isinstance(found, Mapping) or not all(isinstance(each, str) and each.strip() for each in found.values()):
            raise self._refused("match_conditions", "a mapping of names to CEL expressions")
        if len(found) > _CONDITIONS:
            raise OptionError(f"{self._what}: match_conditions has {len(found)} conditions; there may be {_CONDITIONS}")
        for name in found:
            if not re.fullmatch(_CONDITION, name):
                raise OptionError(
                    f"{self._what}: match_conditions: the name {name!r} must consist of letters, digits, -, _ and ., "
                    "and begin and end with a letter or digit"
                )
        return [{"name": name, "expression": expression} for name, expression in found.items()]
