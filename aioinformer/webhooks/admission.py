"""`Admission`: answers the reviews of the API server with admission functions.

A review is answered in steps: read it, wait for the caches that the function reads, decode the objects, call the
function, and turn what it returned or raised into a response. An answer other than 200 says that there is no decision;
the API server then does what `failurePolicy` of the webhook says.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, Unpack

import msgspec

from aioinformer.client.changes.carrying import json_patch
from aioinformer.client.changes.patches import changed_members, document_of, merge_patch
from aioinformer.crds import CustomResource
from aioinformer.errors import USER_ERRORS, UsageError
from aioinformer.exports import lazy_type
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.logs import get_logger
from aioinformer.metrics.counters import WebhookCounters
from aioinformer.resources.resource import Resource
from aioinformer.serving import Answer, WebRequest, answer_asgi
from aioinformer.state import NO_STATE, State
from aioinformer.webhooks.conversion import LARGEST as LARGEST_CONVERSION
from aioinformer.webhooks.conversion import PATH as CONVERT
from aioinformer.webhooks.conversion import Conversions
from aioinformer.webhooks.hooks import NULL, AdmissionRequest, Denied, Hook, ReadCache, SentRequest
from aioinformer.webhooks.options import HookOptions, Purpose

T = TypeVar("T")

if TYPE_CHECKING:
    from aioinformer.factory.pool import ControllerInformers
    from aioinformer.informer.shared_informer import SharedIndexInformer
else:
    ControllerInformers = lazy_type("aioinformer.factory.pool", "ControllerInformers")

_Validator: TypeAlias = Callable[[AdmissionRequest[T, State]], Coroutine[Any, Any, None]]
_Default: TypeAlias = Callable[[AdmissionRequest[T, State]], Coroutine[Any, Any, T]]

_log = get_logger("aioinformer.webhooks")

_VERSION: Final = "admission.k8s.io/v1"
#: Seconds, of a server that does not say how long it waits.
_TIMEOUT: Final = 10.0
#: Seconds by which a function ends before the server stops to wait, but at most half of the time.
_MARGIN: Final = 0.5
#: Bytes: two objects of 3 MiB, the largest that the API server accepts, and what is around them.
LARGEST: Final = 8 * 2**20
_SECONDS: Final = re.compile(r"(\d+(?:\.\d+)?)s")


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: msgspec.Raw = msgspec.Raw(NULL)


_decode_review = msgspec.json.Decoder(_Review).decode
_decode_request = msgspec.json.Decoder(SentRequest).decode


class Admission:
    """The admission functions of a manager. It is also an ASGI application, for a server of your own.

        app.mount("/admission", manager.admission)

    The end of the path of a request names the function: `validate/widgets.example.com`, or `default/…`. Functions may
    be called while the manager runs, whether it is the leader or not.

    Attributes:
        conversions: the resources between whose versions it converts, at `convert`.
        port: at which the manager serves it; None while it does not.
        trouble: why it cannot be served, "" for nothing.
    """

    def __init__(self, name: str) -> None:
        self.port: int | None = None
        self.trouble = ""
        self._name = name
        #: By path, and then by operation and subresource.
        self._hooks: dict[str, dict[tuple[str, str], Hook[Any]]] = {}
        self.conversions = Conversions()
        self._errors = RepeatedErrors(_log)
        self._counters: dict[str, WebhookCounters] = {}
        #: The caches that the functions read, by `gvr`; None while the manager does not run.
        self._informers: dict[str, SharedIndexInformer[Any]] | None = None
        self._is_own: Callable[[str], bool] = lambda manager: False
        self._state: Any = NO_STATE

    def convert(self, resource: CustomResource[Any]) -> None:
        """Convert between the versions of a resource.

        Raises:
            UsageError: no version of it declares how it is converted.
        """
        self.conversions.declare(resource)
        self._counters.setdefault(CONVERT, WebhookCounters(f"/{CONVERT}"))

    def declare(self, hook: Hook[Any]) -> None:
        """Add a function.

        Raises:
            UsageError: there is one for the same kind, operation and subresource, or the manager runs.
        """
        if self._informers is not None:
            raise UsageError(f"manager {self._name} runs: declare {hook} before the start")
        known = self._hooks.setdefault(hook.path, {})
        requests = list(product(hook.operations, hook.subresources))
        for each in requests:
            if (other := known.get(each)) is not None:
                what = " of ".join(filter(None, each))
                raise UsageError(
                    f"manager {self._name}: {what} has two functions: {other}, and {hook}; make one of them"
                )
        known.update(dict.fromkeys(requests, hook))
        resource = hook.resource
        if isinstance(resource, CustomResource) and resource.others and resource.converts:
            self.convert(resource)
        self._counters.setdefault(hook.path, WebhookCounters(f"/{hook.path}"))

    @property
    def largest(self) -> int:
        """Bytes of a body, at most."""
        return LARGEST_CONVERSION if self.conversions.resources() else LARGEST

    def hooks(self) -> list[Hook[Any]]:
        """Return the functions, by path."""
        found = (hook for _, hooks in sorted(self._hooks.items()) for hook in hooks.values())
        return list(dict.fromkeys(found))

    def attach(self, informers: ControllerInformers, is_own: Callable[[str], bool], state: Any) -> None:
        """Acquire the caches that the functions read. Start them afterwards.

        Args:
            is_own: whether a field manager is one of this manager's controllers.
            state: the value of the lifespan of the manager.
        """
        self._informers = {}
        self._is_own = is_own
        self._state = state
        for hook in self.hooks():
            for gvr, resource in hook.reads.items():
                if gvr not in self._informers:
                    self._informers[gvr] = informers.acquire(resource, {})

    async def detach(self, informers: ControllerInformers) -> None:
        """Release the caches."""
        acquired = self._informers
        self._informers = None
        self._state = NO_STATE
        for each in (acquired or {}).values():
            await informers.release(each)

    def waits_for(self) -> list[str]:
        """Return what is missing: caches that have not synced, with their states, and a certificate. Thread-safe."""
        informers = self._informers
        trouble = self.trouble
        if informers is None:
            return ["the start of the manager"]
        # The lists of what is converted here may wait for this manager.
        caches = [each for each in informers.copy().values() if not self.conversions.has(each.resource.group_resource)]
        waiting = [f"{each.name}: {each.state}" for each in caches if not each.has_synced()]
        return [*waiting, trouble] if trouble else waiting

    def counters(self) -> list[WebhookCounters]:
        """Return the counters of the requests, by path. Thread-safe."""
        return [each for _, each in sorted(self._counters.copy().items())]

    async def answer(self, path: str, body: bytes, timeout: str = "") -> tuple[int, bytes]:  # noqa: ASYNC109 - a text
        """Answer a review, and count it: return the HTTP status, and the body.

        A conversion that has failed counts as 500. Its HTTP status is 200, so that the API server reads the reason.

        Args:
            path: of the request.
            body: the AdmissionReview, or the ConversionReview.
            timeout: of the request, as the API server sends it: "10s".
        """
        end = _end_of(path)
        clock = asyncio.get_running_loop().time
        counters = self._counters.get(end) or WebhookCounters("")  # other paths are not kept
        counters.begin()
        began = clock()
        counted = 500
        try:
            if end == CONVERT:
                status, answer, failure = await self.conversions.answer(body)
                if failure:
                    counters.fail(failure, clock(), panics=False)
                counted = 500 if failure else status
            else:
                status, answer = await self._reviewed(path, body, timeout)
                counted = status
        finally:
            counters.end(counted, clock() - began)
        return status, answer

    async def _reviewed(self, path: str, body: bytes, timeout: str) -> tuple[int, bytes]:  # noqa: ASYNC109 - a text
        """Answer an AdmissionReview."""
        hooks = self._hooks.get(_end_of(path))
        if hooks is None:
            return 404, f"no admission function has the path {path}; there are {', '.join(self._hooks)}\n".encode()
        try:
            review = _decode_review(body)
            if (review.api_version, review.kind) != (_VERSION, "AdmissionReview"):
                given = f"{review.api_version or 'no apiVersion'} {review.kind or 'and no kind'}"
                return 400, f"expected an AdmissionReview of {_VERSION}, not {given}\n".encode()
            request = _decode_request(review.request)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return 400, f"the body is no AdmissionReview: {error}\n".encode()
        part = request.sub_resource
        hook = hooks.get((request.operation.lower(), part))
        if hook is None:
            if any(part == each for _, each in hooks):
                return 200, _response(request)
            return 400, f"no function of {path} decides about {part or 'objects'}: declare subresources\n".encode()
        sent = tuple(request.resource.get(name) for name in ("group", "version", "resource"))
        if sent != (hook.resource.group, hook.resource.version, hook.resource.plural):
            return 400, f"{path} expects {hook.resource.gvr}, not {sent}\n".encode()
        match = _SECONDS.fullmatch(timeout)
        seconds = float(match[1]) if match else _TIMEOUT
        key = f"{request.namespace}/{request.name or '<generated name>'}".removeprefix("/")
        try:
            async with asyncio.timeout(max(seconds - _MARGIN, seconds / 2)) as limit:
                if self._informers is None:
                    raise UsageError(f"manager {self._name} does not run")
                return 200, await self.decide(hook, request, self._informers, self._state)
        except USER_ERRORS as error:
            shown: BaseException = error
            if limit.expired():
                missing = ", ".join(self.waits_for())
                shown = TimeoutError(f"no answer in {seconds:g} s{f', waiting for {missing}' if missing else ''}")
            now = asyncio.get_running_loop().time()
            self._counters[hook.path].fail(f"{key}: {shown}", now, panics=not limit.expired())
        self._errors.report(
            str(hook), shown, "%s has failed for %s %s: %s", hook, request.operation, key, shown, key=key, lines=10
        )
        reason = f"{hook.purpose} of {hook.resource.group_resource} {key} has failed: {shown}"
        return 500, f"{reason}\n".encode()

    async def decide(self, hook: Hook[Any], sent: SentRequest, informers: Mapping[str, ReadCache], state: Any) -> bytes:
        """Return the AdmissionReview with the response of a function.

        Args:
            informers: the caches of what it reads, by `gvr`.
            state: that of the request.

        Raises:
            Exception: the function has raised it, or returned what it may not.
        """
        for gvr in hook.reads:
            await informers[gvr].wait_for_sync()
        is_own = sent.options is not None and self._is_own(sent.options.field_manager)
        request = AdmissionRequest(hook, sent, informers, is_own=is_own, state=state)
        try:
            if request.operation != "delete" and _passes_undecoded(hook, sent, request):
                return _response(sent, warnings=request.warnings)
            result = await hook.function(request)
        except Denied as refusal:
            return _response(sent, allowed=False, status=_status(hook, sent, refusal), warnings=request.warnings)
        if hook.purpose == "validate":
            if result is not None:
                raise UsageError(f"{hook} returned {type(result).__name__}; raise Denied to refuse, or return None")
            return _response(sent, warnings=request.warnings)
        patch = _patch(hook, bytes(sent.object), request.object, result)
        encoded = msgspec.json.encode(patch) if patch else b""  # bytes become base64
        return _response(sent, warnings=request.warnings, patch=encoded, patchType="JSONPatch" if patch else "")

    async def respond(self, request: WebRequest) -> Answer:
        """Answer a request, as `answer` does."""
        sent = await request.read()
        status, body = await self.answer(request.path, sent, request.query.get("timeout", ""))
        return Answer(status, "application/json" if status == 200 else "text/plain", body)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, as an ASGI application does."""
        await answer_asgi(scope, receive, send, self.respond, self.largest)


