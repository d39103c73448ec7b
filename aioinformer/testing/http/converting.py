"""Ask the webhooks of definitions to convert objects, for what requests read and write.

kube-apiserver asks about each object by itself, and keeps the answers for lists and watches. Here a list asks once,
about the objects that no list or watch has read before, and a watch asks about the changes that it is about to send.
While a webhook fails, a watch waits, and a list fails if an object is missing.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, TypeVar

import msgspec

from aioinformer.testing.api.conversions import API_VERSION, KNOWN, ConversionNeeded, failure
from aioinformer.testing.api.encoding import decode, encode_sorted
from aioinformer.testing.http.webhook_calls import CallError, call_webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.storage import Record

_SECONDS = 30
_Found = TypeVar("_Found")


class Conversions:
    """Asks webhooks to convert objects.

    Args:
        services: "namespace/name" of each service -> the URL at which it is reached.
    """

    def __init__(self, services: Mapping[str, str]) -> None:
        self._services = services

    @staticmethod
    def begin() -> None:
        """Begin a request, which knows no conversion."""
        KNOWN.set({})

    async def settle(self, work: Callable[[], _Found]) -> _Found:
        """Return what `work` returns, once all conversions that it needs are known.

        Args:
            work: is called again after each conversion; it has changed nothing if `ConversionNeeded` ends it.

        Raises:
            StatusError: 500, a webhook has failed.
        """
        while True:
            try:
                return work()
            except ConversionNeeded as error:
                await self.learn(error)

    async def learn(self, needed: ConversionNeeded) -> None:
        """Ask a webhook for conversions, and note them for the current request.

        Raises:
            StatusError: 500, it has failed.
        """
        for document, converted in zip(needed.objects, await self._converted(needed), strict=True):
            needed.by.note(document, converted)

    async def prepare(self, served: Served, records: Sequence[Record]) -> None:
        """Convert what a list or a watch sends, for `Served.form`.

        Raises:
            StatusError: 500, a webhook has failed.
        """
        webhook = served.webhook
        if webhook is None:
            return
        version = served.resource.api_version
        missing = [each for each in records if not served.has_form(each)]
        if missing:
            needed = ConversionNeeded(webhook, [decode(each.body) for each in missing], version, is_list=True)
            for record, converted in zip(missing, await self._converted(needed), strict=True):
                webhook.note_form(record, version, encode_sorted(converted))

    async def _converted(self, needed: ConversionNeeded) -> list[dict[str, Any]]:
        from aioinformer.testing.schemas.field_checks import drop_unknown_fields, fill_defaults

        uid = str(uuid.uuid4())
        request = {"uid": uid, "desiredAPIVersion": needed.api_version, "objects": needed.objects}
        review = {"kind": "ConversionReview", "apiVersion": API_VERSION, "request": request}
        config = needed.by.webhook["clientConfig"]
        try:
            reply = await call_webhook(config, self._services, review, _SECONDS)
        except CallError as error:
            raise failure(needed, f"failed: Post {config.get('url') or 'to the service'}: {error}") from None
        text = reply.body.decode(errors="replace").strip()
        if reply.status != 200:
            shown = f'an error on the server ("{text}") has prevented the request from succeeding'
            raise failure(needed, f"failed: {shown}")
        try:
            found = needed.by.accepted(needed, uid, msgspec.json.decode(reply.body))
        except msgspec.DecodeError as error:
            raise failure(needed, f"failed: couldn't get version/kind; json parse error: {error}") from None
        served = needed.by.versions[needed.api_version]
        for each in found:
            drop_unknown_fields(served, each)
            fill_defaults(served, each)
        return found
