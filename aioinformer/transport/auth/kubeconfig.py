"""Read and merge kubeconfig files, and look up a context.

Files are read as kubectl reads them: the first document of each counts, and fields have types (`kubeconfig_fields`).
The first file wins for entries of the same name and for `current-context`, and files that do not exist are skipped.
Paths are relative to the file that contains them. What kubectl refuses as contradictory is refused. Errors name the
file and the field, but quote no values, because these files contain secrets.
"""

from __future__ import annotations

import os
from base64 import b64decode
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioinformer.errors import UsageError
from aioinformer.transport.auth.kubeconfig_fields import typed
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
    current = ""
    read = []
    for path in paths:
        if (content := read_kubeconfig(path)) is None:
            continue
        read.append(path)
        fields = typed(content)
        if isinstance(fields, str):
            raise UsageError(f"kubeconfig {path}: {fields}")
        current = current or fields.get("current-context", "")
        for kind, entries in merged.items():
            for entry_name, body in _entries(fields, kind, path).items():
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
    cluster_name = context.get("cluster", "")
    user_name = context.get("user", "")
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
    found = Context(
        name=wanted,
        namespace=context.get("namespace") or "default",
        cluster=cluster,
        user=user,
        user_name=user_name,
        user_file=user_file,
        cluster_where=f"kubeconfig {cluster_file}: clusters[{cluster_name}]",
    )
    if (contradiction := _contradiction(found)) is not None:
        raise UsageError(contradiction)
    return found


def tls_of(found: Context) -> TLS:
    """Return the TLS settings of a context.

    Raises:
        UsageError: a field with data is not base64. The message names it, and quotes no content.
    """
    cluster = found.cluster
    user = found.user
    return TLS(
        certificate_authority=cluster.get("certificate-authority") or None,
        client_certificate=user.get("client-certificate") or None,
        client_key=user.get("client-key") or None,
        verify=cluster.get("insecure-skip-tls-verify") is not True,
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
        return Secret(b64decode("".join(section.get(name, "").split()), validate=True).decode("ascii", "ignore"))
    except ValueError as error:
        error.__traceback__ = None
        return None


def read_kubeconfig(path: Path) -> PrivateDict | None:
    """Return the content of a file as it is, {} if it is empty, None if it does not exist.

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


def _entries(fields: Mapping[str, Any], kind: str, path: Path) -> dict[str, PrivateDict]:
    """Return the entries of a list by name. Those without a name cannot be referred to."""
    found: dict[str, PrivateDict] = {}
    for entry in fields.get(kind, ()):
        name = entry.get("name", "")
        if name in found:
            raise UsageError(f"kubeconfig {path}: {kind}[{name}] is there twice; remove one of the entries")
        found[name] = _with_absolute_paths(entry.get(_BODIES[kind]) or PrivateDict(), kind, path)
    found.pop("", None)
    return found


def _contradiction(found: Context) -> str | None:
    """Return which fields contradict each other, and the remedy; None if no fields do. Never raises: it has secrets."""
    cluster = found.cluster
    user = found.user
    for where, section, name in (
        (found.cluster_where, cluster, "certificate-authority"),
        (found.where, user, "client-certificate"),
        (found.where, user, "client-key"),
    ):
        if section.get(name) and section.get(f"{name}-data"):
            return f"{where} has both {name} and {name}-data; remove one of them"
    if cluster.get("insecure-skip-tls-verify") is True:
        for name in ("certificate-authority", "certificate-authority-data"):
            if cluster.get(name):
                return f"{found.cluster_where} has both insecure-skip-tls-verify: true and {name}; remove one of them"
    if user.get("token") and (user.get("username") or user.get("password")):
        return f"{found.where} has both token and username or password; remove one of them"
    if "exec" in user and "auth-provider" in user:
        return f"{found.where} has both exec and auth-provider; remove one of them"
    if not user.get("as"):
        for name in ("as-uid", "as-groups", "as-user-extra"):
            if user.get(name):
                return f"{found.where}.{name} needs a user to impersonate; set as, too"
    return None


def _with_absolute_paths(body: PrivateDict, kind: str, path: Path) -> PrivateDict:
    folder = path.absolute().parent
    body = PrivateDict(body)
    for name in _PATHS[kind]:
        if body.get(name):
            body[name] = str(folder / body[name])
    if kind != "users":
        return body
    plugin = body.get("exec")
    if plugin is not None and os.sep in plugin.get("command", ""):
        body["exec"] = PrivateDict(plugin, command=str(folder / plugin["command"]))
    provider = body.get("auth-provider")
    if provider is not None and (authority := provider.get("config", {}).get("idp-certificate-authority")):
        settings = PrivateDict(provider["config"])
        settings["idp-certificate-authority"] = str(folder / authority)
        body["auth-provider"] = PrivateDict(provider, config=settings)
    return body
