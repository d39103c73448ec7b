"""Requests that a kubelet answers: logs, and streams to containers.

This server has no kubelets. For a pod without a node it answers like a real server; for other pods it answers 501.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.api.responses import text_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster


def pod_stream_response(request: web.BaseRequest, cluster: Cluster, target: Target, served: Served) -> web.Response:
    """Return the empty log of a pod without a node.

    Raises:
        StatusError: 400, there is no such container, or the pod has no node; 501, a kubelet would have to answer.
    """
    pod: dict[str, Any] = decode(cluster.store.get(served, target.namespace, target.name).body)
    name, subresource = pod["metadata"]["name"], target.subresource
    if subresource != "portforward":
        _check_container(pod, target.query.get("container", ""))
    if pod["spec"].get("nodeName"):
        message = f"this server does not implement pods/{subresource} of a pod that is on a node"
        raise statuses.StatusError(501, "NotImplemented", message)
    if subresource == "log":
        return text_response(request, "")
    raise statuses.bad_request(f"pod {name} does not have a host assigned")


def _check_container(pod: Mapping[str, Any], wanted: str) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    containers, first = ([each["name"] for each in spec.get(field) or ()] for field in ("containers", "initContainers"))
    later = [each["name"] for each in spec.get("ephemeralContainers") or ()]
    if wanted:
        if wanted not in (*containers, *first, *later):
            raise statuses.bad_request(f"container {wanted} is not valid for pod {name}")
    elif len(containers) != 1:
        choice = f"choose one of: [{' '.join(containers)}]"
        if first:
            choice += f" or one of the init containers: [{' '.join(first)}]"
        raise statuses.bad_request(f"a container name must be specified for pod {name}, {choice}")
