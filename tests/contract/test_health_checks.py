"""Health checks: healthz, livez, readyz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

ENDPOINTS = {name: f"/{name}" for name in ("healthz", "livez", "readyz")}
ASKED = (
    "?verbose=false",
    "?exclude=etcd",
    "?verbose&exclude=etcd",
    "?exclude=nope",
    "?verbose&exclude=nope",
    "?verbose&exclude=etcd&exclude=no-b&exclude=no-a&exclude=etcd",
    "/",
    "/?verbose",
    "/etcd",
    "/etcd/",
    "/etcd?verbose",
    "/etcd?exclude=etcd",
    "/ping",
    "/log",
    "/shutdown",
    "/informer-sync",
    "/etcd-readiness",
    "/autoregister-completion",
    "/poststarthook",
    "/poststarthook/rbac/bootstrap-roles",
    "/nope",
)


@variants("endpoint", ENDPOINTS)
async def test_checks_are_selected_and_excluded(api: Conversation, endpoint: str) -> None:
    for asked in ASKED:
        answer = await api("GET", endpoint + asked)
        assert answer.status in (200, 404)


@variants("endpoint", ENDPOINTS)
async def test_methods_and_accept_headers(api: Conversation, endpoint: str) -> None:
    for method in ("HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"):
        answer = await api(method, endpoint)
        assert answer.status == 200
    for accept in ("application/json", "application/yaml", "text/html", ""):
        answer = await api("GET", endpoint, accept=accept)
        assert answer.body == "ok"


@variants("endpoint", ENDPOINTS)
async def test_every_user_may_read_health(api: Conversation, endpoint: str) -> None:
    for user in ("nobody", "system:anonymous"):
        for asked, status in (("", 200), ("?verbose", 200), ("/etcd", 403), ("/nope", 403)):
            answer = await api("GET", endpoint + asked, user=user)
            assert answer.status == status
    answer = await api("GET", endpoint, headers={"Authorization": "Bearer wrong"})
    assert answer.status == 401
