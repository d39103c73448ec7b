"""Validation of resource claims, device classes and resource slices.

Devices are checked for unique, valid names; their attributes, capacities and counters are not checked. Selectors in CEL
are answered with 501, as this server does not compile them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.extension.admission_rules import not_compiled
from aioinformer.testing.admission.specs.pods.placement import EFFECTS
from aioinformer.testing.admission.specs.storage.volume_sources import driver_name
from aioinformer.testing.admission.specs.terms.go_structs import go_struct
from aioinformer.testing.admission.specs.terms.node_selectors import node_selector_causes
from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, immutable, one_of, required
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, labelling_causes, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_MODES = ("All", "ExactCount")
_ONE_REQUEST_FORM = "exactly one of `exactly` or `firstAvailable` is required"
_UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_MOST_REQUESTS = 32
_MOST_ALTERNATIVES = 8
_MOST_DEVICES = 128
_LONGEST_POOL = 253
_NODE_FIELDS = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_NODE_FIELD = f"exactly one of {', '.join(f'`{name}`' for name in _NODE_FIELDS)} is required"
_OPAQUE = ({"Driver": "", "Parameters": None},)
_SELECTOR = {"CEL": ({"Expression": ""},)}
_DEVICE_REQUEST = {
    "DeviceClassName": "",
    "Selectors": [_SELECTOR],
    "AllocationMode": "",
    "Count": 0,
    "AdminAccess": None,
    "Tolerations": None,
    "Capacity": None,
}
_SPEC = {
    "Devices": {
        "Requests": [{"Name": "", "Exactly": (_DEVICE_REQUEST,), "FirstAvailable": None}],
        "Constraints": [{"Requests": None, "MatchAttribute": None, "DistinctAttribute": None}],
        "Config": [{"Requests": None, "Opaque": _OPAQUE}],
    }
}


def resource_claim(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if old is None:
        yield from _claim_causes(spec, "spec")
    elif spec != (old.get("spec") or {}):
        yield Cause.invalid("spec", quote(go_struct(spec, _SPEC)), "field is immutable")


def resource_claim_template(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if old is None:
        yield from labelling_causes(spec.get("metadata") or {}, "spec.metadata")
        yield from _claim_causes(spec.get("spec") or {}, "spec.spec")
    elif spec != (old.get("spec") or {}):
        quoted = {**(spec.get("metadata") or {}), "Spec": go_struct(spec.get("spec"), _SPEC)}
        yield Cause.invalid("spec", quote(quoted), "field is immutable")


def _claim_causes(spec: Part, path: str) -> Iterator[Cause]:
    devices, here = spec.get("devices") or {}, f"{path}.devices"
    requests = devices.get("requests") or ()
    yield from _named_items(requests, f"{here}.requests", _MOST_REQUESTS, _request_causes)
    names = {
        request.get("name", ""): {each.get("name", "") for each in request.get("firstAvailable") or ()}
        for request in requests
    }
    for index, constraint in enumerate(devices.get("constraints") or ()):
        yield from _constraint_causes(constraint, f"{here}.constraints[{index}]", names)
    for index, config in enumerate(devices.get("config") or ()):
        yield from _name_causes(config.get("requests") or (), f"{here}.config[{index}].requests", names)
        yield from _config_causes(config, f"{here}.config[{index}]")


def _named_items(
    items: Sequence[Part], path: str, most: int, check: Callable[[Part, str], Iterable[Cause]]
) -> Iterator[Cause]:
    if len(items) > most:
        yield Cause.too_many(path, len(items), most)
        return
    for index, item in enumerate(items):
        yield from check(item, f"{path}[{index}]")
    names = [item.get("name") or "" for item in items]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield duplicate(name, f"{path}[{index}]")


def _request_causes(request: Part, path: str) -> Iterator[Cause]:
    yield from format_causes(request.get("name") or "", f"{path}.name", label_faults)
    exact, alternatives = request.get("exactly"), request.get("firstAvailable") or ()
    if exact is None and not alternatives:
        yield Cause.required(path, _ONE_REQUEST_FORM)
    elif exact is not None and alternatives:
        yield Cause.invalid(path, "null", f"{_ONE_REQUEST_FORM}, but multiple fields are set")
    elif alternatives:
        yield from _named_items(alternatives, f"{path}.firstAvailable", _MOST_ALTERNATIVES, _alternative_causes)
    else:
        yield from _device_request_causes(exact or {}, f"{path}.exactly")


def _alternative_causes(alternative: Part, path: str) -> Iterator[Cause]:
    yield from format_causes(alternative.get("name") or "", f"{path}.name", label_faults)
    yield from _device_request_causes(alternative, path)


def _device_request_causes(wanted: Part, path: str) -> Iterator[Cause]:
    yield from required(wanted, path, "deviceClassName")
    if name := wanted.get("deviceClassName"):
        yield from format_causes(name, f"{path}.deviceClassName", subdomain_faults)
    yield from _selector_causes(wanted.get("selectors") or (), f"{path}.selectors")
    mode, count = wanted.get("allocationMode"), wanted.get("count") or 0
    if mode == "All" and count:
        yield Cause.invalid(f"{path}.count", str(count), "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        yield Cause.invalid(f"{path}.count", str(count), "must be greater than zero")
    yield from one_of(mode, f"{path}.allocationMode", _MODES)
    for index, toleration in enumerate(wanted.get("tolerations") or ()):
        if effect := toleration.get("effect"):
            yield from one_of(effect, f"{path}.tolerations[{index}].effect", EFFECTS)


def _selector_causes(selectors: Sequence[Part], path: str) -> Iterator[Cause]:
    for index, selector in enumerate(selectors):
        if selector.get("cel") is None:
            yield Cause.required(f"{path}[{index}].cel")
        else:
            raise not_compiled(f"{path}[{index}].cel.expression")


def _constraint_causes(constraint: Part, path: str, names: Mapping[str, set[str]]) -> Iterator[Cause]:
    yield from _name_causes(constraint.get("requests") or (), f"{path}.requests", names)
    if constraint.get("matchAttribute") is None and constraint.get("distinctAttribute") is None:
        either = 'exactly one of "matchAttribute" or "distinctAttribute" is required'
        yield Cause.required(path, f"{either}, but multiple fields are set")


def _name_causes(requests: Sequence[str], path: str, names: Mapping[str, set[str]]) -> Iterator[Cause]:
    for index, name in enumerate(requests):
        here = f"{path}[{index}]"
        request, slash, alternative = name.partition("/")
        if "/" in alternative:
            yield Cause.invalid(here, quote(name), _UNKNOWN_REQUEST)
            continue
        for part in (request, alternative) if slash else (request,):
            yield from format_causes(part, here, label_faults)
        if request not in names or (slash and alternative not in names[request]):
            yield Cause.invalid(here, quote(name), _UNKNOWN_REQUEST)
    for index, name in enumerate(requests):
        if name in requests[:index]:
            yield duplicate(name, f"{path}[{index}]")


def _config_causes(config: Part, path: str) -> Iterator[Cause]:
    opaque = config.get("opaque")
    if opaque is None:
        yield Cause.required(f"{path}.opaque")
        return
    yield from driver_name(opaque.get("driver") or "", f"{path}.opaque.driver")
    parameters = opaque.get("parameters")
    if parameters is None:
        yield Cause.required(f"{path}.opaque.parameters")
    elif not isinstance(parameters, dict):
        yield Cause.invalid(f"{path}.opaque.parameters", "<value omitted>", "parameters must be a valid JSON object")


def device_class(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _selector_causes(spec.get("selectors") or (), "spec.selectors")
    for index, config in enumerate(spec.get("config") or ()):
        yield from _config_causes(config, f"spec.config[{index}]")


def resource_slice(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from driver_name(spec.get("driver") or "", "spec.driver")
    yield from _pool_causes(spec.get("pool") or {}, "spec.pool")
    if old is not None:
        former = old.get("spec") or {}
        yield from immutable(spec["pool"].get("name"), (former.get("pool") or {}).get("name"), "spec.pool.name")
        for field in ("driver", "nodeName"):
            yield from immutable(spec.get(field), former.get(field), f"spec.{field}")
    yield from _node_field_causes(spec)
    yield from _named_items(spec.get("devices") or (), "spec.devices", _MOST_DEVICES, _device_causes)


def _device_causes(device: Part, path: str) -> Iterator[Cause]:
    return format_causes(device.get("name") or "", f"{path}.name", label_faults)


def _pool_causes(pool: Part, path: str) -> Iterator[Cause]:
    name, generation, count = pool.get("name") or "", pool.get("generation") or 0, pool.get("resourceSliceCount") or 0
    if not name:
        yield Cause.required(f"{path}.name")
    elif len(name) > _LONGEST_POOL:
        yield Cause.too_long(f"{path}.name", _LONGEST_POOL)
    for part in name.split("/") if name else ():
        yield from format_causes(part, f"{path}.name", subdomain_faults)
    if count <= 0:
        yield Cause.invalid(f"{path}.resourceSliceCount", str(count), "must be greater than zero")
    if generation < 0:
        yield Cause.invalid(f"{path}.generation", str(generation), "must be greater than or equal to zero")


def _node_field_causes(spec: Part) -> Iterator[Cause]:
    node_fields = [f"`{name}`" for name in _NODE_FIELDS if spec.get(name) not in (None, "", False)]
    if (node := spec.get("nodeName")) is not None:
        if node:
            yield from format_causes(node, "spec.nodeName", subdomain_faults)
        else:
            yield Cause.invalid("spec.nodeName", '""', "must be either unset or set to a non-empty string")
    if (selector := spec.get("nodeSelector")) is not None:
        yield from node_selector_causes(selector, "spec.nodeSelector")
    for field in _NODE_FIELDS[2:]:
        if spec.get(field) is False:
            yield Cause.invalid(f"spec.{field}", "false", "must be either unset or set to true")
    if not node_fields:
        yield Cause.required("spec", _ONE_NODE_FIELD)
    elif len(node_fields) > 1:
        value = quote(f"{{{', '.join(node_fields)}}}")
        yield Cause.invalid("spec", value, f"{_ONE_NODE_FIELD}, but multiple fields are set")