class Admitting(Generic[State]):
    """What has admission functions: the decorators that declare them.

    Attributes:
        admission: the functions; also an ASGI application.
    """

    admission: Admission

    def convert(self, resource: Resource[Any]) -> None:
        """Convert between the versions of a resource that declares it: `custom_resource(…, conversion=[…])`.

        Those that a controller or function of the manager has, or writes, are converted without it.

        Raises:
            UsageError: no version of the resource declares how it is converted.
        """
        if not isinstance(resource, CustomResource):
            raise UsageError(f"convert: {resource.kind} is not made by custom_resource, which declares conversion=[…]")
        self.admission.convert(resource)

    def validate(
        self, resource: Resource[T], **options: Unpack[HookOptions]
    ) -> Callable[[_Validator[T, State]], _Validator[T, State]]:
        """Return a decorator for an async function that validates objects. Use it before the start.

            @manager.validate(WIDGETS, reads=[CONFIG_MAPS])
            async def check(request):
                if request.old and request.object.spec.size < request.old.spec.size:
                    raise Denied({"spec.size": "must not shrink"})

        Where a CEL rule of the class says the same, prefer it: it needs no running manager.

        Args:
            resource: of the objects.
            options: `operations`, `reads`, `failure_policy` and `timeout`; see `HookOptions`.

        Raises:
            UsageError: an argument is invalid, or there is a function for the kind and an operation already.
        """
        return self._declaring("validate", resource, options)

    def default(
        self, resource: Resource[T], **options: Unpack[HookOptions]
    ) -> Callable[[_Default[T, State]], _Default[T, State]]:
        """Return a decorator for an async function that returns the object as it is to be stored.

            @manager.default(WIDGETS)
            async def fill(request):
                return evolve(request.object, "spec.owner", request.user.name)

        The arguments are those of `validate`; there is nothing to change in a delete.
        """
        return self._declaring("default", resource, options)

    def _declaring(self, purpose: Purpose, resource: Resource[T], options: HookOptions) -> Callable[[Any], Any]:
        def declare(function: Any) -> Any:
            self.admission.declare(Hook(purpose, resource, function, options))
            return function

        return declare


