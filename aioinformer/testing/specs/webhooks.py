"""What must be true of configurations of admission webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import letter_label_faults, subdomain_faults
from aioinformer.testing.specs.admission_rules import FAILURE_POLICIES, MATCH_POLICIES, condition_causes, rule_causes
from aioinformer.testing.specs.parts import duplicate, one_of, required, selector_causes, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_REINVOCATIONS = ("IfNeeded", "Never")
_VERSIONS = ("v1", "v1beta1")
_LONGEST_TIMEOUT = 30
_LARGEST_PORT = 65535
_LEAST_PARTS = 3
_URL_FORM = "; desired format: https://host[/path]"


def webhooks(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    hooks = obj.get("webhooks") or ()
    for index, hook in enumerate(hooks):
        path, name = f"webhooks[{index}]", hook.get("name") or ""
        yield from _hook_causes(hook, path)
        yield from _version_causes(hook.get("admissionReviewVersions") or (), f"{path}.admissionReviewVersions")
        if name and any(each.get("name") == name for each in hooks[:index]):
            yield duplicate(name, f"{path}.name")


def _hook_causes(hook: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from _name_causes(hook.get("name") or "", f"{path}.name")
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from rule_causes(rule, f"{path}.rules[{index}]")
    yield from one_of(hook.get("failurePolicy"), f"{path}.failurePolicy", FAILURE_POLICIES)
    yield from one_of(hook.get("matchPolicy"), f"{path}.matchPolicy", MATCH_POLICIES)
    if (effects := hook.get("sideEffects")) is None:
        yield Cause.required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    else:
        yield from one_of(effects, f"{path}.sideEffects", _SIDE_EFFECTS)
    if not 1 <= (timeout := hook.get("timeoutSeconds", 1)) <= _LONGEST_TIMEOUT:
        why = f"the timeout value must be between 1 and {_LONGEST_TIMEOUT} seconds"
        yield Cause.invalid(f"{path}.timeoutSeconds", str(timeout), why)
    for field in ("namespaceSelector", "objectSelector"):
        yield from selector_causes(hook.get(field) or {}, f"{path}.{field}")
    if (again := hook.get("reinvocationPolicy")) is not None:
        yield from one_of(again, f"{path}.reinvocationPolicy", _REINVOCATIONS)
    yield from client_causes(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from condition_causes(hook.get("matchConditions") or (), f"{path}.matchConditions")


def _name_causes(name: str, path: str) -> Iterator[Cause]:
    if not name:
        yield Cause.required(path)
    elif faults := subdomain_faults(name):
        yield Cause.invalid(path, shown(name), ",".join(faults))
    elif name.count(".") < _LEAST_PARTS - 1:
        yield Cause.invalid(path, shown(name), "should be a domain with at least three segments separated by dots")


def _version_causes(versions: Sequence[str], path: str) -> Iterator[Cause]:
    if not versions:
        yield Cause.required(path, f"must specify one of {', '.join(_VERSIONS)}")
        return
    for index, version in enumerate(versions):
        again = version in versions[:index]
        for why in ["duplicate version"] if again else letter_label_faults(version):
            yield Cause.invalid(f"{path}[{index}]", shown(version), why)
    if not set(_VERSIONS).intersection(versions):
        yield Cause.invalid(path, shown(versions), f"must include at least one of {', '.join(_VERSIONS)}")


def client_causes(client: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with the place where a webhook is: an address or a service."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield Cause.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_causes(url, f"{path}.url")
    elif service is not None:
        yield from _service_causes(service, f"{path}.service")


def _url_causes(url: str, path: str) -> Iterator[Cause]:
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    for wrong, value, why in (
        (parts.scheme != "https", parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"),
        (not host, host, f"host must be specified{_URL_FORM}"),
        (at, user, "user information is not permitted in the URL"),
        (parts.fragment, parts.fragment, "fragments are not permitted in the URL"),
        (parts.query, parts.query, "query parameters are not permitted in the URL"),
    ):
        if wrong:
            yield Cause.invalid(path, shown(value), why)


def _service_causes(service: Mapping[str, Any], path: str) -> Iterator[Cause]:
    # Who asks takes one for the other.
    yield from required({"name": service.get("namespace"), "namespace": service.get("name")}, path, "name", "namespace")
    if not 1 <= (port := service.get("port", 443)) <= _LARGEST_PORT:
        why = f"port is not valid: must be between 1 and {_LARGEST_PORT}, inclusive"
        yield Cause.invalid(f"{path}.port", str(port), why)
    yield from _path_causes(service.get("path") or "", f"{path}.path")


def _path_causes(text: str, path: str) -> Iterator[Cause]:
    if text in ("", "/"):
        return
    if text == "//":
        yield Cause.invalid(path, shown(text), "segment[0] may not be empty")
        return
    if not text.startswith("/"):
        yield Cause.invalid(path, shown(text), "must start with a '/'")
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        faults = [f": {fault}" for fault in subdomain_faults(step)] if step else [" may not be empty"]
        yield from (Cause.invalid(path, shown(text), f"segment[{index}]{fault}") for fault in faults)
