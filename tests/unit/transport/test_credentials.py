"""Credentials of kubeconfigs, of token files, and of sources that fail."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import HttpTransport
from aioinformer.errors import InformerStopped, TransportError, UsageError
from aioinformer.transport import Credential, HttpRequest
from aioinformer.transport.auth.kubeconfig import load_context
from aioinformer.transport.auth.token_file import TokenFile
from aioinformer.transport.auth.tokens import RenewedCredentials
from aioinformer.transport.auth.yaml_documents import to_yaml
from tests.support.loopback import Server, bearer_only, fetch, needs_async_hooks, open_files
from tests.support.tracebacks import texts_of
from tests.unit.transport.renewals import Clock, Gate, hooked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def kubeconfig(**changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://one"}}],
        "users": [{"name": "u", "user": {"token": "s3cret"}}],
    }
    return {**content, **changes}


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else to_yaml([content], sort_keys=False))
    return path


def test_current_context_is_used(tmp_path: Path) -> None:
    found = load_context([write(tmp_path / "config", kubeconfig())])
    assert (found.name, found.namespace, found.cluster["server"]) == ("one", "n", "https://one")
    assert "s3cret" not in repr(found)


def test_context_without_namespace_uses_default(tmp_path: Path) -> None:
    content = kubeconfig(contexts=[{"name": "one", "context": {"cluster": "c"}}])
    assert load_context([write(tmp_path / "config", content)]).namespace == "default"


def test_first_file_wins_when_merging(tmp_path: Path) -> None:
    first = write(tmp_path / "first", {"clusters": [{"name": "c", "cluster": {"server": "https://first"}}]})
    second = write(tmp_path / "second", kubeconfig())
    third = write(tmp_path / "third", kubeconfig(**{"current-context": "other"}))
    found = load_context([first, tmp_path / "missing", second, third])
    assert (found.name, found.cluster["server"], found.user_file) == ("one", "https://first", second)


def test_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    users = {
        "client-certificate": "me.crt",
        "tokenFile": "/run/token",
        "exec": {"command": "./bin/plugin"},
    }
    provider = {"auth-provider": {"name": "oidc", "config": {"idp-certificate-authority": "idp.crt"}}}
    content = kubeconfig(
        clusters=[{"name": "c", "cluster": {"server": "https://one", "certificate-authority": "pki/ca.crt"}}],
        users=[{"name": "u", "user": users}, {"name": "other", "user": provider}],
    )
    content["contexts"].append({"name": "two", "context": {"cluster": "c", "user": "other"}})
    path = write(tmp_path / "folder" / "config", content)
    found = load_context([path])
    folder = tmp_path / "folder"
    assert found.cluster["certificate-authority"] == str(folder / "pki/ca.crt")
    assert found.user["client-certificate"] == str(folder / "me.crt")
    assert found.user["tokenFile"] == "/run/token"
    assert found.user["exec"]["command"] == str(folder / "bin/plugin")
    other = load_context([path], "two").user
    assert other["auth-provider"]["config"]["idp-certificate-authority"] == str(folder / "idp.crt")


def test_plugin_without_path_is_looked_up_by_name(tmp_path: Path) -> None:
    content = kubeconfig(users=[{"name": "u", "user": {"exec": {"command": "aws"}}}])
    assert load_context([write(tmp_path / "config", content)]).user["exec"]["command"] == "aws"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("users: [s3cret", "is not YAML in line 1; correct it"),
        ("- s3cret", "is not a kubeconfig"),
        (kubeconfig(contexts=None), "has no contexts; name another file"),
        (kubeconfig(contexts={}), "contexts must be a list, not a mapping"),
        (kubeconfig(clusters="s3cret"), "clusters must be a list"),
        (kubeconfig(clusters=[{"cluster": "s3cret"}]), r"clusters\[0\] must be a mapping, not a text"),
        (kubeconfig(users=[{"name": "u", "user": "s3cret"}]), r"users\[u\] must be a mapping"),
        (kubeconfig(users=[]), r"contexts\[one\]\.user is 'u', but this user does not exist"),
        (kubeconfig(clusters=[]), r"clusters\[c\]\.server is missing"),
        (kubeconfig(**{"current-context": ""}), "current-context is not set; name one of the contexts: one"),
        (kubeconfig(**{"current-context": "x"}), "context 'x' does not exist; name one of: one"),
        ("", "has no contexts; name another file"),
    ],
)
def test_invalid_kubeconfig_names_file_field_and_remedy(tmp_path: Path, content: object, message: str) -> None:
    path = write(tmp_path / "config", content)
    with pytest.raises(UsageError, match=message) as caught:
        load_context([path])
    assert str(path) in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("section", "fields", "message"),
    [
        (
            "cluster",
            {"insecure-skip-tls-verify": "false"},
            r"clusters\[c\]\.insecure-skip-tls-verify must be true or false",
        ),
        ("cluster", {"insecure-skip-tls-verify": 0}, r"clusters\[c\]\.insecure-skip-tls-verify must be true or false"),
        ("user", {"token": 1234}, r"users\[u\]\.token must be a text, not a number; quote it"),
        ("user", {"exec": {"provideClusterInfo": "no"}}, r"users\[u\]\.exec\.provideClusterInfo must be true or false"),
        ("user", {"as-groups": "s3cret"}, r"users\[u\]\.as-groups must be a list, not a text"),
        ("user", {"username": "s3cret"}, r"users\[u\] has both token and username or password; remove one"),
        (
            "cluster",
            {"certificate-authority": "a", "certificate-authority-data": "YQ=="},
            "has both certificate-authority and",
        ),
        (
            "cluster",
            {"insecure-skip-tls-verify": True, "certificate-authority": "a"},
            "insecure-skip-tls-verify: true and",
        ),
    ],
)
def test_wrong_field_is_named(tmp_path: Path, section: str, fields: dict[str, Any], message: str) -> None:
    content = kubeconfig()
    content[f"{section}s"][0][section].update(fields)
    path = write(tmp_path / "config", content)
    with pytest.raises(UsageError, match=message) as caught:
        load_context([path])
    assert str(path) in str(caught.value)
    assert "s3cret" not in str(caught.value)


_LEVELS = range(1, 30)
BOMBS = {
    "aliases of aliases": "a0: &a0 lol\n"
    + "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in _LEVELS),
    "merged keys": "a0: &a0 {k: v}\n"
    + "".join(f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}\n" for level in _LEVELS),
    "itself": "a: &a [*a]\n",
    "depth": f"a: {'[' * 5000}{']' * 5000}\n",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
@pytest.mark.timeout(60)
def test_kubeconfig_with_too_many_aliases_raises(tmp_path: Path, bomb: str) -> None:
    path = write(tmp_path / "config", bomb)
    with pytest.raises(UsageError, match=r"config cannot be read: .*(alias|itself|depth)"):
        load_context([path])


def test_kubeconfig_may_have_aliases(tmp_path: Path) -> None:
    content = to_yaml([kubeconfig(users=[])], sort_keys=False) + "users:\n- &u {name: u, user: {token: x}}\n"
    content = content.replace("users: []\n", "").replace("namespace: 'n'", "namespace: &n 'n'") + "copy: *n\n"
    assert load_context([write(tmp_path / "config", content)]).namespace == "n"


# Token files: when they are read again, and which paths raise.


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_rotated_token_file_is_read_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    async with HttpTransport(server.url, token_file=tmp_path / "token") as transport:
        await fetch(transport)
        (tmp_path / "next").write_text("two\n")
        os.replace(tmp_path / "next", tmp_path / "token")
        server.answer = Gate("two")
        assert await fetch(transport) == b"Bearer two"
    assert len(server.requests) == 2


async def test_unchanged_token_file_is_read_again_after_a_minute(clock: Clock, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    file = TokenFile(path, now=clock)
    await file.current()
    status = path.stat()
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    before = await file.current()
    clock.time += 61
    after = await file.current()
    assert (before.authorization, after.authorization) == ("Bearer one", "Bearer two")


async def test_missing_token_file_leaves_the_last_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    file = TokenFile(path)
    await file.current()
    path.unlink()
    assert (await file.current()).authorization == "Bearer one"


async def test_token_is_used_until_its_file_can_be_read(clock: Clock, tmp_path: Path) -> None:
    source = TokenFile(tmp_path / "token", fallback=Credential("Bearer one"), now=clock)
    source.check()
    assert (await source.current()).authorization == "Bearer one"
    (tmp_path / "token").write_text("two")
    assert (await source.current()).authorization == "Bearer two"
    (tmp_path / "token").unlink()
    assert (await source.current()).authorization == "Bearer two"


@pytest.mark.parametrize("content", [None, "", "two words", "bell\a"])
async def test_invalid_token_file_raises_before_the_first_request(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=f"token file {path}.*name a readable file") as caught:
        async with HttpTransport("http://127.0.0.1:1", token_file=path):
            pass
    assert not content or content not in str(caught.value)


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_bytes(b"\xff\xfe\x00s3cret"), "it is not a text file"),
        (lambda path: path.write_bytes(b"s3cret\0"), "not one token"),
        (lambda path: path.write_text("s3cret\r\nX-Other: 1"), "not one token"),
        (lambda path: path.write_text("s3crét"), "not one token"),
        (large, "it has more than 1048576 bytes"),
        (lambda path: path.mkdir(), "it is not a regular file"),
        (os.mkfifo, "it is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is not a regular file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
)
async def test_invalid_token_file_is_a_transport_error(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    path = tmp_path / "token"
    make(path)
    before = open_files()
    with pytest.raises(TransportError, match=reason) as caught:
        await TokenFile(path).current()
    assert str(path) in str(caught.value)
    assert "s3cr" not in repr((caught.value, caught.value.__cause__, caught.value.__context__))
    assert open_files() == before


# Sources that raise or return something else: each is a TransportError.


RAISED = [
    ValueError("s3cret"),
    OverflowError("int too large to convert to float"),
    KeyError("s3cret"),
    OSError(5, "s3cret"),
    TimeoutError("s3cret"),
    RecursionError("s3cret"),
    MemoryError("s3cret"),
    AssertionError("s3cret"),
    StopAsyncIteration("s3cret"),
    UnicodeDecodeError("utf-8", b"s3cret", 0, 1, "s3cret"),
    ExceptionGroup("s3cret", [ValueError("s3cret")]),
    asyncio.CancelledError("s3cret"),
]
GIVEN: list[Any] = [
    None,
    "s3cret",
    {"token": "s3cret"},
    Credential(authorization=b"Bearer s3cret"),  # type: ignore[arg-type]
    Credential(authorization=None),  # type: ignore[arg-type]
    Credential(certificate=1, key=2),  # type: ignore[arg-type]
    Credential(authorization="Bearer s3cret\r\nX-Other: 1"),
    Credential(authorization="Bearer s3cret\n"),
]


class Source:
    """Raises an error or returns a value at each call."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    async def current(self) -> Credential:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        given: Credential = self.outcome
        return given

    async def renew(self, refused: Credential) -> Credential:
        return await self.current()


