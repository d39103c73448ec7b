"""Admission webhooks: call those that are registered, as kube-apiserver does, before an object is stored.

Mutating webhooks are called one after the other, in the order of the names of their configurations, and validating ones
at the same time, with the result. If the object has changed meanwhile, all begins again. Webhooks are called for
requests to objects, their status and their scale; not for other subresources, deletions by the server itself, and the
methods of `ApiServer`.
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from aioinformer.logs import get_logger
from aioinformer.resources.label_selectors import LabelSelector
from aioinformer.testing.api import statuses
from aioinformer.testing.api.conversions import ConversionNeeded
from aioinformer.testing.api.encoding import decode, quote
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.http.webhook_calls import CallError, call_webhook
from aioinformer.testing.http.writing.match_conditions import condition_causes, meets_conditions
from aioinformer.testing.ownership.managers import read_owners
from aioinformer.testing.patches.json_patches import PatchError, json_patch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.testing.access.authz import Access
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.http.converting import Conversions
    from aioinformer.testing.http.writing.bodies import WriteOptions
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.storage import Record

_log = get_logger("aioinformer.testing")

_GROUP = "admissionregistration.k8s.io"
_ATTEMPTS = 5
#: A new object has them only once it is stored.
_NOT_YET = ("uid", "creationTimestamp", "generation", "resourceVersion")


class Write(NamedTuple):
    """A request that webhooks decide about.

    Attributes:
        name: "" if the server generates it.
        options: those that the client has sent.
    """

    served: Served
    namespace: str
    name: str
    subresource: str
    operation: str
    dry_run: bool
    options: Mapping[str, Any]


class _Call(NamedTuple):
    """A call of a webhook: with which review, and the version in which it gets the objects."""

    webhook: dict[str, Any]
    form: Served
    review: dict[str, Any]


class _Failed(Exception):
    """A webhook could not be called, or did not answer with a decision."""


class Webhooks:
    """Calls webhooks.

    Args:
        services: "namespace/name" of each service -> the URL at which it is reached.
        conversions: converts between the versions of custom resources.

    Attributes:
        conversions: as given.
    """

    def __init__(self, cluster: Cluster, access: Access, services: Mapping[str, str], conversions: Conversions) -> None:
        self._cluster = cluster
        self._access = access
        self._services = services
        self.conversions = conversions

    async def admit(
        self,
        served: Served,
        namespace: str,
        name: str,
        options: WriteOptions,
        plain: Callable[[bool], tuple[bytes, bool]],
        *,
        subresource: str = "",
        seen: Callable[[dict[str, Any]], dict[str, Any]] = lambda obj: obj,
        changing: Callable[[dict[str, Any], bool], bytes] | None = None,
    ) -> tuple[bytes, bool]:
        """Write an object, after the webhooks have admitted it.

        Args:
            plain: writes it without webhooks, for a dry run or not; returns the body, and whether the object is new. It
                is called several times.
            seen: what webhooks get of a stored object: the object itself, or its scale.
            changing: writes what webhooks have made of it, for a dry run or not; by default, as an object.

        Returns:
            The same as `plain`.

        Raises:
            StatusError: a webhook has refused it, or has failed.
        """
        settle = self.conversions.settle
        if served.resource.group == _GROUP:
            body, _ = plain(True)
            if causes := list(condition_causes(decode(body))):
                raise statuses.invalid_object(served.resource, name, causes)
        if served.resource.group == _GROUP or not any(self._registered(kind) for kind in ("mutating", "validating")):
            return await settle(lambda: plain(options.dry_run))
        store = self._cluster.store
        writer = self._cluster.writer
        for _ in range(_ATTEMPTS):
            record, (body, created), old = await settle(lambda: self._looked_at(served, namespace, name, plain))
            operation = "CREATE" if created else "UPDATE"
            write = Write(served, namespace, name, subresource, operation, options.dry_run, options.sent)
            old = None if old is None else seen(old)
            sent = decode(body)
            owners = read_owners(sent["metadata"]) or {}
            if created:
                for field in (*_NOT_YET, *(() if name else ("name",))):
                    sent["metadata"].pop(field, None)

            def store_changed(obj: dict[str, Any], dry_run: bool, created: bool = created) -> tuple[bytes, bool]:
                copied = deepcopy(obj)
                if changing is not None:
                    return changing(copied, dry_run), False
                writer.check(served, copied)
                if created:
                    return writer.create(served, namespace, copied, owners=owners, dry_run=dry_run), True  # noqa: B023
                body = writer.update(
                    served,
                    namespace,
                    name,
                    copied,
                    subresource=subresource,
                    owners=owners,  # noqa: B023
                    dry_run=dry_run,
                )
                return body, False

            changed = await self._mutated(write, sent, old)
            if changed is not sent:
                body, _ = await settle(lambda: self._tried(served, changed, store_changed))  # noqa: B023
            await self._validate(write, decode(body), old)
            if (store.find(served, namespace, name) if name else None) is record:
                try:
                    if changed is sent:
                        return plain(options.dry_run)
                    return store_changed(changed, options.dry_run)
                except ConversionNeeded as needed:
                    await self.conversions.learn(needed)
        raise statuses.object_modified(served.resource, name)

    def _looked_at(
        self, served: Served, namespace: str, name: str, plain: Callable[[bool], tuple[bytes, bool]]
    ) -> tuple[Record | None, tuple[bytes, bool], dict[str, Any] | None]:
        """Return the object that a write replaces, what the write makes of it, and the object in its version."""
        record = self._cluster.store.find(served, namespace, name) if name else None
        outcome = plain(True)
        self._know_storing(served, outcome[0])
        return record, outcome, None if record is None else decode(served.body(record.body))

    def _tried(
        self, served: Served, obj: dict[str, Any], store: Callable[[dict[str, Any], bool], tuple[bytes, bool]]
    ) -> tuple[bytes, bool]:
        outcome = store(obj, True)
        self._know_storing(served, outcome[0])
        return outcome

    def _know_storing(self, served: Served, body: bytes) -> None:
        """Make sure that an object can be stored without another call of its conversion webhook."""
        if served.webhook is not None and body.startswith(served.head):
            served.to_stored(decode(body))

    async def admit_deletion(self, served: Served, record: Record | None, *, dry_run: bool) -> None:
        """Ask the webhooks whether an object may be deleted.

        Raises:
            StatusError: a webhook has refused it, or has failed.
        """
        if record is not None and served.resource.group != _GROUP:
            old = decode(await self.conversions.settle(lambda: served.body(record.body)))
            sent = {"dryRun": ["All"]} if dry_run else {}
            write = Write(served, record.namespace, record.name, "", "DELETE", dry_run, sent)
            await self._mutated(write, None, old)
            await self._validate(write, None, old)

    def _registered(self, kind: str) -> list[dict[str, Any]]:
        served = self._cluster.store.registry.find(_GROUP, "v1", f"{kind}webhookconfigurations")
        assert served is not None
        records = self._cluster.store.collection(served).records()
        return [each for record in records for each in decode(record.body).get("webhooks") or ()]

    def _call(self, webhook: dict[str, Any], write: Write, obj: Any, old: Any) -> _Call | None:
        """Return how a webhook is called for a write; None if it is not."""
        form = _form(webhook, write)
        if form is None or not self._is_selected(webhook, write, obj, old):
            return None
        review = _review(form, write, self._access.user().describe(), obj, old)
        if not meets_conditions(webhook, write.served, review["request"]):
            return None
        if write.dry_run and webhook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise statuses.bad_request(f"admission webhook {quote(webhook['name'])} does not support dry run")
        return _Call(webhook, form, review)

    def _is_selected(self, webhook: Mapping[str, Any], write: Write, *objects: Mapping[str, Any] | None) -> bool:
        labels = [(each["metadata"].get("labels") or {}) for each in objects if each is not None]
        selector = LabelSelector.from_dict(webhook.get("objectSelector") or {})
        if not any(map(selector.matches, labels)):
            return False
        namespaces = self._cluster.store.registry.resolve("v1/namespaces")
        if write.namespace:
            record = self._cluster.store.find(namespaces, "", write.namespace)
            labels = [] if record is None else [decode(record.body)["metadata"].get("labels") or {}]
        elif write.served is not namespaces:
            return True
        selector = LabelSelector.from_dict(webhook.get("namespaceSelector") or {})
        return any(map(selector.matches, labels))

    async def _mutated(self, write: Write, obj: Any, old: Any) -> Any:
        """Return the object as the webhooks have changed it; the same one if they have not.

        Those with `reinvocationPolicy: IfNeeded` are called once more if a later one has changed the object.
        """
        settle = self.conversions.settle
        registered = list(enumerate(self._registered("mutating")))
        called: set[int] = set()
        outdated: set[int] = set()
        for again in (False, True):
            for number, webhook in registered:
                if again and number not in outdated:
                    continue
                call = await settle(partial(self._call, webhook, write, obj, old))
                if call is None:
                    continue
                response = await self._asked(call)
                changed = await settle(partial(_patched, call, write, obj, response))
                if changed != obj:
                    obj = changed
                    outdated |= called
                    called = set()
                if webhook.get("reinvocationPolicy") == "IfNeeded":
                    called.add(number)
        return obj

    async def _validate(self, write: Write, obj: Any, old: Any) -> None:
        registered = self._registered("validating")
        settle = self.conversions.settle
        found = [await settle(partial(self._call, webhook, write, obj, old)) for webhook in registered]
        calls = (self._asked(call) for call in found if call is not None)
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _asked(self, call: _Call) -> dict[str, Any]:
        """Return the response of a webhook that admits a write; {} if it has failed, and that is ignored."""
        webhook = call.webhook
        review = call.review
        try:
            response = await self._called(webhook, review)
        except _Failed as error:
            text = f"failed calling webhook {quote(webhook['name'])}: failed to call webhook: {error}"
            if webhook.get("failurePolicy", "Fail") == "Ignore":
                _log.warning("%s; it is ignored", text)
                return {}
            raise _internal(text) from None
        for warning in response.get("warnings") or ():
            statuses.warn(warning)
        if response["allowed"]:
            return response
        status = response.get("status") or {}
        why = status.get("message") or status.get("reason")
        denied = f"admission webhook {quote(webhook['name'])} denied the request"
        message = f"{denied}: {why}" if why else f"{denied} without explanation"
        code = max(status.get("code") or 0, 400)
        reason = status.get("reason") or ""
        raise StatusError(code, reason, message, details=status.get("details"))

    async def _called(self, webhook: dict[str, Any], review: dict[str, Any]) -> dict[str, Any]:
        try:
            reply = await call_webhook(
                webhook["clientConfig"], self._services, review, webhook.get("timeoutSeconds") or 10
            )
        except CallError as error:
            raise _Failed(str(error)) from None
        if reply.status != 200:
            raise _Failed(f"{reply.status}: {reply.body.decode(errors='replace').strip()}")
        try:
            found = msgspec.json.decode(reply.body)
            response: dict[str, Any] = found["response"]
            allowed = response["allowed"]
            kind = (found["apiVersion"], found["kind"])
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise _Failed(f"the answer is no AdmissionReview: {error}") from None
        uid = review["request"]["uid"]
        if response.get("uid") != uid:
            raise _Failed(f"expected response.uid={quote(uid)}, got {quote(response.get('uid'))}")
        if kind != ("admission.k8s.io/v1", "AdmissionReview") or not isinstance(allowed, bool):
            raise _Failed(f"expected a response of admission.k8s.io/v1, AdmissionReview, not {kind}")
        if response.get("patch") and response.get("patchType") != "JSONPatch":
            raise _Failed("webhook returned response.patch but not response.patchType")
        return response


def _form(webhook: Mapping[str, Any], write: Write) -> Served | None:
    """Return the version in which a webhook gets the objects of a write; None if no rule matches."""
    served = write.served
    scope = "Namespaced" if write.namespace else "Cluster"
    for exact in (True, False):
        if not exact and webhook.get("matchPolicy") == "Exact":
            continue
        for form in [served] if exact else served.others.values():
            for rule in webhook.get("rules") or ():
                patterns = [each.partition("/") for each in rule["resources"]]
                if (
                    {"*", write.operation} & set(rule["operations"])
                    and {"*", form.resource.group} & set(rule["apiGroups"])
                    and {"*", form.resource.version} & set(rule["apiVersions"])
                    and rule.get("scope", "*") in ("*", scope)
                    and any(
                        one in ("*", served.resource.plural) and part in ("*", write.subresource)
                        for one, _, part in patterns
                    )
                ):
                    return form
    return None


def _review(form: Served, write: Write, user: dict[str, Any], obj: Any, old: Any) -> dict[str, Any]:
    def kinds(served: Served) -> tuple[dict[str, str], dict[str, str]]:
        version = {"group": served.resource.group, "version": served.resource.version}
        return {**version, "kind": served.resource.kind}, {**version, "resource": served.resource.plural}

    kind, resource = kinds(form)
    sent_kind, sent_resource = kinds(write.served)
    if write.subresource == "scale":
        kind = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        sent_kind = kind
    request = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": resource,
        "requestKind": sent_kind,
        "requestResource": sent_resource,
        "name": write.name,
        "namespace": write.namespace,
        "operation": write.operation,
        "userInfo": user,
        "object": _converted(obj, write.served, form),
        "oldObject": _converted(old, write.served, form),
        "dryRun": write.dry_run,
        "options": {
            "kind": f"{write.operation.capitalize()}Options",
            "apiVersion": "meta.k8s.io/v1",
            **write.options,
        },
    }
    if write.subresource:
        request |= {"subResource": write.subresource, "requestSubResource": write.subresource}
    shown = {name: value for name, value in request.items() if value != "" or name == "operation"}
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": shown}


def _patched(call: _Call, write: Write, obj: Any, response: Mapping[str, Any]) -> Any:
    """Return what the response of a webhook makes of an object; the same one if it has no patch."""
    if not response.get("patch"):
        return obj
    try:
        operations = msgspec.json.decode(base64.b64decode(response["patch"]))
        changed = json_patch(_converted(obj, write.served, call.form), operations)
    except (ValueError, TypeError, PatchError) as error:
        raise _internal(f"the patch of webhook {quote(call.webhook['name'])}: {error}") from None
    return _converted(changed, call.form, write.served)


def _converted(obj: Any, source: Served, wanted: Served) -> Any:
    if obj is None or source is wanted or obj["apiVersion"] != source.resource.api_version:  # such as a Scale
        return obj
    kept = obj if source.webhook is not None else source.to_stored(obj)
    return {**wanted.from_stored(kept), "apiVersion": wanted.resource.api_version}


def _internal(why: str) -> StatusError:
    details = {"causes": [{"message": why}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {why}", details=details)
