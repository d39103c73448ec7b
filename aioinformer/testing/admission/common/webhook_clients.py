"""Validation of webhook client configurations and review versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aioinformer.testing.api.addresses import port_faults
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import letter_label_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REVIEW_VERSIONS = ("v1", "v1beta1")
_URL_FORM = "; desired format: https://host[/path]"


def review_version_causes(versions: Sequence[str], path: str, needed: str = "") -> Iterator[Cause]:
    """Yield what is wrong with the review versions of a webhook.

    Args:
        versions: the versions.
        path: of the field.
        needed: the message if there are none.
    """
    if not versions:
        yield Cause.required(path, needed)
        return
    for index, version in enumerate(versions):
        again = version in versions[:index]
        for why in ["duplicate version"] if again else letter_label_faults(version):
            yield Cause.invalid(f"{path}[{index}]", quote(version), why)
    if not set(REVIEW_VERSIONS).intersection(versions):
        yield Cause.invalid(path, quote(versions), f"must include at least one of {', '.join(REVIEW_VERSIONS)}")


def client_causes(client: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield what is wrong with the address of a webhook: a URL or a service."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield Cause.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_causes(url, f"{path}.url")
    elif service is not None:
        yield from _service_causes(service, f"{path}.service")


def _url_causes(url: str, path: str) -> Iterator[Cause]:
    try:
        parts = urlsplit(url)
    except ValueError:
        yield Cause.required(path, f"url must be a valid URL: parse {quote(url)}: missing ']' in host{_URL_FORM}")
        return
    user, at, host = parts.netloc.rpartition("@")
    for wrong, value, why in (
        (parts.scheme != "https", parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"),
        (not host, host, f"host must be specified{_URL_FORM}"),
        (at, user, "user information is not permitted in the URL"),
        (parts.fragment, parts.fragment, "fragments are not permitted in the URL"),
        (parts.query, parts.query, "query parameters are not permitted in the URL"),
    ):
        if wrong:
            yield Cause.invalid(path, quote(value), why)


def _service_causes(service: Mapping[str, Any], path: str) -> Iterator[Cause]:
    # The API reports a missing namespace as a missing name, and the reverse.
    for field, other in (("name", "namespace"), ("namespace", "name")):
        if not service.get(other):
            yield Cause.required(f"{path}.{field}")
    port = service.get("port", 443)
    yield from (Cause.invalid(f"{path}.port", str(port), f"port is not valid: {why}") for why in port_faults(port))
    yield from _path_causes(service.get("path") or "", f"{path}.path")


def _path_causes(text: str, path: str) -> Iterator[Cause]:
    if text in ("", "/"):
        return
    if text == "//":
        yield Cause.invalid(path, quote(text), "segment[0] may not be empty")
        return
    if not text.startswith("/"):
        yield Cause.invalid(path, quote(text), "must start with a '/'")
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        faults = [f": {fault}" for fault in subdomain_faults(step)] if step else [" may not be empty"]
        yield from (Cause.invalid(path, quote(text), f"segment[{index}]{fault}") for fault in faults)
