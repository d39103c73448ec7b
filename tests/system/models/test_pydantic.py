"""pydantic and FastAPI: objects as results of endpoints, as fields of models, and as bodies of requests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import pydantic
import pytest
from fastapi import Body, FastAPI, Response

from aioinformer import ListWatch, Resource, SharedIndexInformer, to_json
from aioinformer.models import ObjectMeta, core_v1
from aioinformer.resources import BUILTIN_RESOURCES
from tests.support.view_samples import stored_as

PODS: Resource[Any] = next(each for each in BUILTIN_RESOURCES if each.gvr == "v1/pods")
WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": {"cpu": "100m"}}}]},
}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"sizes": [1, {"a": 2}]}}


def view(document: dict[str, Any], resource: Resource[Any] = PODS) -> Any:
    return stored_as(document, resource)


class NoRequests:
    async def request(self, request: Any) -> Any:
        raise AssertionError("the informer is not started")


def listed() -> list[core_v1.Pod]:
    """Return the result of a lister."""
    informer: SharedIndexInformer[core_v1.Pod] = SharedIndexInformer(ListWatch(NoRequests(), PODS))
    informer.get_indexer().add(view(POD))
    return informer.get_indexer().list()


app = FastAPI()

#: The results of endpoints, and the annotations of these.
ENDPOINTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "/bare": (lambda: view(POD), None),
    "/annotated": (lambda: view(POD), core_v1.Pod),
    "/list": (listed, list[core_v1.Pod]),
    "/sequence": (lambda: tuple(listed()), Sequence[core_v1.Pod]),
    "/bare-list": (listed, None),
    "/bytes": (lambda: Response(to_json(listed()), media_type="application/json"), Response),
    "/nested": (lambda: {"pod": view(POD), "metadata": view(POD).metadata, "spec": view(POD).spec}, None),
    "/spec": (lambda: view(POD).spec, core_v1.PodSpec),
    "/metadata": (lambda: view(POD).metadata, ObjectMeta),
    "/widget": (lambda: view(WIDGET, WIDGETS), None),
    "/mapping": (lambda: view(WIDGET, WIDGETS), Mapping[str, Any]),
}


def add_endpoint(path: str, result: Callable[[], Any], kind: Any) -> None:
    def endpoint():  # type: ignore[no-untyped-def]
        return result()

    endpoint.__annotations__ = {} if kind is None else {"return": kind}
    app.get(path)(endpoint)


for _path, (_result, _kind) in ENDPOINTS.items():
    add_endpoint(_path, _result, _kind)


@app.get("/model", response_model=core_v1.Pod)
async def model() -> Any:
    return view(POD)


@app.post("/node")
def node_of(pod: Annotated[core_v1.Pod, Body()]) -> str | None:
    return pod.spec.node_name if pod.spec is not None else None


async def send(method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a request to the application, and return status and JSON of its response."""
    status, received = 0, b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def respond(message: Any) -> None:
        nonlocal status, received
        status, received = message.get("status", status), received + message.get("body", b"")

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    await app(scope, receive, respond)
    return status, json.loads(received)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/bare", POD),
        ("/annotated", POD),
        ("/model", POD),
        ("/list", [POD]),
        ("/sequence", [POD]),
        ("/bare-list", [POD]),
        ("/bytes", [POD]),
        ("/nested", {"pod": POD, "metadata": POD["metadata"], "spec": POD["spec"]}),
        ("/spec", POD["spec"]),
        ("/metadata", POD["metadata"]),
        ("/widget", WIDGET),
        ("/mapping", WIDGET),
    ],
)
async def test_endpoint_returns_objects_as_json(path: str, expected: Any) -> None:
    assert await send("GET", path) == (200, expected)


async def test_request_body_may_be_an_object() -> None:
    assert await send("POST", "/node", POD) == (200, "n1")


@pytest.mark.parametrize("body", [{**POD, "spec": {"nodeName": 3}}, {"spec": {}}, [POD], 3])
async def test_request_body_that_is_no_object_is_refused(body: Any) -> None:
    status, answer = await send("POST", "/node", body)
    assert (status, answer["detail"][0]["type"]) == (422, "value_error")


async def test_openapi_document_describes_the_types() -> None:
    status, document = await send("GET", "/openapi.json")
    [schema] = document["paths"]["/annotated"]["get"]["responses"]["200"]["content"].values()
    assert (status, schema["schema"]["type"]) == (200, "object")


class Report(pydantic.BaseModel):
    pod: core_v1.Pod
    specs: list[core_v1.PodSpec]


def test_models_may_have_objects_as_fields() -> None:
    pod = view(POD)
    report = Report(pod=pod, specs=[pod.spec])
    assert report.pod is pod
    assert json.loads(report.model_dump_json()) == {"pod": POD, "specs": [POD["spec"]]}
    again = Report.model_validate_json(report.model_dump_json())
    assert isinstance(again.pod, core_v1.Pod)
    assert again.pod.spec == pod.spec
    assert again.specs == [pod.spec]


def test_model_refuses_something_else() -> None:
    with pytest.raises(pydantic.ValidationError, match="expected Pod, or a mapping"):
        Report(pod="a", specs=[])  # type: ignore[arg-type]


def test_pydantic_is_not_imported() -> None:
    program = (
        "import sys; from aioinformer.models import core_v1; core_v1.Pod; sys.exit('pydantic_core' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
