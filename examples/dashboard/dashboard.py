"""A live dashboard: pods by node for those who may see them, in one file and one page.

uvicorn --app-dir examples/dashboard dashboard:app
kubectl create token jane --audience dashboard    # the page asks for it

The cluster is that of KUBECONFIG, or of the pod. The service needs the right to list and watch
pods, and the ClusterRole system:auth-delegator.
"""

from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI
from fastapi.responses import FileResponse
from pydantic import BaseModel

from aioinformer import Lister
from aioinformer.authorization import Rbac
from aioinformer.models import core_v1
from aioinformer.web import Informers
from aioinformer.web.fastapi import require, router, stream


class Row(BaseModel):  # all that a stream shows of a pod
    node: Annotated[str | None, "spec.nodeName"] = None
    phase: Annotated[str | None, "status.phase"] = None
    created: Annotated[str | None, "metadata.creationTimestamp"] = None


who = Rbac(audiences=["dashboard"])
informers = Informers(core_v1.PODS)
app = FastAPI(title="Pods by node", lifespan=informers.lifespan)
app.include_router(router(informers, metrics_check=who))
app.get("/live")(stream(informers, {core_v1.PODS: Row}, who=who))

Pods = Annotated[Lister[core_v1.Pod], Depends(informers.lister(core_v1.PODS))]
may_get_pods = Depends(require(who, "get", core_v1.PODS))


@app.get("/pods/{namespace}/{name}", dependencies=[may_get_pods])
def pod(namespace: str, name: str, pods: Pods) -> core_v1.Pod:
    return pods.get(f"{namespace}/{name}")  # NotFound is a 404


@app.get("/", include_in_schema=False)
def page() -> FileResponse:
    return FileResponse(Path(__file__).with_name("page.html"))
