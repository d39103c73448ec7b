"""Validation of probes and lifecycle hooks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import format_causes, non_negative, one_of, required
from aioinformer.testing.api.addresses import port_faults, target_port_faults
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_SCHEMES = ("HTTP", "HTTPS")
_HEADER = "[-A-Za-z0-9]+"
_INVALID_HEADER = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
    f"validation is '{_HEADER}')"
)
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def probe_causes(container: Part, path: str) -> Iterator[Cause]:
    """Check the probes of a container.

    Args:
        path: of the container.
    """
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is None:
            continue
        here, grace = f"{path}.{name}", probe.get("terminationGracePeriodSeconds")
        yield from _handler(probe, here, _PROBE_HANDLERS, None)
        for field in _COUNTS:
            yield from non_negative(probe.get(field), f"{here}.{field}")
        if grace is not None and grace <= 0:
            yield Cause.invalid(f"{here}.terminationGracePeriodSeconds", str(grace), "must be greater than 0")
        if name == "readinessProbe" and grace is not None:
            why = "must not be set for readinessProbes"
            yield Cause.invalid(f"{here}.terminationGracePeriodSeconds", str(grace), why)
        elif name != "readinessProbe" and (threshold := probe.get("successThreshold", 1)) != 1:
            yield Cause.invalid(f"{here}.successThreshold", str(threshold), "must be 1")


def lifecycle_causes(container: Part, path: str, spec: Part) -> Iterator[Cause]:
    """Check the lifecycle hooks of a container.

    Args:
        path: of the container.
        spec: of its pod.
    """
    lifecycle = container.get("lifecycle") or {}
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            grace = spec.get("terminationGracePeriodSeconds")
            yield from _handler(lifecycle[hook], f"{path}.lifecycle.{hook}", _HOOK_HANDLERS, grace)


def _handler(handler: Part, path: str, kinds: Sequence[str], grace: int | None) -> Iterator[Cause]:
    found = [kind for kind in kinds if handler.get(kind) is not None]
    if not found:
        yield Cause.required(path, "must specify a handler type")
        return
    first, *others = found
    action, here = handler[first], f"{path}.{first}"
    if first == "exec":
        yield from required(action, here, "command")
    elif first == "httpGet":
        yield from _request(action, here)
    elif first == "tcpSocket":
        yield from _port(action, here)
    elif first == "grpc":
        number = action.get("port", 0)
        yield from (Cause.invalid(f"{here}.port", str(number), why) for why in port_faults(number))
    elif grace is not None and not 0 <= action.get("seconds", 0) <= grace:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield Cause.invalid(here, str(action.get("seconds", 0)), why)
    for kind in others:
        yield Cause.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")


def _request(request: Part, path: str) -> Iterator[Cause]:
    yield from required(request, path, "path")
    yield from _port(request, path)
    yield from one_of(request.get("scheme", ""), f"{path}.scheme", _SCHEMES)
    for header in request.get("httpHeaders") or ():
        yield from format_causes(header.get("name", ""), f"{path}.httpHeaders", _header_faults)


def _port(action: Part, path: str) -> Iterator[Cause]:
    port = action.get("port", 0)
    yield from (Cause.invalid(f"{path}.port", quote(port), why) for why in target_port_faults(port))


def _header_faults(name: str) -> list[str]:
    return [] if re.fullmatch(_HEADER, name) else [_INVALID_HEADER]
