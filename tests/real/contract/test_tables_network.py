"""Table rows of services, endpoints and ingresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.real.contract.paths import SERVICES
from tests.real.contract.rows import Case, row_of
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

INGRESSES = "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
NETWORKING = "/apis/networking.k8s.io/v1"

HTTP = {"port": 80, "name": "http"}
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
SELECTOR = {
    "matchLabels": {"app": "a"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["t", "s"]},
        {"key": "q", "operator": "DoesNotExist"},
        {"key": "app", "operator": "Exists"},
        {"key": "r", "operator": "NotIn", "values": ["z"]},
    ],
}


def rules(*hosts: str) -> list[dict[str, Any]]:
    paths = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}
    return [paths | ({"host": host} if host else {}) for host in hosts]


NETWORK: dict[str, Case] = {
    "external-name": (SERVICES, {"spec": {"type": "ExternalName", "externalName": "db.example.com"}}, {}),
}


@variants("case", NETWORK)
async def test_row_of_each_kind(api: Conversation, case: Case) -> None:
    assert len(await row_of(api, case)) >= 3
