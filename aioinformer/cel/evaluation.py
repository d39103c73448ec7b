"""Turn the nodes of an expression into a function that evaluates it.

An expression is compiled once and evaluated for each object. `&&` and `||` (and so `all` and `exists`) ignore an error
on one side if the other side decides the result.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from aioinformer.cel.checking import TYPE_VALUES, path_of
from aioinformer.cel.functions import NO_OVERLOAD, call_overload, find_overload
from aioinformer.cel.nodes import Bind, Call, Fold, ListOf, Literal, MapOf, Name, Node, Select
from aioinformer.cel.values import NONE, EvaluationError, Optional, TypeValue, full_type_name, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aioinformer.cel.functions import Functions

    Scope = Mapping[str, Any]
    Evaluator = Callable[[Scope], Any]


def evaluator(node: Node, functions: Functions) -> Evaluator:
    """Return a function that evaluates an expression for given variables.

    Args:
        node: a checked expression.
        functions: the functions that it calls.

    Raises:
        TypeError: the expression contains a node of another kind.
    """
    match node:
        case Literal():
            value = node.value
            return lambda _: value
        case Name():
            return _name(node.name)
        case Select():
            return _select(node, functions)
        case Call():
            return _call(node, functions)
        case ListOf():
            items = [(evaluator(item, functions), optional) for item, optional in node.items]
            return lambda scope: [value for item, optional in items for value in _item_values(item(scope), optional)]
        case MapOf():
            return _map(node, functions)
        case Fold():
            return _fold(node, functions)
        case Bind():
            return _bind(node, functions)
    raise TypeError(node)


def _name(name: str) -> Evaluator:
    type_ = TypeValue(TYPE_VALUES.get(name, ""))

    return lambda scope: scope.get(name, type_)


def _select(node: Select, functions: Functions) -> Evaluator:
    if (path := path_of(node)) in TYPE_VALUES:
        type_ = TypeValue(TYPE_VALUES[path])
        return lambda _: type_
    operand = evaluator(node.operand, functions)
    field = node.field

    def selected(scope: Scope) -> Any:
        value = operand(scope)
        if isinstance(value, Optional):
            return Optional(tuple(each[field] for each in value.values if isinstance(each, dict) and field in each))
        is_there = isinstance(value, dict) and field in value
        if node.optional:
            return Optional((value[field],)) if is_there else NONE
        if not is_there:
            raise EvaluationError(f"no such key: {field}")
        return value[field]

    def has(scope: Scope) -> bool:
        value = operand(scope)
        if isinstance(value, Optional):
            return any(isinstance(each, dict) and field in each for each in value.values)
        return isinstance(value, dict) and field in value

    return has if node.test else selected


def _call(node: Call, functions: Functions) -> Evaluator:
    args = [evaluator(arg, functions) for arg in (*((node.target,) if node.target else ()), *node.args)]
    match node.function:
        case "_&&_":
            return lambda scope: _short_circuit(((arg, scope) for arg in args), False)
        case "_||_":
            return lambda scope: _short_circuit(((arg, scope) for arg in args), True)
        case "_?_:_":
            return lambda scope: (args[1] if _require_bool(args[0](scope)) else args[2])(scope)
    is_member = node.target is not None
    known = [each for each in functions[node.function] if each.is_member is is_member and len(each.args) == len(args)]

    def call(scope: Scope) -> Any:
        values = [arg(scope) for arg in args]
        if (overload := find_overload(known, values)) is None:
            raise _no_overload_error(node, values)
        try:
            return overload.function(*values)
        except ArithmeticError:
            raise EvaluationError("overflow") from None

    return call


def _no_overload_error(node: Call, values: list[Any]) -> EvaluationError:
    if node.function == "_[_]":
        return EvaluationError(f"no such key: {values[1]}")
    if node.function.startswith(("_", "@", "-", "!")):
        return EvaluationError(NO_OVERLOAD)
    given = ", ".join(map(full_type_name, values))
    return EvaluationError(f"{NO_OVERLOAD}: {node.function}" + ("" if node.function == "size" else f"({given})"))


def _require_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise EvaluationError(NO_OVERLOAD)
    return value


def _short_circuit(parts: Iterator[tuple[Evaluator, Scope]], deciding: bool) -> bool:
    """Return `deciding` if a part has this value, else its opposite. Errors of parts count only in the second case."""
    failed: EvaluationError | None = None
    for part, scope in parts:
        try:
            if _require_bool(part(scope)) is deciding:
                return deciding
        except EvaluationError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return not deciding


def _item_values(value: Any, optional: bool) -> tuple[Any, ...]:
    return _require_optional(value).values if optional else (value,)


def _require_optional(value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise EvaluationError(NO_OVERLOAD)
    return value


def _map(node: MapOf, functions: Functions) -> Evaluator:
    entries = [(evaluator(key, functions), evaluator(value, functions), opt) for key, value, opt in node.entries]

    def built(scope: Scope) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value, optional in entries:
            name = key(scope)
            if not isinstance(name, Hashable):
                raise EvaluationError(f"unsupported key type: {type_name(name)}")
            for each in _item_values(value(scope), optional):
                result[name] = each
        return result

    return built


def _bind(node: Bind, functions: Functions) -> Evaluator:
    optional = evaluator(node.optional, functions)
    result = evaluator(node.result, functions)

    def bound(scope: Scope) -> Any:
        found = [result({**scope, node.name: value}) for value in _require_optional(optional(scope)).values]
        if not found:
            return NONE
        return found[0] if node.flat else Optional((found[0],))

    return bound


def _fold(node: Fold, functions: Functions) -> Evaluator:
    over = evaluator(node.over, functions)
    result = evaluator(node.result, functions)
    given = evaluator(node.given, functions) if node.given is not None else None

    def scopes(scope: Scope) -> Iterator[tuple[Any, Scope]]:
        """Yield for each matching element the key or value that the result uses, and the scope with its names."""
        values = over(scope)
        if isinstance(values, dict):
            pairs: Any = values.items()
        elif isinstance(values, list):
            pairs = enumerate(values)
        else:
            raise EvaluationError(f"got 'types.{type_name(values).capitalize()}', expected iterable type")
        for key, value in pairs:
            alone = key if isinstance(values, dict) else value
            parts = (alone,) if len(node.names) == 1 else (key, value)
            inner = {**scope, **dict(zip(node.names, parts, strict=True))}
            if given is None or _require_bool(given(inner)):
                yield parts[0], inner

    match node.kind:
        case "all" | "exists":
            deciding = node.kind == "exists"
            return lambda scope: _short_circuit(((result, inner) for _, inner in scopes(scope)), deciding)
        case "exists_one":
            return lambda scope: sum(_require_bool(result(inner)) for _, inner in scopes(scope)) == 1
        case "filter":
            return lambda scope: [each for each, inner in scopes(scope) if _require_bool(result(inner))]
        case "map":
            return lambda scope: [result(inner) for _, inner in scopes(scope)]
        case "transformMap":
            return lambda scope: {key: result(inner) for key, inner in scopes(scope)}
        case "transformMapEntry":
            return lambda scope: _merge(result(inner) for _, inner in scopes(scope))
    less = functions["_<_"]

    def in_order(scope: Scope) -> list[Any]:
        keyed = [(result(inner), each) for each, inner in scopes(scope)]
        key = cmp_to_key(
            lambda one, other: int(call_overload(less, [other, one])) - int(call_overload(less, [one, other]))
        )
        return [each for _, each in sorted(keyed, key=lambda pair: key(pair[0]))]

    return in_order


def _merge(maps: Iterator[dict[Any, Any]]) -> dict[Any, Any]:
    merged: dict[Any, Any] = {}
    for each in maps:
        if not isinstance(each, dict):
            raise EvaluationError(NO_OVERLOAD)
        for key, value in each.items():
            if key in merged:
                raise EvaluationError(f"insert failed: key {key} already exists")
            merged[key] = value
    return merged