def _end_of(path: str) -> str:
    """Return the end of a path that names a function, or `convert`."""
    *_, outer, last = f"/{path.rstrip('/')}".rsplit("/", 2)
    return last if last == CONVERT else f"{outer}/{last}"


def _passes_undecoded(hook: Hook[Any], sent: SentRequest, request: AdmissionRequest[Any]) -> bool:
    """Return whether a request passes without the function, since the class refuses its object.

    Raises:
        Denied: the class refuses the object, and so it is refused.
    """
    try:
        request.object  # noqa: B018 - decodes it
    except Denied:
        if request.operation == "update" and (fields := hook.forgiven_fields(sent)):
            named = ", ".join(fields)
            request.warn(f"{named}: the class refuses it, but it is unchanged, so {hook.path} is skipped")
            return True
        if hook.purpose == "default" and isinstance(hook.resource, CustomResource):
            return True  # the schema of the class refuses it next, with all causes
        raise
    return False


def _patch(hook: Hook[Any], sent: bytes, obj: Any, result: Any) -> list[dict[str, Any]]:
    if result is None:
        raise UsageError(f"{hook} returned None; return what is to be stored, request.object for no change")
    if result is obj:
        return []
    merge = merge_patch(obj, result)
    members = set(changed_members(merge))
    metadata = merge.get("metadata") or {}
    fixed = sorted(members & {"apiVersion", "kind", "status"})
    fixed += [f"metadata.{name}" for name in ("name", "namespace", "uid", "generateName") if name in metadata]
    if fixed and not (fixed == ["status"] and "status" not in hook.resource.subresources):
        raise UsageError(f"{hook} returned an object with another {fixed[0]}, which a webhook cannot change")
    return json_patch(msgspec.json.decode(sent), document_of(obj), document_of(result))


def _status(hook: Hook[Any], request: SentRequest, refusal: Denied) -> dict[str, Any]:
    resource = hook.resource
    name = request.name
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": at} for at, why in refusal.fields.items()]
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return {
        "status": "Failure",
        "message": f'{kind} "{name}" is invalid: {refusal}',
        "reason": "Invalid",
        "details": {"name": name, "group": resource.group, "kind": resource.kind, "causes": causes},
        "code": 422,
    }


def _response(request: SentRequest, *, allowed: bool = True, **others: Any) -> bytes:
    response = {"uid": request.uid, "allowed": allowed} | {name: value for name, value in others.items() if value}
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": _VERSION, "response": response})
