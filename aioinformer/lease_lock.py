"""The Lease on the server: reads and conditional writes, each bounded in time (LE-10)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.errors import AioinformerError, TransportError
from aioinformer.exchange import exchange
from aioinformer.lease import CreateLease, GetLease, LeaseRequest, UpdateLease
from aioinformer.resources import Resource
from aioinformer.transport import Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.transport import Transport

LEASES: Resource[Any] = Resource("coordination.k8s.io", "v1", "leases", kind="Lease", model="V1Lease")

_HEADERS = {"Accept": "application/json", "Content-Type": "application/json"}


class LeaseLock:
    """Reads and writes one Lease.

    Args:
        transport: reaches the server.
        name: of the Lease.
        namespace: where it lives.

    Attributes:
        template: the Lease to create, without a spec.
    """

    def __init__(self, transport: Transport, name: str, namespace: str) -> None:
        self._transport = transport
        self._name = f"lease {namespace}/{name}"
        self._collection = LEASES.path(namespace)
        self._object = LEASES.path(namespace, name)
        self.template: Mapping[str, Any] = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": name, "namespace": namespace},
        }

    async def send(self, request: LeaseRequest, timeout: float) -> Mapping[str, Any] | AioinformerError:  # noqa: ASYNC109 - the answer says that it was too late
        """Sends a request; returns the Lease as the server has it now, or why not.

        Args:
            request: what to do.
            timeout: in seconds, for all of it. What was sent may come through all the same.
        """
        try:
            async with asyncio.timeout(timeout):
                return await exchange(self._transport, self._request(request, timeout), "Lease")
        except TimeoutError:
            return TransportError(f"no answer within {max(timeout, 0):g} s")
        except AioinformerError as error:
            return error

    def __str__(self) -> str:
        return self._name

    def _request(self, request: LeaseRequest, seconds: float) -> Request:
        match request:
            case GetLease():
                return Request(self._object, headers=_HEADERS, total_timeout=seconds)
            case CreateLease(lease):
                method, path = "POST", self._collection
            case UpdateLease(lease):
                method, path = "PUT", self._object
        return Request(path, method=method, headers=_HEADERS, body=msgspec.json.encode(lease), total_timeout=seconds)
