"""Cluster IPs and node ports of services.

Each cluster IP and each node port belongs to one service: an IP in the range of the cluster, a node port for each port
that needs one, and one for health checks of some load balancers. A service gets what it requests if that is free.
Other values depend on its name, so that the same objects get the same values each time.

The cluster is IPv4 only, as most are. Code in the server's own process and the manifests that it loads may have
addresses and ports of other clusters, which are accepted unchanged.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.admission.specs.network.service_updates import (
    carry_over,
    drop_unneeded,
    gets_node_ports,
    name_addresses,
)
from aioinformer.testing.admission.specs.network.services import address_causes, is_headless, needs_health_check
from aioinformer.testing.api import statuses
from aioinformer.testing.api.addresses import address_of, family_of
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.api.statuses import Cause, StatusError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.object_store import ObjectStore
    from aioinformer.testing.state.storage import Record

_RANGE = ipaddress.ip_network("10.0.0.0/16")
_PORTS = range(30000, 32768)
_FAMILY = "IPv4"
_FAMILIES = ("IPv4", "IPv6")
_AT_ONCE = 1000
_TAKEN = "already allocated"


class ServiceNetwork:
    """Allocate addresses and ports to services.

    Args:
        store: the objects of the server.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._position = -1
        self._used: Counter[str | int] = Counter()

    def settle(
        self,
        served: Served,
        obj: dict[str, Any],
        old: Mapping[str, Any] | None,
        *,
        name: str,
        dry_run: bool,
        whole: bool,
    ) -> None:
        """Set the addresses and ports of a service.

        Args:
            served: the resource of services.
            obj: the service with its defaults; is changed.
            old: the service that it replaces.
            name: of the service.
            dry_run: reserve nothing, and do not check ports.
            whole: refuse values that this cluster does not have.

        Raises:
            StatusError: 422, a requested value is not available; 500, no value is left.
        """
        spec, before = obj["spec"], {} if old is None else old["spec"]
        if old is None:
            name_addresses(spec)
        else:
            carry_over(spec, before)
        if causes := list(_settle_families(spec, old)):
            raise statuses.invalid_object(served.resource, name, causes)
        self._catch_up(served)
        own = Counter(_held(before))
        key = f"{obj['metadata'].get('namespace', '')}/{name}"
        try:
            self._give_address(spec, key, own, strict=whole)
            self._give_ports(spec, key, own, _Limits(none=not whole, own_only=dry_run))
        except _RefusedError as error:
            raise statuses.invalid_object(served.resource, name, [error.cause]) from None
        if old is not None:
            drop_unneeded(spec, before)

    def _give_address(self, spec: dict[str, Any], key: str, own: Counter[str | int], *, strict: bool) -> None:
        if spec["type"] == "ExternalName" or is_headless(spec):
            return
        asked = spec.get("clusterIP")
        if not asked:
            free = (str(_RANGE[number]) for number in _around(key, range(1, _RANGE.num_addresses - 1)))
            spec["clusterIP"] = next((address for address in free if not self._used[address]), "")
            if not spec["clusterIP"]:
                raise _nothing_left("serviceIP")
            spec["clusterIPs"] = [spec["clusterIP"], *(spec.get("clusterIPs") or ())[1:]]
        elif strict and not own[asked]:
            why = "the provided network does not match the current range"
            if address_of(asked) in _RANGE:
                why = f"provided IP is {_TAKEN}" if self._used[asked] else ""
            if why:
                said = quote(spec["clusterIPs"])
                cause = Cause.invalid("spec.clusterIPs", said, f"failed to allocate IP {asked}: {why}")
                raise _RefusedError(cause)

    def _give_ports(self, spec: dict[str, Any], key: str, own: Counter[str | int], limits: _Limits) -> None:
        taken: set[int] = set()
        if spec["type"] in ("LoadBalancer", "NodePort"):
            ports = spec.get("ports") or ()
            asked = {port["port"]: port["nodePort"] for port in reversed(ports) if port.get("nodePort")}
            given: dict[int, int] = {}
            for index, port in enumerate(ports):
                number = port.get("nodePort") or 0
                if not number and not gets_node_ports(spec):
                    continue
                # The protocols of one port share a node port.
                if number in (0, given.get(port["port"])):
                    number = given.get(port["port"]) or asked.get(port["port"], 0)
                if not number:
                    number = self._free_port(f"{key}/{index}", taken)
                elif number != given.get(port["port"]) and (why := self._refusal(number, own, taken, limits)):
                    raise _RefusedError(Cause.invalid(f"spec.ports[{index}].nodePort", str(number), why))
                port["nodePort"] = number
                given.setdefault(port["port"], number)
                taken.add(number)
        if needs_health_check(spec):
            number = spec.get("healthCheckNodePort") or 0
            if number and (why := self._refusal(number, own, taken, limits)):
                raise _internal(f"failed to allocate requested HealthCheck NodePort {number}: {why}")
            spec["healthCheckNodePort"] = number or self._free_port(key, taken)

    def _refusal(self, number: int, own: Counter[str | int], taken: set[int], limits: _Limits) -> str:
        """Return why a service cannot have the port that it requests; "" if it can."""
        if limits.none or own[number]:
            return ""
        if number in taken or (self._used[number] and not limits.own_only):
            return f"provided port is {_TAKEN}"
        if limits.own_only or number in _PORTS:
            return ""
        valid = f"{_PORTS.start}-{_PORTS.stop - 1}"
        return f"provided port is not in the valid range. The range of valid ports is {valid}"

    def _free_port(self, key: str, taken: set[int]) -> int:
        found = next((number for number in _around(key, _PORTS) if not self._used[number] and number not in taken), 0)
        if not found:
            raise _nothing_left("nodePort")
        return found

    def _catch_up(self, served: Served) -> None:
        """Apply all changes of services since the last call."""
        collection = self._store.collection(served)
        if self._position < 0 or collection.changes(self._position, 1) is None:
            self._used.clear()
            for record in collection.records():
                self._used.update(_held_by(record))
            self._position = collection.position
        while changes := collection.changes(self._position, _AT_ONCE):
            self._position += len(changes)
            for change in changes:
                if change.previous is not None:
                    self._used.subtract(_held_by(change.previous))
                if change.type != "DELETED":
                    self._used.update(_held_by(change.record))


