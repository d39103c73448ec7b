"""Read the built-in resources from the API classes of kubernetes_asyncio.

The URLs of the API appear only in the bodies of the API methods. Each method is therefore called once, with
placeholders as arguments, on an `ApiClient` that records the request instead of sending it.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kubernetes_asyncio.client import api as api_package
from kubernetes_asyncio.client import models as model_package

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

_COLLECTION = re.compile(r"^/(?:api|apis/(?P<group>[^/{]+))/(?P<version>v\d[a-z0-9]*)(?P<rest>/.+)$")
_MODEL_PREFIX = re.compile(r"^(?:[A-Z][a-z]+)?V\d+(?:(?:alpha|beta)\d+)?")
_VERBS = {
    ("collection", "GET"): "list",
    ("collection", "POST"): "create",
    ("collection", "DELETE"): "deletecollection",
    ("object", "GET"): "get",
    ("object", "PUT"): "update",
    ("object", "PATCH"): "patch",
    ("object", "DELETE"): "delete",
}


@dataclass
class ApiResource:
    """A resource, as the API classes describe it."""

    group: str
    version: str
    plural: str
    namespaced: bool = False
    model: str = ""
    verbs: set[str] = field(default_factory=set)
    subresources: set[str] = field(default_factory=set)

    @property
    def kind(self) -> str:
        """Return the name of the model without version, and without the group that makes it unique (`CoreV1Event`)."""
        return _MODEL_PREFIX.sub("", self.model)

    @property
    def name(self) -> str:
        """Return `group/version/plural`, or `version/plural` for the core group."""
        parts = (self.group, self.version, self.plural) if self.group else (self.version, self.plural)
        return "/".join(parts)


class _Recorder:
    """Takes the place of `ApiClient` and records requests."""

    client_side_validation = False

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str]] = []

    def call_api(self, path: str, method: str, *_: Any, response_types_map: dict[int, Any], **__: Any) -> None:
        answer = response_types_map.get(200) or response_types_map.get(201) or ""
        self.requests.append((path, method, answer))

    def select_header_accept(self, accepts: list[str]) -> str:
        return accepts[0]

    def select_header_content_type(self, content_types: list[str], *_: Any) -> str:
        return content_types[0]


def requests() -> list[tuple[str, str, str]]:
    """Return path template, HTTP method and response model of each request that the API classes can send."""
    recorder = _Recorder()
    for api_class in _classes(api_package):
        api = api_class(recorder)
        for name in dir(api):
            if name.endswith("_with_http_info"):
                method = getattr(api, name)
                method(**dict.fromkeys(_required(method), "x"))
    return recorder.requests


def _classes(package: ModuleType) -> list[Any]:
    return [value for _, value in sorted(vars(package).items()) if inspect.isclass(value)]


def _required(method: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(method).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]


def resources() -> list[ApiResource]:
    """Return the built-in resources, sorted by group, version and plural."""
    found: dict[tuple[str, str, str], ApiResource] = {}
    for path, method, answer in requests():
        match = _COLLECTION.match(path)
        if match is None:
            continue
        group, version = match["group"] or "", match["version"]
        plural, level, subresource, in_namespace = _place(match["rest"])
        resource = found.setdefault((group, version, plural), ApiResource(group, version, plural))
        resource.namespaced |= in_namespace
        if level == "subresource":
            resource.subresources.add(subresource)
            continue
        verb = _VERBS[level, method]
        resource.verbs.add(verb)
        if verb == "list":
            items = getattr(model_package, answer).openapi_types["items"]
            resource.model = items.removeprefix("list[").removesuffix("]")
        elif verb == "create" and not resource.model:
            resource.model = answer
    return [found[key] for key in sorted(found)]


def _place(path: str) -> tuple[str, str, str, bool]:
    """Parse the path after the version: plural, level, subresource, and whether it contains a namespace."""
    parts = path.strip("/").split("/")
    in_namespace = parts[:2] == ["namespaces", "{namespace}"]
    if in_namespace:
        parts = parts[2:]
    if len(parts) > 2:
        return parts[0], "subresource", parts[2], in_namespace
    return parts[0], "object" if len(parts) == 2 else "collection", "", in_namespace


def shapes() -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """Yield name, attribute types and wire names of each model, sorted by name."""
    for model in _classes(model_package):
        yield model.__name__, model.openapi_types, model.attribute_map
