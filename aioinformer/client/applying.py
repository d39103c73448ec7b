"""Apply many objects in the order that a cluster needs, and report what has become of each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from aioinformer.client.bodies import encode_unchecked
from aioinformer.errors import AioinformerError, TransportError, UsageError
from aioinformer.resources.crds import CustomResourceDefinition
from aioinformer.resources.keys import metadata_field, metadata_of
from aioinformer.resources.manifests import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from aioinformer.client.client import Client
    from aioinformer.client.requests import Settings, WriteOptions

Change: TypeAlias = Literal["created", "changed", "unchanged", "failed"]

_decode_definition: Final = msgspec.json.Decoder(CustomResourceDefinition).decode
_CRD: Final = "CustomResourceDefinition"
#: What others need, in its order.
_FIRST: Final = ("Namespace", _CRD)
#: What refuses others while it does not run.
_LAST: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService")
#: Seconds between looks at definitions.
_PAUSE: Final = 0.1


class AppliedObject(msgspec.Struct, frozen=True):
    """What has become of one object.

    Attributes:
        title: kind, namespace and name: "Deployment shop/web".
        change: "created", "changed", "unchanged" or "failed".
        source: file and line, if `load_manifests` has read it.
        error: why it failed; None otherwise.
        object: what the server has stored; None if it failed.
    """

    title: str
    change: Change
    source: str = ""
    error: AioinformerError | None = None
    object: Any = None

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source and self.error else ""
        return f"{where}{self.title} {self.change}{f': {self.error}' if self.error else ''}"


class ApplyReport(msgspec.Struct, frozen=True):
    """What has become of all objects, in the order in which they were applied. `str()` has a line for each.

    Attributes:
        objects: one for each object.
    """

    objects: tuple[AppliedObject, ...]

    def of(self, change: Change) -> tuple[AppliedObject, ...]:
        """Return the objects that were "created", "changed", "unchanged", or have "failed"."""
        return tuple(each for each in self.objects if each.change == change)

    @property
    def failed(self) -> tuple[AppliedObject, ...]:
        """The objects that were not applied."""
        return self.of("failed")

    def __str__(self) -> str:
        return "\n".join(map(str, self.objects))


class ApplyFailed(AioinformerError):
    """Some objects were not applied; the others were.

    Attributes:
        report: what has become of each.
    """

    def __init__(self, report: ApplyReport) -> None:
        failed = report.failed
        super().__init__(f"{len(failed)} of {len(report.objects)} objects were not applied; the first: {failed[0]}")
        self.report = report


async def apply_all(
    client: Client,
    settings: Settings,
    objects: Iterable[Any],
    namespace: str,
    wait: float,
    *,
    force: bool,
    **options: Unpack[WriteOptions],
) -> ApplyReport:
    """See `Client.apply_all`; `settings` are those of the client with the options.

    Raises:
        ApplyFailed: an object was not applied.
        UsageError: there is no field manager, or an object lacks `apiVersion` or `kind`; nothing was sent.
    """
    settings.manager("apply_all()")
    bodies = [each if isinstance(each, Manifest) else Manifest(_plain(each), "") for each in objects]
    for body in bodies:
        if not (body.get("apiVersion") and body.get("kind")):
            raise UsageError(f"{body.title}: an object to apply needs apiVersion and kind")
        if not isinstance(body.get("metadata"), dict):
            raise UsageError(f"{body['kind']}: an object to apply needs metadata with a name")
    first = [body for kind in _FIRST for body in bodies if body["kind"] == kind]
    rest = [body for body in bodies if body["kind"] not in _FIRST]
    rest.sort(key=lambda body: body["kind"] in _LAST)  # stable
    lost: TransportError | None = None

    async def apply(body: Manifest) -> AppliedObject:
        nonlocal lost
        try:
            if lost is not None:
                raise lost
            return await _apply(client, body, namespace, force=force, **options)
        except AioinformerError as error:
            if isinstance(error, TransportError):
                lost = error  # the server does not answer: no further attempt, each of which would wait
            return AppliedObject(body.title, "failed", body.source, error)

    found = [await apply(body) for body in first]
    if not settings.dry_run:
        applied = zip(first, found, strict=True)
        definitions = {body.title: body for body, one in applied if body["kind"] == _CRD and one.error is None}
        reasons = await _not_served(client, definitions, wait)
        found = [_failed(each, reasons[each.title], wait) if each.title in reasons else each for each in found]
    report = ApplyReport((*found, *[await apply(body) for body in rest]))
    if report.failed:
        raise ApplyFailed(report)
    return report


def _plain(obj: Any) -> dict[str, Any]:
    try:
        decoded: dict[str, Any] = msgspec.json.decode(encode_unchecked(obj), type=dict[str, Any])
    except msgspec.ValidationError:
        raise UsageError(f"apply_all(): expected a list of objects, and it has {type(obj).__name__}") from None
    return decoded


async def _apply(
    client: Client, body: Manifest, namespace: str, *, force: bool, **options: Unpack[WriteOptions]
) -> AppliedObject:
    known = body.resource
    resource = client.resource(known) if known is not None else await client.resource_for(body)
    place = "" if not resource.resource.namespaced or body["metadata"].get("namespace") else namespace
    before = await resource.get_or_none(body, namespace=place)
    after = await resource.apply(body, force=force, namespace=place, **options)
    change: Change = "created"
    if before is not None:
        change = "unchanged" if _version(before) == _version(after) else "changed"
    return AppliedObject(body.title, change, body.source, None, after)


def _version(obj: Any) -> Any:
    return metadata_field(metadata_of(obj), "resource_version", "resourceVersion")


def _failed(one: AppliedObject, reason: str, wait: float) -> AppliedObject:
    error = AioinformerError(f"the server does not serve it after {wait:g} s: {reason}")
    return msgspec.structs.replace(one, change="failed", error=error)


async def _not_served(client: Client, definitions: dict[str, Manifest], wait: float) -> dict[str, str]:
    """Wait until the server serves definitions; return why it does not, by their titles."""
    reasons = dict.fromkeys(definitions, "no answer")
    try:
        async with asyncio.timeout(wait):
            while reasons:
                for each in list(reasons):
                    reasons[each] = await _reason_to_wait(client, definitions[each])
                    if not reasons[each]:
                        del reasons[each]
                await asyncio.sleep(_PAUSE if reasons else 0)
    except TimeoutError:
        pass
    except AioinformerError as error:
        reasons = dict.fromkeys(reasons, str(error))
    return reasons


async def _reason_to_wait(client: Client, body: Manifest) -> str:
    path = f"/apis/{body['apiVersion']}/customresourcedefinitions/{body['metadata']['name']}"
    definition = _decode_definition((await client.request("GET", path)).body)
    if not definition.served():
        conditions = (definition.status.conditions if definition.status else None) or ()
        refused = [each.message for each in conditions if each.status == "False" and each.message]
        return "; ".join(refused) or "it is not established"
    served = {(each.group, each.version, each.plural) for each in await client.discover()}
    wanted = {(each.group, each.version, each.plural) for each in definition.served()}
    return "" if wanted <= served else "discovery does not have it yet"