class _Limits(NamedTuple):
    """The values that a service may request.

    Attributes:
        none: any values.
        own_only: any values, each once.
    """

    none: bool
    own_only: bool


class _RefusedError(Exception):
    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.message)
        self.cause = cause


def _settle_families(spec: dict[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Set the IP families, and yield what is wrong with them."""
    if spec["type"] == "ExternalName":
        return
    before = {} if old is None else old["spec"]
    selectorless = spec.get("clusterIP") == "None" and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        default = "RequireDualStack" if selectorless else "SingleStack"
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or default
    if causes := list(address_causes(spec, old)):
        yield from causes
        return
    policy, families, addresses = spec["ipFamilyPolicy"], spec.get("ipFamilies") or [], spec.get("clusterIPs") or []
    wrong = list(_mismatched(policy, families, addresses))
    if not wrong and selectorless:
        families = families or [_FAMILY]
        if len(families) == 1 and policy != "SingleStack":
            families = [*families, *(family for family in _FAMILIES if family not in families)]
    elif not wrong:
        wrong = list(_unserved(policy, families))
        families = families or [_FAMILY]
    spec["ipFamilies"] = families
    yield from wrong


def _mismatched(policy: str, families: Sequence[str], addresses: Sequence[str]) -> Iterator[Cause]:
    for what, values in (("cluster IPs", addresses), ("IP families", families)):
        if policy == "SingleStack" and len(values) == len(_FAMILIES):
            why = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            yield Cause.invalid("spec.ipFamilyPolicy", quote(policy), why)
    for index, address in enumerate(addresses):
        family = family_of(address)
        if index >= len(families) and family not in ("", _FAMILY):
            why = f"{family} is not configured on this cluster"
            yield Cause.invalid(f"spec.clusterIPs[{index}]", quote(addresses), why)


def _unserved(policy: str, families: Sequence[str]) -> Iterator[Cause]:
    if policy == "RequireDualStack":
        why = "this cluster is not configured for dual-stack services"
        yield Cause.invalid("spec.ipFamilyPolicy", quote(policy), why)
    for index, family in enumerate(families):
        if family != _FAMILY:
            yield Cause.invalid(f"spec.ipFamilies[{index}]", quote(family), "not configured on this cluster")


def _around(key: str, numbers: range) -> Iterator[int]:
    """Yield all numbers, starting at the one that a name hashes to."""
    first = zlib.crc32(key.encode()) % len(numbers)
    yield from numbers[first:]
    yield from numbers[:first]


def _held_by(record: Record) -> list[str | int]:
    return _held(decode(record.body).get("spec") or {})


def _held(spec: Mapping[str, Any]) -> list[str | int]:
    """Yield the exclusive values of a service; the protocols of one port share a node port."""
    ports = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
    if spec.get("healthCheckNodePort"):
        ports.add(spec["healthCheckNodePort"])
    return [*(address for address in spec.get("clusterIPs") or () if address != "None"), *ports]


def _nothing_left(what: str) -> StatusError:
    return _internal(f"failed to allocate a {what}: range is full")


def _internal(why: str) -> StatusError:
    message = f"Internal error occurred: {why}"
    return StatusError(500, "InternalError", message, details={"causes": [{"message": why}]})
