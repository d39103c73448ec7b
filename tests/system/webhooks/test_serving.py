"""Managers that serve their admission functions over TLS, and the certificates for it."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from aioinformer import ApiError, ApiNotFound, Client, UsageError
from aioinformer.controller import LeaderElection, Manager, Request
from aioinformer.models import core_v1
from aioinformer.webhooks import AdmissionRequest, WebhookServer
from aioinformer.webhooks.certificates import Certificates
from tests.support.reviews import WIDGETS, Widget, review, widget
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from aioinformer.testing import ApiServer

SERVICE = {"name": "widgets", "namespace": "shop", "path": "/validate/widgets.example.com"}
OURS = WebhookServer("widgets", "shop", port=0, host="127.0.0.1", hosts=("127.0.0.1",))
NAME = "widgets.shop.svc"


@pytest.fixture(autouse=True)
def _registered(api_server: ApiServer) -> None:
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    hooks = [webhook("a", {"service": SERVICE}), webhook("b", {"service": {**SERVICE, "name": "other"}})]
    hooks.append(webhook("c", {"url": "https://127.0.0.1:9443/validate/widgets.example.com"}))
    api_server.create("validatingwebhookconfigurations", configuration("ValidatingWebhookConfiguration", *hooks))
    foreign = configuration("MutatingWebhookConfiguration", webhook("a", {"service": SERVICE}), name="foreign")
    api_server.create("mutatingwebhookconfigurations", foreign)


def bundles(api_server: ApiServer, name: str = "widgets.shop", kind: str = "validating") -> list[str]:
    """Return the CAs that a configuration trusts, in PEM."""
    found = api_server.get(f"{kind}webhookconfigurations", name)["webhooks"]
    return [base64.b64decode(each["clientConfig"].get("caBundle", "")).decode() for each in found]


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(50):
        while not condition():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)


def trusting(pem: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=pem)


async def posted(manager: Manager, context: ssl.SSLContext, sent: Any) -> tuple[int, Any]:
    url = f"https://127.0.0.1:{manager.admission.port}/validate/widgets.example.com?timeout=10s"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=json.dumps(sent), ssl=context, server_hostname=NAME) as answer,
    ):
        return answer.status, await answer.json(content_type=None)


def certificate(serving: ssl.SSLContext, trusted: str, name: str = NAME) -> bytes:
    """Return the certificate of a server after a handshake in memory that checks it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(trusted).wrap_bio(incoming, outgoing, server_hostname=name)
    server = serving.wrap_bio(outgoing, incoming, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = client.getpeercert(binary_form=True)
    assert found is not None
    return found


@pytest.mark.behaviour("C-133")
async def test_manager_serves_with_a_ca_of_its_own(api_server: ApiServer) -> None:
    manager = Manager("widgets", client=api_server.url, webhooks=OURS)

    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None: ...

    async with manager:
        await until(manager.ready)
        ours, others, by_url = bundles(api_server)
        assert ours
        assert (others, by_url) == ("", ours)
        assert bundles(api_server, "foreign", "mutating") == [""]
        status, answer = await posted(manager, trusting(ours), review(widget()))
        assert (status, answer["response"]["allowed"]) == (200, True)
    assert manager.admission.port is None


@pytest.mark.behaviour("C-129")
async def test_standby_serves_too(api_server: ApiServer) -> None:
    managers = []
    for _ in range(2):
        manager = Manager("it", client=api_server.url, webhooks=OURS, leader_election=LeaderElection("it", "shop"))

        @manager.validate(WIDGETS)
        async def check(request: AdmissionRequest[Widget]) -> None: ...

        @manager.controller(core_v1.CONFIG_MAPS)
        async def maps(request: Request[Any]) -> None: ...

        managers.append(manager)
    async with managers[0], managers[1]:
        for each in managers:
            await until(each.ready)
            status, _ = await posted(each, trusting(bundles(api_server)[0]), review(widget()))
            assert status == 200
        assert [each.snapshot()["leader"] for each in managers].count(True) <= 1


@pytest.mark.behaviour("C-129")
async def test_manager_is_not_ready_before_it_listens(api_server: ApiServer) -> None:
    manager = Manager("it", client=api_server.url, webhooks=OURS)
    manager.validate(WIDGETS)(_no_check)
    running = asyncio.create_task(manager.run())
    while manager.admission.port is None:
        assert not manager.ready()
        await asyncio.sleep(0)
    await until(manager.ready)
    manager.stop()
    await running


@pytest.mark.behaviour("C-129")
async def test_stop_answers_the_reviews_that_are_under_way(api_server: ApiServer) -> None:
    manager, began, end = Manager("it", client=api_server.url, webhooks=OURS), asyncio.Event(), asyncio.Event()

    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        began.set()
        await end.wait()

    running = asyncio.create_task(manager.run())
    await until(manager.ready)
    post = asyncio.create_task(posted(manager, trusting(bundles(api_server)[0]), review(widget())))
    await began.wait()
    manager.stop()
    await asyncio.sleep(0.05)
    assert not running.done()
    end.set()
    assert (await post)[0] == 200
    await running


@pytest.mark.behaviour("C-132")
async def test_replicas_take_the_ca_of_the_first(api_server: ApiServer, client: Client) -> None:
    replicas = [Certificates(OURS, client) for _ in range(5)]
    await asyncio.gather(*(each.refresh() for each in replicas))
    [trusted] = {bundle for bundle in bundles(api_server) if bundle}
    for each in replicas:
        assert certificate(each.context, trusted)
        assert certificate(each.context, trusted, "widgets.shop.svc.cluster.local")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        certificate(replicas[0].context, trusted, "other.shop.svc")


@pytest.mark.behaviour("C-132")
async def test_webhooks_of_other_services_keep_their_ca(api_server: ApiServer, client: Client) -> None:
    others = [{**SERVICE, "name": "other"}, {**SERVICE, "namespace": "other"}]
    hooks = [webhook(f"w{at}", {"service": each}) for at, each in enumerate([SERVICE, *others])]
    api_server.patch("validatingwebhookconfigurations", "widgets.shop", {"webhooks": hooks})
    await Certificates(OURS, client).refresh()
    assert [bool(bundle) for bundle in bundles(api_server)] == [True, False, False]


@pytest.mark.behaviour("C-132")
async def test_ca_is_renewed_while_serving(api_server: ApiServer, client: Client) -> None:
    time = datetime.now(UTC)
    replicas = [Certificates(OURS, client, lambda: time) for _ in range(2)]
    time -= timedelta(days=250)
    for each in replicas:
        await each.refresh()
    first = bundles(api_server)[0]
    before = [certificate(each.context, first) for each in replicas]
    time += timedelta(days=250)
    for each in replicas:
        await each.refresh()
    both = bundles(api_server)[0]
    assert both.endswith(first)
    assert both.count("BEGIN CERTIFICATE") == 2
    # The replica that renewed it waits until the API server trusts it.
    assert certificate(replicas[0].context, first) == before[0]
    await replicas[0].refresh()
    new = both.removesuffix(first)
    after = [certificate(each.context, new) for each in replicas]
    assert not set(before) & set(after)
    await replicas[0].refresh()
    assert certificate(replicas[0].context, new) == after[0]


@pytest.mark.behaviour("C-132")
async def test_former_ca_of_a_deleted_secret_is_trusted_for_ten_minutes(api_server: ApiServer, client: Client) -> None:
    time = datetime.now(UTC)
    replicas = [Certificates(OURS, client, lambda: time) for _ in range(2)]
    for each in replicas:
        await each.refresh()
    former = bundles(api_server)[0]
    api_server.delete("secrets", "widgets-webhook-ca", "shop")
    for each in [*replicas, *replicas]:
        await each.refresh()
        both = bundles(api_server)[0]
        assert all(certificate(one.context, both) for one in replicas)
    assert both != former
    assert both.endswith(former)
    new = both.removesuffix(former)
    assert all(certificate(one.context, new) for one in replicas)
    time += timedelta(minutes=9)
    await replicas[0].refresh()
    assert bundles(api_server)[0] == both
    time += timedelta(minutes=2)
    await replicas[0].refresh()
    for each in replicas:
        await each.refresh()
        assert bundles(api_server)[0] == new
    assert all(certificate(one.context, new) for one in replicas)


@pytest.mark.behaviour("C-132")
async def test_configurations_trust_what_the_secret_has(api_server: ApiServer, client: Client) -> None:
    """Replicas of each version write it there: if two wrote something else, they would do so in turns for ever."""
    time = datetime.now(UTC)
    replicas = [Certificates(OURS, client, lambda: time) for _ in range(2)]

    def in_secret() -> str:
        stored = api_server.get("secrets", "widgets-webhook-ca", "shop")["data"]["tls.crt"]
        return base64.b64decode(stored).decode()

    for step in (0, 250 * 24 * 60, 1, 8, 2, 1, 60):
        time += timedelta(minutes=step)
        for each in replicas:
            before = in_secret() if step else None
            await each.refresh()
            assert bundles(api_server)[0] in (before, in_secret())
    written = api_server.get("validatingwebhookconfigurations", "widgets.shop")["metadata"]["resourceVersion"]
    for each in replicas:
        await each.refresh()
    after = api_server.get("validatingwebhookconfigurations", "widgets.shop")["metadata"]["resourceVersion"]
    assert (bundles(api_server)[0], after) == (in_secret(), written)
    assert in_secret().count("BEGIN CERTIFICATE") == 1


@pytest.mark.behaviour("C-132")
async def test_replica_serves_if_the_former_ca_cannot_be_removed(api_server: ApiServer, client: Client) -> None:
    time = datetime.now(UTC) - timedelta(days=250)
    replica = Certificates(OURS, client, lambda: time)
    for step in (0, 250, 0):
        time += timedelta(days=step)
        await replica.refresh()
    time += timedelta(minutes=11)
    secret = api_server.get("secrets", "widgets-webhook-ca", "shop")
    api_server.update("secrets", {**secret, "immutable": True})
    begun = Certificates(OURS, client, lambda: time)
    with pytest.raises(ApiError, match="immutable"):
        await begun.refresh()
    assert begun.is_loaded
    assert certificate(begun.context, bundles(api_server)[0])


@pytest.mark.behaviour("C-132")
async def test_leaked_ca_is_distrusted_at_once(api_server: ApiServer, client: Client) -> None:
    import trustme

    replica = Certificates(OURS, client)
    await replica.refresh()
    leaked = bundles(api_server)[0]
    mine = trustme.CA()
    secret = api_server.get("secrets", "widgets-webhook-ca", "shop")
    for name, pem in (("tls.crt", mine.cert_pem), ("tls.key", mine.private_key_pem)):
        secret["data"][name] = base64.b64encode(pem.bytes()).decode()
    api_server.update("secrets", secret)
    await replica.refresh()
    assert bundles(api_server)[0] == mine.cert_pem.bytes().decode()
    api_server.delete("secrets", "widgets-webhook-ca", "shop")
    await replica.refresh()
    assert leaked not in bundles(api_server)[0]


@pytest.mark.behaviour("C-132")
async def test_certificate_stays_while_the_configurations_are_not_served(api_server: ApiServer, client: Client) -> None:
    time = datetime.now(UTC) - timedelta(days=250)
    served = Certificates(OURS, client, lambda: time)
    await served.refresh()
    trusted = bundles(api_server)[0]
    before = certificate(served.context, trusted)
    time += timedelta(days=250)
    async with api_server.fault("not_found", resources=["validatingwebhookconfigurations"]):
        with pytest.raises(ApiNotFound):
            await served.refresh()
    assert certificate(served.context, trusted) == before


@pytest.mark.behaviour("C-133")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tls.crt": "broken"}, "tls.crt cannot be read as certificates in PEM"),
        ({"tls.key": ""}, "tls.key cannot be read as a key in PEM"),
        ({"tls.key": None}, "tls.key is missing"),
        ({"tls.key": "other"}, "tls.key is the key of another certificate"),
    ],
)
async def test_unreadable_ca_stays_and_is_named(
    api_server: ApiServer, client: Client, change: dict[str, Any], reason: str
) -> None:
    for server in (WebhookServer("other", "shop"), OURS):
        await Certificates(server, client).refresh()
    secret = api_server.get("secrets", "widgets-webhook-ca", "shop")
    other = api_server.get("secrets", "other-webhook-ca", "shop")["data"]["tls.key"]
    for name, value in change.items():
        text = base64.b64encode((value or "").encode()).decode()
        secret["data"][name] = other if value == "other" else text
        if value is None:
            del secret["data"][name]
    api_server.update("secrets", secret)
    broken = api_server.get("secrets", "widgets-webhook-ca", "shop")
    found = f"Secret shop/widgets-webhook-ca has no CA that this version of aioinformer knows: {reason}"
    with pytest.raises(UsageError, match=f"{found}.*; correct it, or delete"):
        await Certificates(OURS, client).refresh()
    assert api_server.get("secrets", "widgets-webhook-ca", "shop") == broken
    manager = Manager("it", client=api_server.url, webhooks=OURS)
    manager.validate(WIDGETS)(_no_check)
    async with manager:
        await until(lambda: reason in str(manager.ready()))


