"""Read and merge kubeconfig files, and look up a context.

Merging follows kubectl: the first file wins for entries of the same name and for `current-context`, and files that do
not exist are skipped. Paths are relative to the file that contains them. Errors name the file and the field, but quote
no values, because these files contain secrets.
"""

from __future__ import annotations

import os
from base64 import b64decode
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioinformer.errors import UsageError
from aioinformer.transport.auth.secret import PrivateDict, Secret, private
from aioinformer.transport.failures import os_reason
from aioinformer.transport.session import TLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PATHS = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
    "contexts": (),
}
_BODIES = {"clusters": "cluster", "users": "user", "contexts": "context"}


@dataclass(frozen=True, slots=True)
class Context:
    """A context with its cluster and its user. All paths are absolute.

    Attributes:
        user: the section of the user, empty for none.
        user_name: the name of the user, "" for none.
        cluster_where: the place of the cluster's section, for messages.
    """

    name: str
    namespace: str
    cluster: Mapping[str, Any] = field(repr=False)
    user: Mapping[str, Any] = field(repr=False)
    user_name: str
    user_file: Path
    cluster_where: str = ""

    @property
    def where(self) -> str:
        """The place of the user's section, for messages."""
        return f"kubeconfig {self.user_file}: users[{self.user_name}]"


def kubeconfig_paths(environment: Mapping[str, str]) -> list[Path]:
    """Return the files that kubectl reads: those of KUBECONFIG, otherwise ~/.kube/config. They need not exist."""
    listed = [name for name in environment.get("KUBECONFIG", "").split(os.pathsep) if name]
    # Not Path.expanduser(): it raises if a container's user has no home folder.
    return [Path(os.path.expanduser(name)) for name in listed or ["~/.kube/config"]]


def load_context(paths: Iterable[Path], name: str | None = None) -> Context:
    """Read and merge files, and return a context.

    Args:
        paths: the files in order of precedence. Files that do not exist are skipped.
        name: the name of the context, None for the current one.

    Raises:
        UsageError: a file cannot be read or is not a kubeconfig, or the context does not exist.
    """
    merged: dict[str, dict[str, tuple[PrivateDict, Path]]] = {kind: {} for kind in _BODIES}
    current, read = "", []
    for path in paths:
        if (content := read_kubeconfig(path)) is None:
            continue
        read.append(path)
        current = current or str(content.get("current-context") or "")
        for kind, entries in merged.items():
            for entry_name, body in _entries(content, kind, path):
                entries.setdefault(entry_name, (body, path))
    files = ", ".join(map(str, read))
    wanted = name or current
    if not merged["contexts"]:
        raise UsageError(f"kubeconfig {files} has no contexts; name another file, or set KUBECONFIG")
    known = ", ".join(sorted(merged["contexts"]))
    if not wanted:
        raise UsageError(f"kubeconfig {files}: current-context is not set; name one of the contexts: {known}")
    if wanted not in merged["contexts"]:
        raise UsageError(f"kubeconfig {files}: context {wanted!r} does not exist; name one of: {known}")
    context, path = merged["contexts"][wanted]
    cluster_name, user_name = str(context.get("cluster") or ""), str(context.get("user") or "")
    cluster, cluster_file = merged["clusters"].get(cluster_name, (PrivateDict(), path))
    if not cluster.get("server"):
        raise UsageError(
            f"kubeconfig {cluster_file}: clusters[{cluster_name}].server is missing, and contexts[{wanted}] needs it; "
            "add the URL of the server"
        )
    if user_name and user_name not in merged["users"]:
        raise UsageError(
            f"kubeconfig {path}: contexts[{wanted}].user is {user_name!r}, but this user does not exist; "
            "add the user, or correct the name"
        )
    user, user_file = merged["users"].get(user_name, (PrivateDict(), path))
    return Context(
        name=wanted,
        namespace=str(context.get("namespace") or "default"),
        cluster=cluster,
        user=user,
        user_name=user_name,
        user_file=user_file,
        cluster_where=f"kubeconfig {cluster_file}: clusters[{cluster_name}]",
    )


