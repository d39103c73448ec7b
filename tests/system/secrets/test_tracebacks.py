"""Local variables of frames in tracebacks, which error trackers collect, contain no secret.

Each scenario fails while secrets are in use. The tests search the exception, its causes and contexts, the `repr` of
each local variable of each frame except the test's own, and the log at its lowest level.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme
import yaml
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import Client
from aioinformer.errors import AioinformerError
from aioinformer.leaderelection.elector import LeaderElector
from aioinformer.leaderelection.lease import LeaderElectionOptions
from aioinformer.testing import ApiServer
from aioinformer.transport import Request
from aioinformer.transport.auth.credentials import connect
from aioinformer.transport.auth.exec_plugin import ExecCredentials, exec_plugin
from aioinformer.transport.auth.oidc import OIDCCredentials, TokenStore, oidc_provider
from aioinformer.transport.auth.tokens import Credential, FixedCredentials, obtain
from aioinformer.transport.exchange import exchange
from aioinformer.transport.http import HttpTransport
from aioinformer.transport.kubernetes import KubernetesTransport
from tests.support.loopback import Server, body, cut, fetch
from tests.support.socks_server import SocksServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from types import TracebackType

    from aioinformer import ResourceClient

    Scenario = Callable[["Stage"], Awaitable[object]]

SECRET = "hunter2secret"
WORDS = (SECRET, base64.b64encode(SECRET.encode()).decode()[:-2])
UNUSED = "http://127.0.0.1:1"


class Stage:
    """Arguments of scenarios."""

    def __init__(self, server: Server, folder: Path, stack: AsyncExitStack) -> None:
        self.server = server
        self.folder = folder
        self.stack = stack

    async def http(self, url: str = UNUSED, **arguments: Any) -> HttpTransport:
        return await self.stack.enter_async_context(HttpTransport(url, **arguments))

    def file(self, content: str | bytes) -> Path:
        path = self.folder / "file"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def kubeconfig(self, user: Any, cluster: Any = None, current: str = "c") -> Path:
        content = {
            "current-context": current,
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": UNUSED, **(cluster or {})}}],
            "users": [{"name": "u", "user": user}, {"name": "other", "user": {"token": SECRET}}],
        }
        return self.file(yaml.safe_dump(content))

    def plugin(self, code: str, **options: Any) -> ExecCredentials:
        section = {
            "command": sys.executable,
            "args": ["-c", code, SECRET],
            "env": [{"name": "SECRET", "value": SECRET}],
            "apiVersion": "client.authentication.k8s.io/v1",
        }
        return ExecCredentials(exec_plugin(section, {}, "users[me]"), **options)

    def oidc(self, **settings: Any) -> OIDCCredentials:
        config = {
            "idp-issuer-url": self.server.url,
            "client-id": "me",
            "client-secret": SECRET,
            "refresh-token": SECRET,
            **settings,
        }
        path = self.kubeconfig({"auth-provider": {"name": "oidc", "config": config}})
        return OIDCCredentials(oidc_provider(config, "users[u]"), TokenStore(path, "u"))

    async def client(self, url: str, **arguments: Any) -> KubernetesTransport:
        configuration = Configuration(host=url, api_key={"BearerToken": f"Bearer {SECRET}"})
        client = await self.stack.enter_async_context(ApiClient(configuration))
        client.set_default_header("X-Key", SECRET)
        client.cookie = SECRET
        return await self.stack.enter_async_context(KubernetesTransport(client, **arguments))


def answering(response: Callable[[], web.StreamResponse]) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return response()

    return answer


async def refused(stage: Stage) -> None:
    await fetch(await stage.http(token=SECRET))


async def refused_with_headers(stage: Stage) -> None:
    await fetch(await stage.http(headers={"X-Key": SECRET, "Authorization": SECRET}, proxy_headers={"X-Key": SECRET}))


async def refused_client(stage: Stage) -> None:
    await fetch(await stage.client(UNUSED, headers={"X-Other": SECRET}))


async def disconnected(stage: Stage) -> None:
    async def leave(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    stage.server.answer = leave
    transport = await stage.http(stage.server.url, token=SECRET)
    await transport.request(Request("/", headers={"X-Key": SECRET}, body=SECRET.encode(), method="POST"))


async def not_http(stage: Stage) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-hello\r\n\r\n")
        writer.close()

    listening = await stage.stack.enter_async_context(await asyncio.start_server(serve, "127.0.0.1", 0))
    port = listening.sockets[0].getsockname()[1]
    await fetch(await stage.http(f"http://127.0.0.1:{port}", token=SECRET))


async def silent(stage: Stage) -> None:
    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    stage.server.answer = wait
    await fetch(await stage.http(stage.server.url, token=SECRET, header_timeout=0.05))


async def cut_in_the_body(stage: Stage) -> None:
    stage.server.answer = cut
    response = await (await stage.http(stage.server.url, token=SECRET)).request(Request("/"))
    await body(response)


async def unauthorized(stage: Stage) -> None:
    stage.server.answer = answering(lambda: web.Response(status=401))
    transport = await stage.http(stage.server.url, credentials=stage.plugin(f"raise SystemExit({SECRET[:3]!r})"))
    await exchange(transport, Request("/", headers={"X-Key": SECRET}, body=SECRET.encode()), "Lease")


async def refused_for_good(stage: Stage) -> None:
    stage.server.answer = answering(lambda: web.Response(status=401))
    transport = await stage.http(stage.server.url, token=SECRET)
    await exchange(transport, Request("/", headers={"X-Key": SECRET}, body=SECRET.encode()), "Lease")


async def client_against(stage: Stage, answer: web.Response | None) -> ResourceClient[Any]:
    stage.server.answer = cut if answer is None else answering(lambda: answer)
    return Client(await stage.http(stage.server.url, token=SECRET), namespace="shop").core.v1.secrets


def private_object() -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "stringData": {"key": SECRET}}


async def refused_create(stage: Stage) -> None:
    await (await client_against(stage, web.Response(status=403))).create(private_object())


async def lost_replace(stage: Stage) -> None:
    await (await client_against(stage, None)).replace(private_object())


async def lost_patch(stage: Stage) -> None:
    await (await client_against(stage, None)).patch("a", private_object())


async def refused_apply(stage: Stage) -> None:
    await (await client_against(stage, web.Response(status=409))).apply(private_object(), field_manager="me")


async def cut_answer_to_a_create(stage: Stage) -> None:
    async def half(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b'{"data":{"key":"%b"' % SECRET.encode())
        await asyncio.sleep(0.05)
        assert request.transport is not None
        request.transport.close()
        return response

    client = await client_against(stage, None)
    stage.server.answer = half
    await client.create({"metadata": {"name": "a"}})


async def untrusted(stage: Stage) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    server = Server()
    await server.start(context)
    stage.stack.push_async_callback(server.stop)
    await fetch(await stage.http(server.url, token=SECRET))


async def no_tls(stage: Stage) -> None:
    await fetch(await stage.http(stage.server.url.replace("http:", "https:"), token=SECRET))


async def broken_client_key(stage: Stage) -> None:
    credential = Credential(certificate=f"PEM {SECRET}", key=f"PEM {SECRET}")
    await fetch(await stage.http("https://127.0.0.1:1", credentials=FixedCredentials(credential)))


async def unwritable_client_key(stage: Stage) -> None:
    credential = Credential(certificate=f"PEM {SECRET}", key=f"PEM {SECRET}\ud800")
    await fetch(await stage.http("https://127.0.0.1:1", credentials=FixedCredentials(credential)))


async def header_with_a_line_break(stage: Stage) -> None:
    await fetch(await stage.http(headers={"X-Key": f"{SECRET}\r\nX-Other: 1"}, token=SECRET))


async def two_credentials(stage: Stage) -> None:
    HttpTransport(UNUSED, token=SECRET, token_file="f", headers={"X-Key": SECRET}, proxy=f"http://me:{SECRET}@proxy")


async def token_with_a_space(stage: Stage) -> None:
    HttpTransport(UNUSED, token=f"two {SECRET}")


async def unknown_proxy(stage: Stage) -> None:
    HttpTransport("http://api.invalid", token=SECRET, proxy=f"ftp://me:{SECRET}@proxy")


async def unreadable_proxy(stage: Stage) -> None:
    HttpTransport("http://api.invalid", token=SECRET, proxy=f"http://me:{SECRET}@[proxy")


async def unreachable_proxy(stage: Stage) -> None:
    await fetch(await stage.http("http://api.invalid", token=SECRET, proxy=f"http://me:{SECRET}@127.0.0.1:1"))


async def refusing_proxy(stage: Stage) -> None:
    stage.server.answer = answering(lambda: web.Response(status=407))
    proxy = stage.server.url.replace("//", f"//me:{SECRET}@")
    await fetch(await stage.http("https://api.invalid", token=SECRET, proxy=proxy))


async def unreachable_socks(stage: Stage) -> None:
    await fetch(await stage.http("http://api.invalid", token=SECRET, proxy=f"socks5://me:{SECRET}@127.0.0.1:1"))


async def refusing_socks(stage: Stage) -> None:
    socks = await stage.stack.enter_async_context(SocksServer(1, password="me:another"))
    await fetch(await stage.http("http://api.invalid", token=SECRET, proxy=f"socks5://me:{SECRET}@{socks.authority}"))


async def odd_socks(stage: Stage) -> None:
    """A password that is too long for SOCKS."""
    socks = await stage.stack.enter_async_context(SocksServer(1, password="me:another"))
    proxy = f"socks5://me:{SECRET * 30}@{socks.authority}"
    await fetch(await stage.http("http://api.invalid", token=SECRET, proxy=proxy))


async def token_file_with_a_line_break(stage: Stage) -> None:
    await stage.http(token_file=stage.file(f"{SECRET}\nX-Other: 1"))


async def token_file_that_is_binary(stage: Stage) -> None:
    await fetch(await stage.http(credentials=_token_file(stage.file(f"{SECRET}\xff".encode("latin-1")))))


async def plugin_that_fails(stage: Stage) -> None:
    code = f"import sys; print({SECRET!r}); print('no', file=sys.stderr); sys.exit(1)"
    await fetch(await stage.http(credentials=stage.plugin(code)))


async def plugin_that_babbles(stage: Stage) -> None:
    await obtain(stage.plugin(f"print({SECRET!r})"))


async def plugin_with_an_odd_answer(stage: Stage) -> None:
    status = {"token": [SECRET], "expirationTimestamp": SECRET, "clientKeyData": SECRET}
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}
    await obtain(stage.plugin(f"import json; print(json.dumps({answer!r}))"))


async def plugin_with_a_broken_token(stage: Stage) -> None:
    status = {"token": f"{SECRET}\nX-Other: 1"}
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}
    await obtain(stage.plugin(f"import json; print(json.dumps({answer!r}))"))


async def plugin_that_hangs(stage: Stage) -> None:
    await obtain(stage.plugin(f"import time; print({SECRET!r}, flush=True); time.sleep(600)", timeout=0.5))


async def plugin_that_is_gone(stage: Stage) -> None:
    program = stage.folder / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    section = {"command": str(program), "args": [SECRET], "apiVersion": "client.authentication.k8s.io/v1"}
    source = ExecCredentials(exec_plugin(section, {}, "users[me]"))
    program.unlink()
    await obtain(source)


async def plugin_with_a_null_byte(stage: Stage) -> None:
    section = {
        "command": sys.executable,
        "args": [f"{SECRET}\0"],
        "env": [{"name": "A", "value": SECRET}],
        "apiVersion": "client.authentication.k8s.io/v1",
    }
    await obtain(ExecCredentials(exec_plugin(section, {}, "users[me]")))


async def plugin_section_that_is_wrong(stage: Stage) -> None:
    section = {
        "command": "no-such-program",
        "args": [SECRET],
        "env": [{"name": "A", "value": SECRET}],
        "apiVersion": "client.authentication.k8s.io/v1",
    }
    exec_plugin(section, {"proxy-url": SECRET}, "users[me]")


async def provider_that_refuses(stage: Stage) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response({"token_endpoint": f"{stage.server.url}/token"})
        return web.json_response({"error": "invalid_grant", "error_description": SECRET}, status=400)

    stage.server.answer = answer
    await obtain(stage.oidc())


async def provider_that_babbles(stage: Stage) -> None:
    stage.server.answer = answering(lambda: web.Response(text=f'{{"id_token": "{SECRET}"'))
    await fetch(await stage.http(credentials=stage.oidc()))


async def provider_with_an_odd_token(stage: Stage) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response({"token_endpoint": f"{stage.server.url}/token"})
        return web.json_response({"id_token": f"{SECRET}\nX-Other: 1", "refresh_token": SECRET})

    stage.server.answer = answer
    await obtain(stage.oidc())


async def provider_that_is_gone(stage: Stage) -> None:
    await obtain(stage.oidc(**{"idp-issuer-url": UNUSED}))


async def provider_that_leaves(stage: Stage) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response({"token_endpoint": f"{stage.server.url}/token"})
        return await cut(request)

    stage.server.answer = answer
    await obtain(stage.oidc())


async def no_refresh_token(stage: Stage) -> None:
    await obtain(stage.oidc(**{"refresh-token": ""}))


async def store_that_breaks(stage: Stage) -> None:
    source = stage.oidc()
    stage.file(f"users: [{SECRET}")
    await obtain(source)


async def hook_that_raises(stage: Stage) -> None:
    def hook(configuration: Configuration) -> None:
        raise ValueError(SECRET)

    transport = await stage.client(UNUSED)
    transport.api_client.configuration.refresh_api_key_hook = hook
    await fetch(transport)


async def kubeconfig_without_the_context(stage: Stage) -> None:
    await connect(kubeconfig=stage.kubeconfig({"token": SECRET}, current="none"))


async def kubeconfig_with_a_broken_token(stage: Stage) -> None:
    await connect(kubeconfig=stage.kubeconfig({"token": f"two {SECRET}"}))


async def kubeconfig_with_a_broken_certificate(stage: Stage) -> None:
    data = base64.b64encode(SECRET.encode()).decode()
    user = {"token": SECRET, "client-certificate-data": data, "client-key-data": f"!{data}"}
    await connect(kubeconfig=stage.kubeconfig(user, {"server": "https://127.0.0.1:1"}))


async def kubeconfig_with_an_unknown_provider(stage: Stage) -> None:
    user = {"auth-provider": {"name": "gcp", "config": {"access-token": SECRET}}, "password": SECRET}
    await connect(kubeconfig=stage.kubeconfig(user))


async def kubeconfig_with_a_wrong_plugin(stage: Stage) -> None:
    user = {"exec": {"command": "no-such-program", "args": [SECRET], "env": [{"name": "A", "value": SECRET}]}}
    await connect(kubeconfig=stage.kubeconfig(user))


async def kubeconfig_with_a_broken_proxy(stage: Stage) -> None:
    await connect(kubeconfig=stage.kubeconfig({"token": SECRET}, {"proxy-url": f"ftp://me:{SECRET}@proxy"}))


async def kubeconfig_that_is_no_yaml(stage: Stage) -> None:
    await connect(kubeconfig=stage.file(f"token: {SECRET}\n  - [{SECRET}"))


async def kubeconfig_that_is_a_text(stage: Stage) -> None:
    await connect(kubeconfig=stage.file(SECRET))


async def kubeconfig_with_a_user_that_is_a_text(stage: Stage) -> None:
    await connect(kubeconfig=stage.kubeconfig(SECRET))


async def kubeconfig_with_a_list_of_texts(stage: Stage) -> None:
    await connect(kubeconfig=stage.file(yaml.safe_dump({"current-context": "c", "users": [SECRET]})))


async def kubeconfig_and_a_server_that_is_gone(stage: Stage) -> None:
    user = {"username": "me", "password": SECRET, "as": "other"}
    connection = await stage.stack.enter_async_context(await connect(kubeconfig=stage.kubeconfig(user)))
    await fetch(connection.transport)


async def lost_leadership(stage: Stage) -> None:
    server = await stage.stack.enter_async_context(ApiServer(tokens={SECRET: "me"}))
    transport = await stage.http(server.url, token=SECRET)
    options = LeaderElectionOptions(lease_duration=2, renew_deadline=0.2, retry_period=0.01)
    async with LeaderElector(transport, "it", options=options).leading():
        await server.fault("outage")
        await asyncio.Event().wait()


def _token_file(path: Path) -> Any:
    from aioinformer.transport.auth.token_file import TokenFile

    return TokenFile(path)


SCENARIOS: list[Scenario] = [
    *(refused, refused_with_headers, refused_client, disconnected, not_http, silent, cut_in_the_body, unauthorized),
    *(refused_for_good, untrusted, no_tls, broken_client_key, unwritable_client_key, header_with_a_line_break),
    *(two_credentials, token_with_a_space, unknown_proxy, unreadable_proxy, unreachable_proxy),
    *(refusing_proxy, unreachable_socks, refusing_socks, odd_socks, token_file_with_a_line_break),
    *(token_file_that_is_binary, plugin_that_fails, plugin_that_babbles, plugin_with_an_odd_answer),
    *(plugin_with_a_broken_token, plugin_that_hangs, plugin_that_is_gone, plugin_with_a_null_byte),
    *(plugin_section_that_is_wrong, provider_that_refuses, provider_that_babbles, provider_with_an_odd_token),
    *(provider_that_is_gone, provider_that_leaves, no_refresh_token, store_that_breaks, hook_that_raises),
    *(kubeconfig_without_the_context, kubeconfig_with_a_broken_token, kubeconfig_with_a_broken_certificate),
    *(kubeconfig_with_an_unknown_provider, kubeconfig_with_a_wrong_plugin, kubeconfig_with_a_broken_proxy),
    *(kubeconfig_that_is_no_yaml, kubeconfig_that_is_a_text, kubeconfig_with_a_user_that_is_a_text),
    *(kubeconfig_with_a_list_of_texts, kubeconfig_and_a_server_that_is_gone, lost_leadership),
    *(refused_create, lost_replace, lost_patch, refused_apply, cut_answer_to_a_create),
]


def texts_of(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield texts with their places: messages, arguments and causes of an error, and local variables of frames."""
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        each = rest.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield type(each).__name__, f"{each} {each!r} {each.args!r} {getattr(each, '__notes__', '')}"
        yield from variables(each.__traceback__)
        rest += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


def variables(trace: TracebackType | None) -> Iterator[tuple[str, str]]:
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        file = frame.f_code.co_filename
        if Path(file).parent == Path(__file__).parent or "/tests/" in file:
            continue
        for name, value in frame.f_locals.items():
            yield f"{file}:{frame.f_lineno} {frame.f_code.co_name}: {name}", f"{value!r}"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_tracebacks_contain_no_secret(
    scenario: Scenario, server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("asyncio").setLevel(logging.DEBUG)
    async with AsyncExitStack() as stack:
        stage = Stage(server, tmp_path, stack)
        with pytest.raises(AioinformerError) as caught:
            await scenario(stage)
        found = [place for place, text in texts_of(caught.value) if any(word in text for word in WORDS)]
    assert found == []
    assert not any(word in caplog.text for word in WORDS)


@pytest.fixture
async def server() -> Any:
    server = Server()
    await server.start()
    yield server
    await server.stop()
