"""The server in two parts: what a process loads, and what the server does without `aioinformer.testing.admission`.

Each test runs a program in a process of its own, since this one has loaded more.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

#: In a test that starts a server, fills it in its own process, lists and watches.
MOST_MODULES = 120

ADMISSION = "aioinformer.testing.admission"

WATCHED = """
import asyncio, json, sys
from aioinformer import SharedInformerFactory
from aioinformer.testing import ApiServer, make_pod, populate
from aioinformer.transport import HttpTransport

def loaded():
    return [name for name in sys.modules if name.startswith("aioinformer.testing")]

async def main():
    async with ApiServer() as server:
        await populate(server, 20)
        async with HttpTransport(server.url) as transport, SharedInformerFactory(transport) as factory:
            pods, lister = factory.core.v1.pods.informer(), factory.core.v1.pods.lister()
            await factory.wait_for_cache_sync()
            assert len(lister.list()) == 20
            read = loaded()
            server.create("configmaps", {"metadata": {"name": "settings"}})
            server.create("pods", {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}})
            await pods.wait_for("default/web")
            assert lister.namespaced("default").get("web").spec.dns_policy == "ClusterFirst"
    print(json.dumps({"read": read, "written": loaded()}))

asyncio.run(main())
"""

WITHOUT_ADMISSION = """
import asyncio, json, sys
sys.modules["aioinformer.testing.admission"] = None
import aiohttp
from aioinformer.testing import ApiServer

PODS = "/api/v1/namespaces/default/pods"
GADGETS = {
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"size": {
                "type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}}}}}],
    },
}
APPLIED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
answers = {}

async def main():
    async with ApiServer() as server, aiohttp.ClientSession(server.url) as session:
        async def ask(title, method, path, body=None, content_type="application/json", **headers):
            headers |= {"Content-Type": content_type}
            async with session.request(method, path, json=body, headers=headers) as response:
                answers[title] = response.status
                return await response.json()

        pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web"}]}, "unknown": 1}
        created = await ask("create", "POST", PODS, pod)
        assert "unknown" not in created and created["status"] == {"phase": "Pending"}, created
        await ask("create again", "POST", PODS, pod)
        await ask("create with a bad name", "POST", PODS, pod | {"metadata": {"name": "Web"}})
        await ask("get", "GET", PODS + "/web")
        labels = {"metadata": {"labels": {"app": "web"}}}
        await ask("merge patch", "PATCH", PODS + "/web", labels, "application/merge-patch+json")
        image = {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}
        await ask("strategic merge patch", "PATCH", PODS + "/web", image, "application/strategic-merge-patch+json")
        replace = [{"op": "add", "path": "/metadata/labels/tier", "value": "web"}]
        patched = await ask("JSON patch", "PATCH", PODS + "/web", replace, "application/json-patch+json")
        assert patched["metadata"]["labels"] == {"app": "web", "tier": "web"}, patched
        path = "/api/v1/namespaces/default/configmaps/applied?fieldManager=test"
        await ask("apply", "PATCH", path, APPLIED, "application/apply-patch+yaml")
        await ask("update", "PUT", PODS + "/web", patched)
        await ask("update of an old version", "PUT", PODS + "/web", created)
        running = patched | {"status": {"phase": "Running"}}
        del running["metadata"]["resourceVersion"]
        await ask("update of the status", "PUT", PODS + "/web/status", running)
        await ask("service", "POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "web"}})
        await ask("list", "GET", PODS + "?fieldSelector=status.phase%3DRunning")
        async with session.get(PODS + "?watch=true&resourceVersion=0") as response:
            event = json.loads(await response.content.readline())
            assert event["object"]["metadata"]["name"] == "web", event
        await ask("table", "GET", PODS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
        await ask("review", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
        await ask("eviction", "POST", PODS + "/web/eviction", eviction)
        await ask("definition", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", GADGETS)
        gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}, "size": 0, "unknown": 1}
        path = "/apis/example.com/v1/namespaces/default/gadgets"
        stored = await ask("custom resource", "POST", path, gadget)
        assert "unknown" not in stored and stored["size"] == 0, stored
        await ask("custom resource of a wrong type", "POST", path, gadget | {"size": "large"})
        await ask("delete", "DELETE", PODS + "/web")
        await ask("delete again", "DELETE", PODS + "/web")
    print(json.dumps(answers))

asyncio.run(main())
"""

ANSWERS = {
    "create": 201,
    "create again": 409,
    "create with a bad name": 422,
    "get": 200,
    "merge patch": 200,
    "strategic merge patch": 200,
    "JSON patch": 200,
    "apply": 201,
    "update": 200,
    "update of an old version": 409,
    "update of the status": 200,
    "service": 201,
    "list": 200,
    "table": 501,
    "review": 501,
    "eviction": 501,
    "definition": 201,
    "custom resource": 201,
    "custom resource of a wrong type": 422,
    "delete": 200,
    "delete again": 404,
}


def output_of(program: str) -> Any:
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_modules_of_a_server_that_is_populated_and_watched() -> None:
    modules = output_of(WATCHED)
    assert not [name for name in modules["read"] if name.startswith(ADMISSION)]
    assert len(modules["written"]) <= MOST_MODULES


def test_server_without_admission() -> None:
    assert output_of(WITHOUT_ADMISSION) == ANSWERS