async def test_missing_namespace_is_named_without_a_traceback(
    api_server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    manager = Manager("it", client=api_server.url, webhooks=WebhookServer("it", "ops", port=0, host="127.0.0.1"))
    manager.validate(WIDGETS)(_no_check)
    async with manager:
        await until(lambda: "the certificate of webhooks" in caplog.text)
    [record] = [each for each in caplog.records if "the certificate" in each.getMessage()]
    assert 'namespaces "ops" not found; check namespace ops, and the rights' in record.getMessage()
    assert (record.levelname, record.exc_info) == ("WARNING", None)


async def _no_check(request: AdmissionRequest[Widget]) -> None: ...


async def test_empty_secret_is_filled(api_server: ApiServer, client: Client) -> None:
    metadata = {"name": "widgets-webhook-ca", "namespace": "shop", "labels": {"app": "it"}}
    api_server.create("secrets", {"metadata": metadata, "type": "Opaque"})
    await Certificates(OURS, client).refresh()
    secret = api_server.get("secrets", "widgets-webhook-ca", "shop")
    assert set(secret["data"]) == {"tls.crt", "tls.key"}
    assert secret["metadata"]["labels"] == {"app": "it"}


@pytest.mark.behaviour("C-133")
async def test_data_of_others_stay(api_server: ApiServer, client: Client) -> None:
    metadata = {"name": "widgets-webhook-ca", "namespace": "shop"}
    secret = api_server.create("secrets", {"metadata": metadata, "data": {"token": "c2VjcmV0"}})
    with pytest.raises(UsageError, match="Secret shop/widgets-webhook-ca belongs to others: it has token; rename"):
        await Certificates(OURS, client).refresh()
    assert api_server.get("secrets", "widgets-webhook-ca", "shop") == secret


@pytest.mark.behaviour("C-133")
async def test_ca_of_others_is_used_to_its_end_and_never_replaced(api_server: ApiServer, client: Client) -> None:
    import trustme
    from cryptography.x509 import load_pem_x509_certificate

    authority = trustme.CA()
    parts = {"tls.crt": authority.cert_pem, "tls.key": authority.private_key_pem}
    data = {name: base64.b64encode(pem.bytes()).decode() for name, pem in parts.items()}
    metadata = {"name": "widgets-webhook-ca", "namespace": "shop"}
    secret = api_server.create("secrets", {"metadata": metadata, "data": data})
    time = load_pem_x509_certificate(authority.cert_pem.bytes()).not_valid_after_utc - timedelta(days=1)
    await Certificates(OURS, client, lambda: time).refresh()
    assert authority.cert_pem.bytes().decode() in bundles(api_server)[0]
    time += timedelta(days=2)
    with pytest.raises(UsageError, match=r"has a CA of others, which ended at .*; replace it"):
        await Certificates(OURS, client, lambda: time).refresh()
    assert api_server.get("secrets", "widgets-webhook-ca", "shop") == secret


@pytest.mark.behaviour("C-133")
async def test_files_are_read_again_when_they_change(client: Client, tmp_path: Path) -> None:
    import trustme

    authority = trustme.CA()
    trusted = authority.cert_pem.bytes().decode()

    def write(name: str) -> None:
        issued = authority.issue_cert(name)
        (tmp_path / "tls.key").write_bytes(issued.private_key_pem.bytes())
        (tmp_path / "tls.crt").write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))

    found = Certificates(WebhookServer("widgets", "shop", files=str(tmp_path)), client)
    with pytest.raises(UsageError, match=r"tls\.crt: cannot be read: No such file"):
        await found.refresh()
    write("first.example.com")
    await found.refresh()
    first = certificate(found.context, trusted, "first.example.com")
    key = (tmp_path / "tls.key").read_bytes()
    write("second.example.com")
    (tmp_path / "tls.key").write_bytes(key)
    with pytest.raises(UsageError, match=r"tls\.crt and tls\.key"):
        await found.refresh()
    assert certificate(found.context, trusted, "first.example.com") == first
    write("second.example.com")
    await found.refresh()
    assert certificate(found.context, trusted, "second.example.com") != first


async def test_port_that_is_taken_is_named(api_server: ApiServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        taken.listen()
        server = WebhookServer("widgets", "shop", port=port, host="127.0.0.1")
        with pytest.raises(UsageError, match=f"the webhook server cannot listen on port {port}: .*; choose another"):
            async with Manager("it", client=api_server.url, webhooks=server):
                pass