def tls_of(found: Context) -> TLS:
    """Return the TLS settings of a context. Data precedes files, as in client-go.

    Raises:
        UsageError: a field with data is not base64. The message names it, and quotes no content.
    """
    cluster, user = found.cluster, found.user
    return TLS(
        certificate_authority=cluster.get("certificate-authority") or None,
        client_certificate=user.get("client-certificate") or None,
        client_key=user.get("client-key") or None,
        verify=not cluster.get("insecure-skip-tls-verify"),
        server_name=cluster.get("tls-server-name") or None,
        certificate_authority_data=_pem(cluster, "certificate-authority-data", found.cluster_where),
        client_certificate_data=_pem(user, "client-certificate-data", found.where),
        client_key_data=_pem(user, "client-key-data", found.where),
    )


def _pem(section: Mapping[str, Any], name: str, where: str) -> str:
    decoded = _decoded(section, name)
    if decoded is None:
        raise UsageError(f"{where}.{name} is not base64; put the PEM text there in base64, or name a file")
    return decoded.text


def _decoded(section: Mapping[str, Any], name: str) -> Secret | None:
    """Return the text, None if it is not base64. Never raises: local variables hold the text."""
    try:
        # What is not ASCII can only be a comment.
        return Secret(b64decode("".join(str(section.get(name) or "").split()), validate=True).decode("ascii", "ignore"))
    except ValueError as error:
        error.__traceback__ = None
        return None


def read_kubeconfig(path: Path) -> PrivateDict | None:
    """Return the content of a file, {} if it is empty, None if it does not exist.

    Raises:
        UsageError: the file cannot be read or is not a kubeconfig.
    """
    found = _parsed(path)
    if found is None or isinstance(found, PrivateDict):
        return found
    if isinstance(found, OSError):
        raise UsageError(f"kubeconfig {path} cannot be read: {os_reason(found)}; make it readable") from found
    raise UsageError(f"kubeconfig {path} {found}")


def _parsed(path: Path) -> PrivateDict | OSError | str | None:
    """Return the content of a file, None if it does not exist, or what is wrong. Never raises: locals hold secrets."""
    import yaml

    from aioinformer.transport.auth.yaml_documents import UnboundedDocument, line_of, load_yaml

    data = b""
    try:
        data = path.read_bytes()
        content = load_yaml(data)
    except FileNotFoundError:
        return None
    except OSError as error:
        error.__traceback__ = None
        return error
    except UnboundedDocument as error:
        return f"cannot be read: {error.problem}; replace its aliases by their values"
    except (yaml.YAMLError, ValueError) as error:
        line = line_of(error, data) if isinstance(error, yaml.YAMLError) else None
        return f"is not YAML{'' if line is None else f' in line {line}'}; correct it"
    if content is None:
        return PrivateDict()
    if not isinstance(content, dict):
        return "is not a kubeconfig: it must be a mapping with clusters, users and contexts"
    return PrivateDict(private(content))


def _entries(content: Mapping[str, Any], kind: str, path: Path) -> Iterable[tuple[str, PrivateDict]]:
    if (flaw := _flaw(content, kind)) is not None:
        raise UsageError(f"kubeconfig {path}: {flaw}")
    for entry in content.get(kind) or ():
        body = entry.get(_BODIES[kind]) or PrivateDict()
        yield str(entry["name"]), _with_absolute_paths(body, kind, path)


def _flaw(content: Mapping[str, Any], kind: str) -> str | None:
    """Return what is wrong with a list of entries, None if nothing is. Never raises: misplaced values may be secret."""
    entries = content.get(kind) or []
    if not isinstance(entries, list):
        return f"{kind} must be a list"
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or not entry.get("name"):
            return f"{kind}[{index}].name is missing; give the entry a name"
        if not isinstance(entry.get(_BODIES[kind]) or {}, dict):
            return f"{kind}[{entry['name']}].{_BODIES[kind]} must be a mapping"
    return None


def _with_absolute_paths(body: PrivateDict, kind: str, path: Path) -> PrivateDict:
    folder = path.absolute().parent
    body = PrivateDict(body)
    for name in _PATHS[kind]:
        if body.get(name):
            body[name] = str(folder / str(body[name]))
    plugin = body.get("exec")
    if kind == "users" and isinstance(plugin, dict) and os.sep in str(plugin.get("command") or ""):
        body["exec"] = PrivateDict(plugin, command=str(folder / str(plugin["command"])))
    provider = body.get("auth-provider")
    if kind == "users" and isinstance(provider, dict) and isinstance(provider.get("config"), dict):
        settings = PrivateDict(provider["config"])
        if settings.get("idp-certificate-authority"):
            settings["idp-certificate-authority"] = str(folder / str(settings["idp-certificate-authority"]))
        body["auth-provider"] = PrivateDict(provider, config=settings)
    return body
