"""What an admission function is, receives and raises."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec

from aioinformer.authorization.users import User
from aioinformer.cache.lister import Lister
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.client.bodies import decode
from aioinformer.client.subresources import FORMS
from aioinformer.errors import AioinformerError, DecodeError, UsageError
from aioinformer.functions import async_function, function_name
from aioinformer.resources.resource import Resource
from aioinformer.state import NO_STATE, State_co, Stated
from aioinformer.webhooks.options import HookOptions, Operation, Purpose, Registration
from aioinformer.webhooks.ratcheting import forgiven_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")
R = TypeVar("R")

NULL: Final = b"null"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Denied(AioinformerError):
    """Refuses a request of a client, which gets the status 422.

        raise Denied({"spec.size": "must not shrink"})

    Args:
        reason: path of each field -> what is wrong with it; or a text about the whole object.

    Attributes:
        fields: path of each field -> message; "" for the whole object.

    Raises:
        UsageError: a message is empty, or there is none.
    """

    def __init__(self, reason: Mapping[str, str] | str) -> None:
        self.fields: dict[str, str] = {"": reason} if isinstance(reason, str) else dict(reason)
        if not self.fields or not all(self.fields.values()):
            raise UsageError(f'Denied: pass a text, or a message for each field: {{"spec.size": "…"}}, not {reason!r}')
        super().__init__(", ".join(f"{field}: {text}" if field else text for field, text in self.fields.items()))


class ReadCache(Protocol):
    """The part of an informer that admission functions need."""

    def lister(self) -> Lister[Any]:
        """Return the lister."""

    async def wait_for_sync(self) -> None:
        """Wait until the cache has synced."""


class SentOptions(msgspec.Struct, rename="camel"):
    """The options of the client in a request."""

    field_manager: str = ""


class SentRequest(msgspec.Struct, rename="camel"):
    """The request in an AdmissionReview."""

    uid: str
    operation: str
    resource: dict[str, str]
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    user_info: User = User()
    object: msgspec.Raw = msgspec.Raw(NULL)
    old_object: msgspec.Raw = msgspec.Raw(NULL)
    dry_run: bool | None = None
    options: SentOptions | None = None


class AdmissionRequest(Stated[State_co], Generic[T, State_co]):
    """A request of a client of the API server that an admission function decides about.

    The server may call a function several times for one request, and may refuse the request afterwards: an admission
    function must not change anything.

    Attributes:
        resource: of the object, in the version in which the function gets it.
        operation: "create", "update" or "delete".
        subresource: that the client writes, of those in the declaration; "" for the object.
        namespace, name: of the object; the name is "" for a new object if the server generates it.
        user: the client.
        dry_run: whether nothing will be stored.
        warnings: see `warn`.
    """

    def __init__(
        self,
        hook: Hook[T],
        sent: SentRequest,
        informers: Mapping[str, ReadCache],
        *,
        is_own: bool = False,
        state: State_co = NO_STATE,
    ) -> None:
        super().__init__(state)
        self.resource = hook.resource
        self.operation: Operation = sent.operation.lower()  # type: ignore[assignment]
        self.subresource = sent.sub_resource
        self.namespace = sent.namespace
        self.name = sent.name
        self.user = sent.user_info
        self.dry_run = bool(sent.dry_run)
        self.warnings: list[str] = []
        self._hook = hook
        self._sent = sent
        self._informers = informers
        self._is_own = is_own

    @cached_property
    def object(self) -> T:
        """The object as it is to be stored; for a delete, the object that is deleted.

        For the subresource `scale`, it is a Scale, and likewise an Eviction, a Binding or a TokenRequest; for others,
        such as `status`, an object of the resource.

        Raises:
            Denied: the class of the resource refuses it, with the field. For a create or update, this has refused the
                request before the function is called.
        """
        return self._decoded(self._sent.old_object if self.operation == "delete" else self._sent.object)

    @cached_property
    def old(self) -> T | None:
        """The stored object; None for a create.

        Raises:
            Denied: the class of the resource refuses it, with the field. Unless the function catches it, the request
                is refused.
        """
        if bytes(self._sent.old_object) == NULL:
            return None
        return self._decoded(self._sent.old_object)

    def _decoded(self, body: msgspec.Raw) -> T:
        try:
            found: T = decode(bytes(body), self._hook.types[self.subresource])
            return found
        except DecodeError as error:
            refused = {field: f"the class refuses it: {why}" for field, why in error.fields.items()}
            raise Denied(refused or str(error)) from error

    def warn(self, text: str) -> None:
        """Send a warning to the client, which kubectl prints. Keep it below 120 characters.

        Line breaks and other control characters, with which the API server would drop it, become spaces. The own
        writes of the manager's controllers get no warnings.
        """
        if not self._is_own:
            self.warnings.append(_CONTROL.sub(" ", text))

    def lister(self, resource: Resource[R]) -> Lister[R]:
        """Return the lister of a resource that the function reads, whose cache has synced.

        Raises:
            UsageError: `reads` of the function does not have the resource.
        """
        if resource.gvr not in self._hook.reads:
            raise UsageError(f"{self._hook}: add {resource.gvr} to reads, so that the manager has a cache of it")
        return self._informers[resource.gvr].lister()

    def __repr__(self) -> str:
        return f"<{self.operation} of {self.resource.group_resource} {self.namespace}/{self.name} by {self.user.name}>"


class Hook(Generic[T]):
    """An admission function, and for which requests it runs.

    Args:
        purpose: "default", which changes objects, or "validate".
        resource: of the objects.
        function: an async function of an `AdmissionRequest`.
        options: see `HookOptions`.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(self, purpose: Purpose, resource: Resource[T], function: Any, options: HookOptions) -> None:
        if not isinstance(resource, Resource):
            raise UsageError(f"{purpose}: write the resource in the decorator: @manager.{purpose}(WIDGETS)")
        self.purpose = purpose
        self.resource = resource
        self.function: Callable[[AdmissionRequest[T]], Coroutine[Any, Any, Any]]
        self.function = async_function(function, f"{purpose} of {resource.gvr}", "the function", "request")
        self.options = Registration(options, purpose, resource, str(self))
        self.operations = self.options.operations
        self.subresources = self.options.subresources
        reads = options.get("reads", ())
        found = [reads] if isinstance(reads, Resource) else list(reads)
        if not all(isinstance(each, Resource) for each in found):
            raise UsageError(f"{self}: reads must be a list of resources such as [CONFIG_MAPS], not {reads!r}")
        self.reads = {each.gvr: each for each in found}
        #: The types of the objects in reviews, by subresource.
        self.types: dict[str, ObjectType[Any]]
        self.types = {name: ObjectType(FORMS.get(name, resource)) for name in self.subresources}

    @property
    def path(self) -> str:
        """The end of the path of its URL: "validate/widgets.example.com"."""
        return f"{self.purpose}/{self.resource.group_resource}"

    def forgiven_fields(self, sent: SentRequest) -> list[str]:
        """Return the fields that the class refuses in an update that passes without the function; [] for none."""
        status_apart = "status" in self.resource.subresources
        objects = self.types[sent.sub_resource]
        return forgiven_fields(bytes(sent.object), bytes(sent.old_object), objects, status_apart=status_apart)

    def __str__(self) -> str:
        return f"{self.purpose} of {self.resource.gvr} by {function_name(self.function)}"
