"""The fields of kubeconfig files and their types, as `k8s.io/client-go/tools/clientcmd/api/v1` declares them.

As for client-go, null stands for an absent field, unknown fields are ignored, and a value of another type makes the
whole file wrong: a text in the place of a bool is an error, and never true.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, TypedDict

import msgspec

from aioinformer.transport.auth.secret import PrivateDict, private


class _Extension(TypedDict, total=False):
    name: str
    extension: Any


_Cluster = TypedDict(
    "_Cluster",
    {
        "server": str,
        "tls-server-name": str,
        "insecure-skip-tls-verify": bool,
        "certificate-authority": str,
        "certificate-authority-data": str,
        "proxy-url": str,
        "disable-compression": bool,
        "extensions": list[_Extension],
    },
    total=False,
)


class _Variable(TypedDict, total=False):
    name: str
    value: str


class _Exec(TypedDict, total=False):
    command: str
    args: list[str]
    env: list[_Variable]
    apiVersion: str
    installHint: str
    provideClusterInfo: bool
    interactiveMode: str


class _Provider(TypedDict, total=False):
    name: str
    config: dict[str, str]


_User = TypedDict(
    "_User",
    {
        "client-certificate": str,
        "client-certificate-data": str,
        "client-key": str,
        "client-key-data": str,
        "token": str,
        "tokenFile": str,
        "as": str,
        "as-uid": str,
        "as-groups": list[str],
        "as-user-extra": dict[str, list[str]],
        "username": str,
        "password": str,
        "auth-provider": _Provider,
        "exec": _Exec,
        "extensions": list[_Extension],
    },
    total=False,
)


class _Context(TypedDict, total=False):
    cluster: str
    user: str
    namespace: str
    extensions: list[_Extension]


class _NamedCluster(TypedDict, total=False):
    name: str
    cluster: _Cluster


class _NamedUser(TypedDict, total=False):
    name: str
    user: _User


class _NamedContext(TypedDict, total=False):
    name: str
    context: _Context


_Kubeconfig = TypedDict(
    "_Kubeconfig",
    {
        "apiVersion": Literal["v1", ""],
        "kind": Literal["Config", ""],
        "current-context": str,
        "clusters": list[_NamedCluster],
        "users": list[_NamedUser],
        "contexts": list[_NamedContext],
        "extensions": list[_Extension],
    },
    total=False,
)

_MISMATCH: Final = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<found>[^`]+)`.*?(?: - at `(?P<path>[^`]+)`)?")
_SECTION: Final = re.compile(
    r"(?P<kind>clusters|users|contexts)\[(?P<index>\d+)\](?:\.(?:cluster|user|context)(?=$|\.))?"
)
_WORDS: Final = {
    "str": "a text",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "null": "null",
    "array": "a list",
    "object": "a mapping",
}
_REMEDIES: Final = {"str": "quote it", "bool": "write true or false, without quotes"}
_FOUND: Final = {"bool": "a boolean"}


def typed(content: dict[str, Any]) -> PrivateDict | str:
    """Return the known fields of a kubeconfig, without nulls, or what is wrong. Never raises: it holds secrets.

    What is wrong names the field, its section by name, and the remedy; it quotes no value.
    """
    stripped = _without_nulls(content)
    for kind in ("clusters", "users", "contexts"):
        if isinstance(stripped.get(kind), list):
            stripped[kind] = [entry for entry in stripped[kind] if entry is not None]
    try:
        return PrivateDict(private(msgspec.convert(stripped, _Kubeconfig)))
    except msgspec.ValidationError as error:
        return _flaw(str(error), stripped)


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            members = ((name, item) for name, item in value.items() if item is not None)
            return PrivateDict({name: item if name == "extension" else _without_nulls(item) for name, item in members})
        case list():
            return [_without_nulls(item) for item in value]
    return value


def _flaw(message: str, content: dict[str, Any]) -> str:
    found = _MISMATCH.fullmatch(message)
    if found is None:  # `apiVersion` or `kind`: the only fields that are not of a type, but of two values
        return "is not a kubeconfig: apiVersion must be v1, and kind must be Config; correct them, or name another file"
    wanted = found["wanted"]
    actual = _FOUND.get(found["found"]) or _WORDS[found["found"]]
    remedy = _REMEDIES.get(wanted, "correct it")
    return f"{_place(found['path'] or '$', content)} must be {_WORDS[wanted]}, not {actual}; {remedy}"


def _place(path: str, content: dict[str, Any]) -> str:
    """Return the field of a path such as "$.users[0].user.token", with the name of the entry."""
    path = path.removeprefix("$.")
    section = _SECTION.match(path)
    if section is None:
        return path
    entry = content[section["kind"]][int(section["index"])]
    name = entry.get("name") if isinstance(entry, dict) else None
    label = name if isinstance(name, str) and name else section["index"]
    return f"{section['kind']}[{label}]{path[section.end() :]}"
