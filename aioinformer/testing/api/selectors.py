"""Label and field selectors as the API server parses them, and the selectable fields of each resource.

The grammars are those of `aioinformer.resources`. Two things differ: errors have the server's messages, and `a in ()`
is accepted and means the empty value.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from aioinformer.resources.field_selectors import FieldRequirement, FieldSelector
from aioinformer.resources.label_selectors import LabelRequirement, LabelSelector, Operator
from aioinformer.testing.api.golike import quoted
from aioinformer.testing.api.statuses import StatusError, bad_request
from aioinformer.testing.api.validation import label_name_faults, label_value_faults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.resources.resource import Resource

_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_SIGNS = frozenset("=!(),<>") | {"==", "!=", ""}
_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_SETS = (Operator.IN, Operator.NOT_IN)
_ORDERS = (Operator.GREATER_THAN, Operator.LESS_THAN)
_INT64 = range(-(2**63), 2**63)
_FIELD_OPERATOR = re.compile("!=|==|=")
_POD = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
)
_EVENT = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "type",
    "source",
)
# The names of these fields in `events.k8s.io`.
_REGARDING_EVENT = (
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
)
_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": _POD,
    "events": _EVENT,
    "events.events.k8s.io": _REGARDING_EVENT,
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
}
_ELSEWHERE = {"source": ("source.component", "reportingComponent"), "status.successful": ("status.succeeded",)}
_ZERO = {"spec.hostNetwork": "false", "spec.unschedulable": "false", "status.replicas": "0", "status.successful": "0"}
METADATA_FIELDS = ("metadata.name", "metadata.namespace")


class _Refused(Exception):
    """The server's message about a requirement."""


def read_label_selector(text: str) -> LabelSelector:
    """Parse the label selector of a request.

    Raises:
        StatusError: 400.
    """
    return LabelSelector(tuple(_Labels(text).requirements()))


def read_field_selector(text: str) -> FieldSelector:
    """Parse the field selector of a request; it may name unknown fields.

    Raises:
        StatusError: 400.
    """
    found = []
    for term in sorted(re.findall(r"(?:\\.?|[^,\\])+", text, re.DOTALL)):
        operator = _FIELD_OPERATOR.search(term)
        if operator is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        value = _unescaped(term[operator.end() :])
        found.append(FieldRequirement(term[: operator.start()], value, operator.group() == "!="))
    return FieldSelector(tuple(found))


class _Labels:
    """Iterate over the tokens of a label selector; "" follows the last."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def requirements(self) -> list[LabelRequirement]:
        found: list[LabelRequirement] = []
        while token := self._peek():
            if token in _SIGNS and token != "!":
                raise bad_request(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except _Refused as refused:
                raise bad_request(f"unable to parse requirement: {refused}") from None
            behind = self._take()
            if not behind:
                break
            if behind != ",":
                raise bad_request(f"found '{behind}', expected: ',' or 'end of string'")
            if (token := self._peek()) in _SIGNS and token != "!":
                raise bad_request(f"found '{token}', expected: identifier after ','")
        return found

    def _requirement(self) -> LabelRequirement:
        absent = self._peek() == "!"
        if absent:
            self._next += 1
        name = self._take()
        if name in _SIGNS:
            raise _Refused(f"found '{name}', expected: identifier")
        if faults := label_name_faults(name):
            raise _Refused(f"<nil>: Invalid value: {quoted(name)}: {'; '.join(faults)}")
        if absent:
            return LabelRequirement(name, Operator.DOES_NOT_EXIST)
        if self._peek() in ("", ","):
            return LabelRequirement(name, Operator.EXISTS)
        sign = self._take()
        operator = _OPERATORS.get(sign)
        if operator is None:
            raise _Refused(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if operator in _SETS else [self._value()]
        if refused := _value_faults(name, operator, sorted(set(values))):
            raise _Refused(refused[0] if len(refused) == 1 else f"[{', '.join(refused)}]")
        return LabelRequirement(name, operator, tuple(values))

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._take()
        if value in _SIGNS:
            raise _Refused(f"found '{value}', expected: identifier")
        return value

    def _values(self) -> list[str]:
        sign = self._take()
        if sign != "(":
            raise _Refused(f"found '{sign}' expected: '('")
        if self._peek() == ")":
            self._next += 1
            return [""]
        if (token := self._peek()) in _SIGNS and token != ",":
            raise _Refused(f"found '{token}', expected: ',', ')' or identifier")
        values: list[str] = []
        while True:
            token = self._take()
            if token not in _SIGNS:
                values.append(token)
                if self._peek() not in (",", ")"):
                    raise _Refused(f"found '{self._peek()}', expected: ',' or ')'")
            elif token == ",":
                if not values or self._peek() in (",", ")"):
                    values.append("")
            else:
                raise _Refused(f"found '{token}', expected: ',', or identifier")
            if self._peek() == ")":
                self._next += 1
                return values

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token


def _value_faults(name: str, operator: Operator, values: list[str]) -> list[str]:
    found = []
    if operator in _ORDERS and not (re.fullmatch("[+-]?[0-9]+", values[0]) and int(values[0]) in _INT64):
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        found.append(f"values[0]: Invalid value: {quoted(values[0])}: {why}")
    for index, value in enumerate(values):
        if faults := label_value_faults(value):
            found.append(f"values[{index}][{name}]: Invalid value: {quoted(value)}: {'; '.join(faults)}")
    return found


def _unescaped(value: str) -> str:
    pieces = []
    signs = iter(value)
    for sign in signs:
        if sign == "\\":
            sign = next(signs, "")
            if sign not in ("\\", ",", "="):
                raise _bad_field(f"invalid escape sequence: \\{sign}")
        elif sign == "=":
            raise _bad_field(f"unescaped character in value: {ord(sign)}")
        pieces.append(sign)
    return "".join(pieces)


def _bad_field(why: str) -> StatusError:
    return bad_request(f"invalid field selector: {why}")


def selectable_fields(resource: Resource[Any]) -> tuple[str, ...]:
    """Return the selectable fields of a built-in resource beyond name and namespace, as in `Record.fields`."""
    return _FIELDS.get(resource.group_resource, ())


def field_values(obj: Mapping[str, Any], fields: Sequence[str]) -> tuple[str, ...]:
    """Return the values of these fields as selectors compare them: strings, "" if absent, booleans in lower case."""
    return tuple([_text(obj, name) for name in fields])


@cache
def _paths(name: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(path.split(".")) for path in _ELSEWHERE.get(name, (name,)))


def _text(obj: Mapping[str, Any], name: str) -> str:
    for path in _paths(name):
        value: Any = obj
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is not None and value != "":
            return str(value)
    return _ZERO.get(name, "")
