"""Type checking of expressions.

The checker finds all faults of an expression and formats them as CEL's own checker does: with the line, and a mark
under the position.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from aioinformer.cel.expressions import compile_pattern
from aioinformer.cel.functions import call_overload
from aioinformer.cel.library.texts import format_faults
from aioinformer.cel.library.times import to_duration, to_timestamp
from aioinformer.cel.nodes import Bind, Call, Fold, ListOf, Literal, MapOf, Name, Node, Select
from aioinformer.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Bindings,
    Type,
    list_of,
    map_of,
    optional_of,
    read_type,
    resolved,
    type_of,
    unify,
)
from aioinformer.cel.values import EvaluationError, Unsupported, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from aioinformer.cel.functions import Functions

_PARSERS: dict[str, Callable[[str], Any]] = {
    "duration": to_duration,
    "matches": compile_pattern,
    "timestamp": to_timestamp,
}
_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"})
_SEARCHES = frozenset({"find", "findAll"})
_LITERALS = {"null_type": NULL, "bool": BOOL, "int": INT, "uint": UINT, "double": DOUBLE, "string": STRING}
# Names that are types, and the name that a value of the type reports.
TYPE_VALUES = {
    **{name: name for name in ("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint")},
    **{name: name for name in ("kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL", "net.CIDR", "net.IP")},
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "optional_type": "optional_type",
}


def literal_faults(node: Node) -> Iterator[tuple[int, str]]:
    """Yield invalid times and patterns that are literals, with their positions."""
    match node:
        case Call(function=name, args=(*_, Literal(value=str() as text) as literal)) if name in _PARSERS:
            if _fault(_PARSERS[name], text) is not None:
                yield literal.at, f"invalid {name} argument"
    for part in node.parts:
        yield from literal_faults(part)


def constant_faults(node: Node, functions: Functions) -> Iterator[str]:
    """Yield the errors of constant parts of an expression."""
    for part in node.parts:
        yield from constant_faults(part, functions)
    match node:
        case Call(function=name, target=None, args=(Literal(value=value),)) if name in _CONVERSIONS:
            fault = _fault(lambda _: call_overload(functions[name], [value]), "")
        case Call(function=name, args=(Literal(value=str() as pattern), *_)) if name in _SEARCHES:
            fault = _fault(compile_pattern, pattern)
        case _:
            return
    if fault is not None:
        yield fault


def _fault(parse: Callable[[str], Any], text: str) -> str | None:
    try:
        parse(text)
    except EvaluationError as error:
        return str(error)
    except ArithmeticError:
        return "overflow"
    except Unsupported:
        # The pattern may be valid; its evaluation raises `Unsupported`.
        return None
    return None


class CheckFault(Exception):
    """An expression does not type-check. The message lists all its faults."""


def check(node: Node, source: str, variables: Mapping[str, Type], functions: Functions) -> tuple[Type, frozenset[str]]:
    """Return the type of an expression, and the variables that it uses.

    Args:
        node: the expression.
        source: its source text.
        variables: the declared variables.
        functions: the declared functions.

    Raises:
        CheckFault: the expression does not type-check.
    """
    checker = _Checker(functions)
    found = checker.type_of(node, variables)
    if faults := checker.faults or [*checker.minor_faults, *literal_faults(node)]:
        raise CheckFault("\n".join(fault_text(source, at, what) for at, what in sorted(set(faults))))
    return resolved(found, checker.bindings, free=DYN), frozenset(checker.used_names & variables.keys())


def fault_text(source: str, at: int, what: str) -> str:
    """Format a fault with its position."""
    start = source.rfind("\n", 0, at) + 1
    line = source[start:].split("\n", 1)[0]
    column = at - start
    place = f"{source.count(chr(10), 0, at) + 1}:{column + 1}"
    return f"ERROR: <input>:{place}: {what}\n | {line}\n | {'.' * column}^"


def path_of(node: Node) -> str:
    """Return the dotted name that the expression is, or ""."""
    match node:
        case Name():
            return node.name
        case Select(test=False, optional=False):
            return f"{path}.{node.field}" if (path := path_of(node.operand)) else ""
    return ""


class _Checker:
    def __init__(self, functions: Functions) -> None:
        self.faults: list[tuple[int, str]] = []
        # Reported only if there are no other faults.
        self.minor_faults: list[tuple[int, str]] = []
        self.bindings: Bindings = {}
        self.used_names: set[str] = set()
        self._functions = functions
        self._numbers = count()

    def type_of(self, node: Node, names: Mapping[str, Type]) -> Type:
        match node:
            case Literal():
                return BYTES if isinstance(node.value, bytes) else _LITERALS[type_name(node.value)]
            case Name():
                return self._name_type(node, names)
            case Select():
                return self._select_type(node, names)
            case Call():
                return self._call_type(node, names)
            case ListOf():
                items = [(item, self._item_type(item, optional, names)) for item, optional in node.items]
                return list_of(self._common_type(items))
            case MapOf():
                keys = [(key, self.type_of(key, names)) for key, _, _ in node.entries]
                values = [(value, self._item_type(value, optional, names)) for _, value, optional in node.entries]
                return map_of(self._common_type(keys), self._common_type(values))
            case Fold():
                return self._fold_type(node, names)
            case Bind():
                return self._bind_type(node, names)
        raise TypeError(node)

    def _fault(self, at: int, what: str) -> Type:
        self.faults.append((at, what))
        return ERROR

    def _type_texts(self, *types: Type) -> str:
        return ", ".join(str(resolved(each, self.bindings, free=DYN)) for each in types)

    def _name_type(self, node: Name, names: Mapping[str, Type]) -> Type:
        if node.name in names:
            self.used_names.add(node.name)
            return names[node.name]
        if node.name in TYPE_VALUES:
            return type_of(read_type(node.name))
        return self._fault(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _select_type(self, node: Select, names: Mapping[str, Type]) -> Type:
        path = path_of(node)
        if path in TYPE_VALUES and path.split(".")[0] not in names:
            return type_of(read_type(TYPE_VALUES[path]))
        operand = resolved(self.type_of(node.operand, names), self.bindings)
        found = self._field_type(node, operand.args[0] if operand.name == "optional_type" else operand)
        if node.test:
            return BOOL
        if node.optional or operand.name == "optional_type":
            return optional_of(found)
        return found

    def _field_type(self, node: Select, of: Type) -> Type:
        if of.name == "map":
            return of.args[1]
        if of.is_object:
            if node.field in of.fields:
                return of.fields[node.field]
            return self._fault(node.at, f"undefined field '{node.field}'")
        if of.is_parameter:
            unify(DYN, of, self.bindings)
        elif of not in (DYN, ERROR):
            self._fault(node.at, f"type '{self._type_texts(of)}' does not support field selection")
        return DYN

    def _call_type(self, node: Call, names: Mapping[str, Type]) -> Type:
        minor_faults = list(self.minor_faults)
        args = [self.type_of(arg, names) for arg in node.args]
        if node.function == "format":
            # The values of a format may have different types.
            self.minor_faults = [*minor_faults, *self._format_faults(node, names)]
        if node.target is not None:
            args.insert(0, self.type_of(node.target, names))
        if node.function in ("_&&_", "_||_"):
            return self._logical(node.args, args)
        if node.function not in self._functions:
            return self._fault(node.at, f"undeclared reference to '{node.function}' (in container '')")
        result: Type | None = None
        for overload in self._functions[node.function]:
            if overload.is_member is not (node.target is not None) or len(overload.args) != len(args):
                continue
            fresh = self._fresh_parameters([*overload.args, overload.result])
            bindings = dict(self.bindings)
            if all(unify(given, wanted, bindings) for given, wanted in zip(args, fresh, strict=False)):
                self.bindings = bindings
                found = resolved(fresh[-1], bindings)
                result = found if result in (None, found) else DYN
        if result is not None:
            return result
        signature = f"({self._type_texts(*args)})"
        if node.target is not None:
            signature = f"{self._type_texts(args[0])}.({self._type_texts(*args[1:])})"
        return self._fault(node.at, f"found no matching overload for '{node.function}' applied to '{signature}'")

    def _format_faults(self, node: Call, names: Mapping[str, Type]) -> Iterator[tuple[int, str]]:
        match node:
            case Call(target=Literal(value=str() as text), args=(ListOf() as values,)):
                types = [resolved(self.type_of(item, names), self.bindings, free=DYN).name for item in values.parts]
                for index, what in format_faults(text, types):
                    yield (node.at if index is None else values.parts[index].at), what

    def _fresh_parameters(self, types: Sequence[Type]) -> list[Type]:
        number = next(self._numbers)
        fresh = {letter: Type(f"{letter}{number}") for letter in "ABKTV"}
        return [resolved(each, fresh) for each in types]

    def _logical(self, nodes: Sequence[Node], types: Sequence[Type]) -> Type:
        fits = [self._require_bool(node, type_) for node, type_ in zip(nodes, types, strict=True)]
        return BOOL if all(fits) else ERROR

    def _require_bool(self, node: Node, type_: Type) -> bool:
        if unify(type_, BOOL, self.bindings):
            return True
        self._fault(node.at, f"expected type 'bool' but found '{self._type_texts(type_)}'")
        return False

    def _item_type(self, node: Node, optional: bool, names: Mapping[str, Type]) -> Type:
        found = resolved(self.type_of(node, names), self.bindings)
        if not optional:
            return found
        if found.name == "optional_type":
            return found.args[0]
        if found not in (DYN, ERROR):
            shown = self._type_texts(found)
            self._fault(node.at, f"expected type 'optional_type({shown})' but found '{shown}'")
        return found

    def _common_type(self, parts: Sequence[tuple[Node, Type]]) -> Type:
        if not parts:
            return Type(f"E{next(self._numbers)}")
        common = parts[0][1]
        for node, type_ in parts[1:]:
            if not unify(common, type_, self.bindings):
                why = f"expected type '{self._type_texts(common)}' but found '{self._type_texts(type_)}'"
                self.minor_faults.append((node.at, why))
                common = DYN
            common = DYN if DYN in (common, type_) else common
        return common

    def _fold_type(self, node: Fold, names: Mapping[str, Type]) -> Type:
        over = resolved(self.type_of(node.over, names), self.bindings)
        if over.name in ("list", "map"):
            each = (INT if over.name == "list" else over.args[0], over.args[-1])
        else:
            each = (DYN, DYN)
            if over.is_parameter:
                unify(DYN, over, self.bindings)
            elif over not in (DYN, ERROR):
                why = "cannot be range of a comprehension (must be list, map, or dynamic)"
                self._fault(node.over.at, f"expression of type '{self._type_texts(over)}' {why}")
        if len(node.names) == 1:
            each = (each[1] if over.name != "map" else each[0],) * 2
        inner = {**names, **dict(zip(node.names, each, strict=False))}
        if node.given is not None:
            self._require_bool(node.given, self.type_of(node.given, inner))
        result = self.type_of(node.result, inner)
        match node.kind:
            case "map":
                return list_of(result)
            case "transformMap":
                return map_of(each[0], result)
            case "transformMapEntry":
                return result
            case "sortBy":
                return list_of(each[0])
        self._require_bool(node.result, result)
        return list_of(each[0]) if node.kind == "filter" else BOOL

    def _bind_type(self, node: Bind, names: Mapping[str, Type]) -> Type:
        of = resolved(self.type_of(node.optional, names), self.bindings)
        if of.name != "optional_type" and of not in (DYN, ERROR):
            shown = self._type_texts(of)
            return self._fault(node.at, f"found no matching overload for 'hasValue' applied to '{shown}.()'")
        inner = of.args[0] if of.args else DYN
        result = self.type_of(node.result, {**names, node.name: inner})
        return result if node.flat else optional_of(result)
