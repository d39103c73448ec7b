"""Local variables of frames in tracebacks, which error trackers collect, contain no secret.

Each scenario fails while secrets are in use. The tests search the exception, its causes and contexts, the `repr` of
each local variable of each frame except the test's own, and the log at its lowest level.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
import trustme
import yaml
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import Client, HttpTransport, LeaderElectionOptions, LeaderElector, connect
from aioinformer.errors import AioinformerError
from aioinformer.testing import ApiServer
from aioinformer.transport import Credential, FixedCredentials, HttpRequest, KubernetesTransport, exchange
from aioinformer.transport.auth.exec_plugin import ExecCredentials, exec_plugin
from aioinformer.transport.auth.oidc import OIDCCredentials, TokenStore, oidc_provider
from aioinformer.transport.auth.token_file import TokenFile
from aioinformer.transport.auth.tokens import obtain
from tests.support.loopback import Server, body, cut, fetch
from tests.support.socks_server import SocksServer
from tests.support.tracebacks import texts_of

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer.client import ResourceClient

    Scenario = Callable[["Stage"], Awaitable[object]]

SECRET = "hunter2secret"
WORDS = (SECRET, base64.b64encode(SECRET.encode()).decode()[:-2])
UNUSED = "http://127.0.0.1:1"
OUTSIDE = "http://api.invalid"


class Stage:
    """Arguments of scenarios."""

    def __init__(self, server: Server, folder: Path, stack: AsyncExitStack) -> None:
        self.server = server
        self.folder = folder
        self.stack = stack

    async def http(self, url: str = UNUSED, **arguments: Any) -> HttpTransport:
        return await self.stack.enter_async_context(HttpTransport(url, **arguments))

    async def fetch(self, url: str = UNUSED, **arguments: Any) -> None:
        await fetch(await self.http(url, **arguments))

    def serve(self, answer: Answer) -> str:
        """Let the server answer so, and return its URL."""
        self.server.answer = answer
        return self.server.url

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


Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def answering(**options: Any) -> Answer:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(**options)

    return answer


async def leave(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def wait(request: web.BaseRequest) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


async def half(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    response.enable_chunked_encoding()
    await response.prepare(request)
    await response.write(b'{"data":{"key":"%b"' % SECRET.encode())
    await asyncio.sleep(0.05)
    return await leave(request)


# Servers.

REQUEST = HttpRequest("/", headers={"X-Key": SECRET}, body=SECRET.encode(), method="POST")


async def refused_client(stage: Stage) -> None:
    await fetch(await stage.client(UNUSED, headers={"X-Other": SECRET}))


async def disconnected(stage: Stage) -> None:
    await (await stage.http(stage.serve(leave), token=SECRET)).request(REQUEST)


async def not_http(stage: Stage) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-hello\r\n\r\n")
        writer.close()

    listening = await stage.stack.enter_async_context(await asyncio.start_server(serve, "127.0.0.1", 0))
    await stage.fetch(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", token=SECRET)


async def cut_in_the_body(stage: Stage) -> None:
    await body(await (await stage.http(stage.serve(cut), token=SECRET)).request(HttpRequest("/")))


async def unauthorized(stage: Stage) -> None:
    source = stage.plugin(f"raise SystemExit({SECRET[:3]!r})")
    await exchange(await stage.http(stage.serve(answering(status=401)), credentials=source), REQUEST, "Lease")


async def refused_for_good(stage: Stage) -> None:
    await exchange(await stage.http(stage.serve(answering(status=401)), token=SECRET), REQUEST, "Lease")


async def untrusted(stage: Stage) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    server = Server()
    await server.start(context)
    stage.stack.push_async_callback(server.stop)
    await stage.fetch(server.url, token=SECRET)


async def lost_leadership(stage: Stage) -> None:
    server = await stage.stack.enter_async_context(ApiServer(tokens={SECRET: "me"}))
    transport = await stage.http(server.url, token=SECRET)
    options = LeaderElectionOptions(lease_duration=2, renew_deadline=0.2, retry_period=0.01)
    async with LeaderElector(transport, "it", options=options).leading():
        await server.fault("outage")
        await asyncio.Event().wait()


SERVERS: list[Scenario] = [
    *(refused_client, disconnected, not_http, cut_in_the_body, unauthorized, refused_for_good, untrusted),
    lost_leadership,
]

# Arguments of a transport, of which the first request fails at the latest.

TRANSPORTS: dict[str, dict[str, Any]] = {
    "refused": {"token": SECRET},
    "broken client key": {
        "url": "https://127.0.0.1:1",
        "credentials": FixedCredentials(Credential(certificate=f"PEM {SECRET}", key=f"PEM {SECRET}")),
    },
    "header with a line break": {"headers": {"X-Key": f"{SECRET}\r\nX-Other: 1"}, "token": SECRET},
    "two credentials": {
        "token": SECRET,
        "token_file": "f",
        "headers": {"X-Key": SECRET},
        "proxy": f"http://me:{SECRET}@proxy",
    },
    "token with a space": {"token": f"two {SECRET}"},
    "unknown proxy": {"url": OUTSIDE, "token": SECRET, "proxy": f"ftp://me:{SECRET}@proxy"},
    "unreachable proxy": {"url": OUTSIDE, "token": SECRET, "proxy": f"http://me:{SECRET}@127.0.0.1:1"},
    "unreachable SOCKS proxy": {"url": OUTSIDE, "token": SECRET, "proxy": f"socks5://me:{SECRET}@127.0.0.1:1"},
}


async def silent(stage: Stage) -> None:
    await stage.fetch(stage.serve(wait), token=SECRET, header_timeout=0.05)


async def no_tls(stage: Stage) -> None:
    await stage.fetch(stage.server.url.replace("http:", "https:"), token=SECRET)


async def refusing_proxy(stage: Stage) -> None:
    proxy = stage.serve(answering(status=407)).replace("//", f"//me:{SECRET}@")
    await stage.fetch("https://api.invalid", token=SECRET, proxy=proxy)


async def refusing_socks(stage: Stage) -> None:
    socks = await stage.stack.enter_async_context(SocksServer(1, password="me:another"))
    await stage.fetch(OUTSIDE, token=SECRET, proxy=f"socks5://me:{SECRET}@{socks.authority}")


async def token_file_with_a_line_break(stage: Stage) -> None:
    await stage.http(token_file=stage.file(f"{SECRET}\nX-Other: 1"))


async def token_file_that_is_binary(stage: Stage) -> None:
    await stage.fetch(credentials=TokenFile(stage.file(f"{SECRET}\xff".encode("latin-1"))))


async def hook_that_raises(stage: Stage) -> None:
    def hook(configuration: Configuration) -> None:
        raise ValueError(SECRET)

    transport = await stage.client(UNUSED)
    transport.api_client.configuration.refresh_api_key_hook = hook
    await fetch(transport)


CONNECTIONS: list[Scenario] = [
    *(silent, no_tls, refusing_proxy, refusing_socks, token_file_with_a_line_break),
    *(token_file_that_is_binary, hook_that_raises),
]

# Writes of a client, with what the server does.

PRIVATE: dict[str, Any] = {"metadata": {"name": "a"}, "stringData": {"key": SECRET}}
WRITES: dict[str, tuple[Answer, Callable[[ResourceClient[Any]], Awaitable[object]]]] = {
    "refused create": (answering(status=403), lambda secrets: secrets.create(PRIVATE)),
    "lost replace": (cut, lambda secrets: secrets.replace(PRIVATE)),
    "lost patch": (cut, lambda secrets: secrets.patch("a", PRIVATE)),
    "refused apply": (answering(status=409), lambda secrets: secrets.apply(PRIVATE, field_manager="me")),
    "cut answer to a create": (half, lambda secrets: secrets.create({"metadata": {"name": "a"}})),
}

# Plugins and providers.

PLUGIN = {"args": [SECRET], "env": [{"name": "A", "value": SECRET}], "apiVersion": "client.authentication.k8s.io/v1"}


def credential(**status: Any) -> str:
    """Return the code of a plugin that prints a credential."""
    answer = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}
    return f"import json; print(json.dumps({answer!r}))"


PLUGINS = {
    "plugin that fails": f"import sys; print({SECRET!r}); print('no', file=sys.stderr); sys.exit(1)",
    "plugin that babbles": f"print({SECRET!r})",
    "plugin with an odd answer": credential(token=[SECRET], expirationTimestamp=SECRET, clientKeyData=SECRET),
    "plugin with a broken token": credential(token=f"{SECRET}\nX-Other: 1"),
    "plugin that hangs": f"import time; print({SECRET!r}, flush=True); time.sleep(600)",
}


async def plugin_with_a_null_byte(stage: Stage) -> None:
    section = {**PLUGIN, "command": sys.executable, "args": [f"{SECRET}\0"]}
    await obtain(ExecCredentials(exec_plugin(section, {}, "users[me]")))


async def plugin_section_that_is_wrong(stage: Stage) -> None:
    exec_plugin({**PLUGIN, "command": "no-such-program"}, {"proxy-url": SECRET}, "users[me]")


def provider(token: Answer) -> Scenario:
    """Obtain a token from a provider whose token endpoint answers so."""

    async def scenario(stage: Stage) -> None:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            if request.method == "GET":
                return web.json_response({"token_endpoint": f"{stage.server.url}/token"})
            return await token(request)

        stage.serve(answer)
        await obtain(stage.oidc())

    return scenario


def answering_json(document: Any, status: int = 200) -> Answer:
    return answering(text=json.dumps(document), status=status, content_type="application/json")


PROVIDERS: dict[str, Scenario] = {
    "provider that refuses": provider(
        answering_json({"error": "invalid_grant", "error_description": SECRET}, status=400)
    ),
    "provider with an odd token": provider(
        answering_json({"id_token": f"{SECRET}\nX-Other: 1", "refresh_token": SECRET})
    ),
    "provider that leaves": provider(cut),
}


async def provider_that_babbles(stage: Stage) -> None:
    stage.serve(answering(text=f'{{"id_token": "{SECRET}"'))
    await stage.fetch(credentials=stage.oidc())


async def no_refresh_token(stage: Stage) -> None:
    await obtain(stage.oidc(**{"refresh-token": ""}))


async def store_that_breaks(stage: Stage) -> None:
    source = stage.oidc()
    stage.file(f"users: [{SECRET}")
    await obtain(source)


SOURCES: list[Scenario] = [
    *(plugin_with_a_null_byte, plugin_section_that_is_wrong),
    *(provider_that_babbles, no_refresh_token, store_that_breaks),
]

# Kubeconfigs.

ENCODED = base64.b64encode(SECRET.encode()).decode()
#: The user of a kubeconfig, and what is special about its cluster.
USERS: dict[str, tuple[Any, dict[str, str]]] = {
    "broken token": ({"token": f"two {SECRET}"}, {}),
    "broken certificate": (
        {"token": SECRET, "client-certificate-data": ENCODED, "client-key-data": f"!{ENCODED}"},
        {"server": "https://127.0.0.1:1"},
    ),
    "unknown provider": (
        {"auth-provider": {"name": "gcp", "config": {"access-token": SECRET}}, "password": SECRET},
        {},
    ),
    "wrong plugin": ({"exec": {"command": "no-such-program", "args": [SECRET], "env": PLUGIN["env"]}}, {}),
    "broken proxy": ({"token": SECRET}, {"proxy-url": f"ftp://me:{SECRET}@proxy"}),
    "user that is a text": (SECRET, {}),
    "server that is gone": ({"username": "me", "password": SECRET, "as": "other"}, {}),
}
FILES = {
    "no YAML": f"token: {SECRET}\n  - [{SECRET}",
    "a text": SECRET,
    "a list of texts": yaml.safe_dump({"current-context": "c", "users": [SECRET]}),
}


async def kubeconfig_without_the_context(stage: Stage) -> None:
    await connect(kubeconfig=stage.kubeconfig({"token": SECRET}, current="none"))


def of_transport(arguments: dict[str, Any]) -> Scenario:
    return lambda stage: stage.fetch(**arguments)


def of_write(answer: Answer, write: Callable[[ResourceClient[Any]], Awaitable[object]]) -> Scenario:
    async def scenario(stage: Stage) -> None:
        transport = await stage.http(stage.serve(answer), token=SECRET)
        await write(Client(transport, namespace="shop").core.v1.secrets)

    return scenario


def of_plugin(code: str) -> Scenario:
    return lambda stage: obtain(stage.plugin(code, timeout=0.5 if "sleep" in code else 60.0))


def of_kubeconfig(write: Callable[[Stage], Path]) -> Scenario:
    async def scenario(stage: Stage) -> None:
        connection = await stage.stack.enter_async_context(await connect(kubeconfig=write(stage)))
        await fetch(connection.transport)

    return scenario


def of_file(text: str) -> Scenario:
    return of_kubeconfig(lambda stage: stage.file(text))


def of_user(user: Any, cluster: dict[str, str]) -> Scenario:
    return of_kubeconfig(lambda stage: stage.kubeconfig(user, cluster))


SCENARIOS: dict[str, Scenario] = {
    **{each.__name__: each for each in (*SERVERS, *CONNECTIONS, *SOURCES, kubeconfig_without_the_context)},
    **{name: of_transport(arguments) for name, arguments in TRANSPORTS.items()},
    **{name: of_write(*row) for name, row in WRITES.items()},
    **{name: of_plugin(code) for name, code in PLUGINS.items()},
    **PROVIDERS,
    **{f"kubeconfig with {name}": of_user(*row) for name, row in USERS.items()},
    **{f"kubeconfig that is {name}": of_file(text) for name, text in FILES.items()},
}


@pytest.mark.parametrize("name", SCENARIOS)
async def test_tracebacks_contain_no_secret(
    name: str, server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("asyncio").setLevel(logging.DEBUG)
    async with AsyncExitStack() as stack:
        stage = Stage(server, tmp_path, stack)
        with pytest.raises(AioinformerError) as caught:
            await SCENARIOS[name](stage)
        found = [place for place, text in texts_of(caught.value) if any(word in text for word in WORDS)]
    assert found == []
    assert not any(word in caplog.text for word in WORDS)


@pytest.fixture
async def server() -> Any:
    server = Server()
    await server.start()
    yield server
    await server.stop()
