"""client-go's sample-controller: a Foo keeps a Deployment of nginx with a number of replicas.

If another Deployment has the name, an Event says so. A Deployment with a former name is deleted.

kubectl apply -f examples/sample_controller.yaml && python examples/sample_controller.py
"""

from __future__ import annotations

from typing import Any

from aioinformer import Resource
from aioinformer.controller import Manager, Request, apply_set, set_status
from aioinformer.controller.errors import ForeignObject
from aioinformer.models import apps_v1

FOOS = Resource[Any]("samplecontroller.example.com", "v1", "foos", "Foo")
WRITES = {FOOS: ("patch",), apps_v1.DEPLOYMENTS: ("create", "patch", "delete")}

manager = Manager("sample-controller")


@manager.controller(FOOS, owns=[apps_v1.DEPLOYMENTS], writes=WRITES)
async def foos(request: Request[Any]) -> None:
    foo = request.object
    if foo is None or foo.metadata.deletion_timestamp:
        return  # the server deletes the Deployment with its owner
    try:
        applied = await apply_set(request, [deployment(foo)], resources=[apps_v1.DEPLOYMENTS])
    except ForeignObject as error:
        request.event("ErrResourceExists", str(error), type="Warning")
        raise
    if applied.sent:
        request.event("Synced", f"Deployment {foo['spec']['deploymentName']} is up to date")
    statuses = [each.status for each in applied.objects]
    available = sum(status.available_replicas or 0 for status in statuses if status)
    await set_status(request, availableReplicas=available)


def deployment(foo: Any) -> dict[str, Any]:
    labels = {"app": "nginx", "controller": foo.metadata.name}
    container = {"name": "nginx", "image": "nginx:latest"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": foo["spec"]["deploymentName"]},
        "spec": {
            "replicas": foo["spec"]["replicas"],
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


if __name__ == "__main__":
    manager.main()
