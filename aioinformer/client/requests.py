"""The requests of a client: options, headers, queries and paths, without any I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypedDict, TypeVar, get_args
from urllib.parse import quote

from aioinformer.errors import KeyFuncError, OptionError, UnknownOption, UsageError, did_you_mean
from aioinformer.resources.keys import metadata_field, metadata_of, object_name
from aioinformer.transport.auth.secret import PrivateHeaders

if TYPE_CHECKING:
    from aioinformer.resources.resource import Resource

FieldValidation: TypeAlias = Literal["Ignore", "Warn", "Strict"]
PatchType: TypeAlias = Literal["merge", "json", "strategic"]
Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]

T = TypeVar("T")


class HasMetadata(Protocol):
    """An object of a cache, of kubernetes_asyncio, or of a class of the user."""

    @property
    def metadata(self) -> Any:
        """The metadata, with a name."""


class Mutable(Protocol):
    """An object of a class of the user that is not frozen."""

    @property
    def metadata(self) -> Any:
        """The metadata, which can be replaced."""

    @metadata.setter
    def metadata(self, value: Any) -> None: ...


class Generated(Protocol):
    """A model of kubernetes_asyncio."""

    def to_str(self) -> str:
        """Return it as text."""


#: What a request is about: `name`, `namespace/name`, or an object with metadata.
Target: TypeAlias = str | Mapping[str, Any] | HasMetadata
#: What a request stores: an object of the type of the client, or another form of one, but no view of another kind.
Body: TypeAlias = T | Mapping[str, Any] | Mutable | Generated

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
PATCHES: Final[Mapping[str, str]] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}

Query: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user as whom requests are processed. The user of the connection needs the verb `impersonate`.

    Attributes:
        user: the name of the user, "system:serviceaccount:shop:deployer" for a service account.
        groups: the groups of the user.
        uid: the uid of the user, "" for none.
        extra: more attributes of the user, each with several values.
    """

    user: str
    groups: Sequence[str] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def headers(self) -> PrivateHeaders:
        """Return the headers of a request."""
        headers = PrivateHeaders({"Impersonate-User": self.user})
        if self.uid:
            headers["Impersonate-Uid"] = self.uid
        for group in self.groups:
            headers.add("Impersonate-Group", group)
        for name, values in self.extra.items():
            for value in values:
                headers.add(f"Impersonate-Extra-{quote(name, safe='')}", value)
        return headers


class ReadOptions(TypedDict, total=False):
    """The options of every request. What is omitted is as in the client.

    Attributes:
        timeout: seconds for the whole call, with all waits and repetitions; None or `math.inf` for no limit.
        impersonate: the user as whom the request is processed; None for the user of the connection.
        retry: wait for a server that is starting or has too much to do, and repeat; False raises the first failure.
    """

    timeout: float | None
    impersonate: Impersonation | str | None
    retry: bool


class WriteOptions(ReadOptions, total=False):
    """The options of every write. What is omitted is as in the client.

    Attributes:
        dry_run: process the request, and store nothing.
        field_manager: the name under which the server records who set which field.
        field_validation: what the server does about unknown and duplicate fields; None for its default, "Warn".
            Warnings are logged.
    """

    dry_run: bool
    field_manager: str | None
    field_validation: FieldValidation | None