class Refused(Source):
    """Raises the error or returns the value after the first credential was refused."""

    async def current(self) -> Credential:
        return Credential()

    async def renew(self, refused: Credential) -> Credential:
        return await super().current()


class Renewed(RenewedCredentials):
    """Raises the error or returns the value in `fetch` of `RenewedCredentials`."""

    def __init__(self, outcome: Any) -> None:
        super().__init__()
        self.source = Source(outcome)

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        return await self.source.current(), None


def assert_silent(error: TransportError) -> None:
    """Check that no message, no cause and no local variable of our frames contains the secret."""
    assert [place for place, text in texts_of(error) if "s3cret" in text] == []
    assert error.__context__ is None
    assert error.__cause__ is None


@pytest.mark.parametrize("outcome", [*RAISED, *GIVEN], ids=repr)
@pytest.mark.parametrize("kind", [Source, Renewed])
async def test_any_error_of_a_source_is_a_transport_error(server: Server, kind: Any, outcome: Any) -> None:
    async with HttpTransport(server.url, credentials=kind(outcome)) as transport:
        with pytest.raises(TransportError) as caught:
            await transport.request(HttpRequest("/"))
    assert_silent(caught.value)
    assert server.requests == []
    if isinstance(outcome, ValueError):
        assert f"{kind.__name__} raised" in str(caught.value)
        assert "test_credentials.py:" in str(caught.value)