@dataclass(frozen=True)
class Settings:
    """The options of a client; see `WriteOptions`.

    Raises:
        OptionError: a value is invalid.
    """

    timeout: float | None = 30.0
    impersonate: Impersonation | str | None = None
    retry: bool = True
    dry_run: bool = False
    field_manager: str | None = None
    field_validation: FieldValidation | None = None

    def __post_init__(self) -> None:
        timeout: object = self.timeout
        if timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0):
            raise OptionError(f"timeout must be a positive number of seconds, or None for no limit, not {timeout!r}")
        if timeout == math.inf:
            object.__setattr__(self, "timeout", None)
        if self.field_validation is not None and self.field_validation not in get_args(FieldValidation):
            expected = ", ".join(get_args(FieldValidation))
            raise OptionError(f"field_validation must be None or one of {expected}, not {self.field_validation!r}")
        impersonate = self.impersonate
        if isinstance(impersonate, str):
            impersonate = Impersonation(impersonate)
        if impersonate is not None and not isinstance(impersonate, Impersonation):
            raise OptionError(
                f"impersonate must be the name of a user or an Impersonation, not {type(impersonate).__name__}"
            )
        if impersonate is not None and not impersonate.user:
            raise OptionError("impersonate must name a user; groups alone cannot be impersonated")
        self.__dict__["_headers"] = {}
        self.__dict__["_impersonation"] = impersonate

    def changed(self, options: Mapping[str, Any], caller: str) -> Settings:
        """Return these settings with the options of one call.

        Args:
            caller: the method that got them, for errors.

        Raises:
            UnknownOption: there is no such option.
            OptionError: a value is invalid.
        """
        if not options:
            return self
        for name in options:
            if name not in _KNOWN:
                hint = did_you_mean(name, _KNOWN)
                raise UnknownOption(
                    f"{caller} has no option {name!r}{hint and f' ({hint})'}; the options are {', '.join(_KNOWN)}"
                )
        return replace(self, **options)

    def manager(self, caller: str) -> str:
        """Return the field manager.

        Raises:
            UsageError: there is none.
        """
        if not self.field_manager:
            raise UsageError(f'{caller} needs a field manager: pass field_manager="…" here or to the client')
        return self.field_manager

    def headers(self, content_type: str = "", accept: str = JSON) -> PrivateHeaders:
        """Return the headers of a request. They are shared: do not change them.

        Args:
            content_type: of the body, "" if there is none.
        """
        known: dict[tuple[str, str], PrivateHeaders] = self.__dict__["_headers"]
        headers = known.get((content_type, accept))
        if headers is None:
            impersonation: Impersonation | None = self.__dict__["_impersonation"]
            headers = PrivateHeaders() if impersonation is None else impersonation.headers()
            headers["Accept"] = accept
            if content_type:
                headers["Content-Type"] = content_type
            known[content_type, accept] = headers
        return headers

    def write_query(self) -> Query:
        """Return the parameters of create, replace and patch."""
        if not (self.dry_run or self.field_manager or self.field_validation):
            return ()
        query = (
            ("dryRun", "All" if self.dry_run else ""),
            ("fieldManager", self.field_manager or ""),
            ("fieldValidation", self.field_validation or ""),
        )
        return tuple((name, value) for name, value in query if value)


_KNOWN: Final = tuple(each.name for each in fields(Settings))


def delete_options(
    propagation: str | None, grace: Any, uid: str, resource_version: str, *, dry_run: bool
) -> dict[str, Any]:
    """Return the DeleteOptions of a request, {} for none.

    Raises:
        OptionError: a value is invalid.
    """
    if propagation is not None and propagation not in get_args(Propagation):
        expected = ", ".join(get_args(Propagation))
        raise OptionError(f"propagation must be None or one of {expected}, not {propagation!r}")
    if grace is not None and (not isinstance(grace, int) or grace < 0):
        raise OptionError(f"grace must be None or a whole number of seconds, at least 0, not {grace!r}")
    options: dict[str, Any] = {}
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if uid or resource_version:
        conditions = {"uid": uid, "resourceVersion": resource_version}
        options["preconditions"] = {name: value for name, value in conditions.items() if value}
    if dry_run:
        options["dryRun"] = ["All"]
    return options and {"apiVersion": "v1", "kind": "DeleteOptions", **options}


def locate(resource: Resource[Any], bound: str, target: object, namespace: str) -> tuple[str, str]:
    """Return namespace ("" for cluster-scoped resources) and name of the object that a call means.

    Args:
        bound: the namespace of the client, "" for none.
        target: `name`, `namespace/name`, or an object.
        namespace: the argument of the call, "" for none.

    Raises:
        UsageError: there is no name or no namespace, or two namespaces contradict each other.
    """
    if isinstance(target, str):
        own, slash, name = target.rpartition("/") if "/" in target else ("", "", target)
        if not name or "/" in own or (slash and (not own or not resource.namespaced)):
            form = '"name" or "namespace/name"' if resource.namespaced else '"name"'
            raise UsageError(f"{resource.gvr}: {target!r} does not name an object; write {form}")
    else:
        try:
            own, name = object_name(target)
        except KeyFuncError as error:
            raise UsageError(f"{resource.gvr}: {error}; pass a name, or an object with metadata.name") from None
    return place(resource, bound, own, namespace), name


def place(resource: Resource[Any], bound: str, own: str, namespace: str) -> str:
    """Return the namespace of an object, "" for a cluster-scoped resource.

    The arguments are those of `locate`; `own` is the namespace in the object or in its key, "" for none.

    Raises:
        UsageError: no namespace is given, or two contradict each other.
    """
    if not resource.namespaced:
        if namespace or own:
            raise UsageError(f"{resource.gvr} is cluster-scoped: leave out the namespace {namespace or own!r}")
        return ""
    found = namespace or own or bound
    if not found:
        raise UsageError(
            f'{resource.gvr}: no namespace is given; pass namespace="…", write "namespace/name", or use '
            'namespaced("…") of the client'
        )
    for other, what in ((own, "the object"), (bound, "the client")):
        if other and other != found:
            raise UsageError(f"{resource.gvr}: the namespace is {found!r}, and that of {what} is {other!r}")
    return found


def namespace_in(obj: Any) -> str:
    """Return the namespace in the metadata of an object, "" if it has none. The object may have no metadata."""
    try:
        metadata = metadata_of(obj)
    except KeyFuncError:
        return ""
    return str(metadata_field(metadata, "namespace", "namespace") or "")