@pytest.mark.parametrize("outcome", [*RAISED, *GIVEN], ids=repr)
async def test_failed_renewal_of_a_source_returns_the_401(server: Server, outcome: Any) -> None:
    server.answer = bearer_only
    async with HttpTransport(server.url, credentials=Refused(outcome)) as transport:
        response = await transport.request(HttpRequest("/"))
        assert response.status == 401
        await response.close()
    assert len(server.requests) == 1


@needs_async_hooks
@pytest.mark.parametrize("outcome", [each for each in RAISED if isinstance(each, Exception)], ids=repr)
async def test_failed_hook_is_a_transport_error(server: Server, outcome: Exception) -> None:
    async def hook(configuration: Any) -> None:
        await Source(outcome).current()

    async with hooked(server, hook) as transport:
        with pytest.raises(TransportError, match=r"refresh_api_key_hook.*test_credentials\.py:") as caught:
            await transport.request(HttpRequest("/"))
        assert_silent(caught.value)


@pytest.mark.parametrize("outcome", [UsageError("log in again"), InformerStopped("log in again")])
async def test_own_errors_of_a_source_keep_their_message(server: Server, outcome: Exception) -> None:
    async with HttpTransport(server.url, credentials=Source(outcome)) as transport:
        with pytest.raises(TransportError, match="log in again"):
            await fetch(transport)


async def test_cancelled_request_is_not_a_failure_of_its_source(server: Server) -> None:
    class Slow(Source):
        async def current(self) -> Credential:
            await asyncio.Event().wait()
            raise AssertionError

    async with HttpTransport(server.url, credentials=Slow(None)) as transport:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await fetch(transport)
        waiting = asyncio.ensure_future(fetch(transport))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()


def test_repr_of_a_credential_hides_its_values() -> None:
    assert "s3cret" not in repr(Credential("Bearer s3cret", "s3cret", "s3cret"))
