"""Compares what a streaming list brought with a list at its very version: both must say the same (CON-01, CON-02).

On request, and after each streaming list, a task of its own lists the collection once more, in pages, and compares in
slices. It costs a list, so it is for tests, and for those who suspect their server or a proxy. Objects that do not
decode are left out, and so is a version that the server has forgotten by then.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from aioinformer.cache.objects.codec import BodyDecoder, ObjectType
from aioinformer.cache.objects.record import UndecodablePlaceholder
from aioinformer.concurrency import Slicer
from aioinformer.errors import AioinformerError, DecodeError, Expired, OptionError, UsageError
from aioinformer.logs import get_logger
from aioinformer.reflector.options import ListOptions, ReflectorOptions
from aioinformer.reflector.protocol.messages import Failed, Listed, PageEnded, Send
from aioinformer.reflector.response_reader import AnswerReader
from aioinformer.reflector.watch_events import Intake

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable

    from aioinformer.cache.objects.record import Decode, Record
    from aioinformer.reflector.listwatch import ListerWatcher


T = TypeVar("T")


class ListPager(Generic[T]):
    """Lists a collection: `async for obj in pager.each()`, or `await pager.list()`.

    A page is never held as a whole: objects are handed out as they arrive, and the next page is asked for when the one
    before is used up.

    Args:
        lister_watcher: what to list.
        page_size: objects in a page, 0 for all in one.
        resource_version: as old as this at most; "" for what is true now.
        resource_version_match: "", "NotOlderThan" or "Exact".
        decoder: as for `SharedIndexInformer`.
        options: time-outs, and the cap on objects.

    Attributes:
        resource_version: of the list: that of its first page; "" before that.
        pages: how many were read.
    """

    def __init__(
        self,
        lister_watcher: ListerWatcher[T],
        *,
        page_size: int = 500,
        resource_version: str = "",
        resource_version_match: str = "",
        decoder: BodyDecoder[T] | None = None,
        options: ReflectorOptions | None = None,
    ) -> None:
        if page_size < 0:
            raise UsageError(f"page_size={page_size} must be a number of objects, or 0 for one page")
        self._lister_watcher = lister_watcher
        self._first = ListOptions(
            limit=page_size, resource_version=resource_version, resource_version_match=resource_version_match
        )
        self._decoder = decoder
        self._objects: ObjectType[T] = ObjectType(lister_watcher.resource, decoder)
        self._intake = Intake(self._objects.on_arrival if self._objects.decodes_early else None)
        self._options = options or ReflectorOptions()
        self.resource_version = ""
        self.pages = 0

    async def each(self) -> AsyncGenerator[T]:
        """Yields every object as it arrives. Who stops early closes it, with `contextlib.aclosing`.

        Raises:
            Expired: the list took so long that the server forgot where it was; what was yielded is no whole.
            ApiError: the server refuses.
            TransportError: the server was not reached, broke off, or fell silent.
            DecodeError: what it sent cannot be read.
        """
        self.pages = 0
        self.resource_version = ""
        options: ListOptions | None = self._first
        while options is not None:
            token = ""
            async with aclosing(
                read_page(self._lister_watcher, replace(options), self._intake, self._options)
            ) as answers:
                async for answer in answers:
                    if isinstance(answer, PageEnded):
                        self.resource_version = self.resource_version or answer.resource_version
                        token = answer.continue_token
                    else:
                        for item in answer.items:
                            if isinstance(item, DecodeError):
                                raise item
                            yield self._objects.to_view(item)
            self.pages += 1
            # The token says which version it is about.
            options = ListOptions(limit=self._first.limit, continue_token=token) if token else None

    async def list(self) -> list[T]:
        """Return all objects. If the version of the list expires, list them again in one page.

        Raises:
            ApiError: the server refuses.
            TransportError: the server was not reached, broke off, or fell silent.
            DecodeError: what it sent cannot be read.
        """
        try:
            return [obj async for obj in self.each()]
        except Expired:
            if self.pages == 0:
                raise
        whole = ListPager(
            self._lister_watcher,
            page_size=0,
            resource_version=self._first.resource_version,
            resource_version_match=self._first.resource_version_match,
            decoder=self._decoder,
            options=self._options,
        )
        objects = [obj async for obj in whole.each()]
        self.resource_version, self.pages = whole.resource_version, self.pages + whole.pages
        return objects


async def read_page(
    lister_watcher: ListerWatcher[Any], options: ListOptions, intake: Intake, how: ReflectorOptions
) -> AsyncGenerator[Listed | PageEnded]:
    """One page of a list, bit by bit.

    Args:
        lister_watcher: what to list.
        options: which page.
        intake: makes records of objects.
        how: time-outs, the cap on objects, and the length of slices.

    Raises:
        ApiError: the server refuses.
        TransportError: the server was not reached, broke off, or fell silent.
        DecodeError: what it sent cannot be read.
    """
    response = await lister_watcher.request(options)
    reader = AnswerReader(response, Send(options, initial=True), intake, how)
    try:
        if response.status != 200:
            raise await reader.read_failure()
        async with aclosing(reader.answers(initial=True)) as answers:
            async for answer in answers:
                if isinstance(answer, Failed):
                    raise answer.error
                if isinstance(answer, (Listed, PageEnded)):
                    yield answer
    finally:
        await reader.close()


_log = get_logger("aioinformer.reflector")

#: Asks for the comparison wherever options do not say anything: "report", or "raise" (also "1" and "true").
ENVIRONMENT_VARIABLE: Final = "AIOINFORMER_WATCHLIST_INCONSISTENCY_DETECTOR"

_ALWAYS_RAISE: Final = ("1", "true", "raise")
#: So often is a list tried that fails, once a second.
_TRIES: Final = 60
#: So many keys of each sort are named in a message.
_NAMED: Final = 10


class InconsistentList(AioinformerError):
    """A streaming list and a list at the same version differ. Keys are told, and nothing of what is in the objects.

    Attributes:
        version: of both.
        missing: keys of what the stream brought and the list does not have.
        unexpected: keys of what the list has and the stream did not bring.
        different: keys of what is in both, and not the same.
    """

    def __init__(
        self, version: str, missing: Iterable[str], unexpected: Iterable[str], different: Iterable[str]
    ) -> None:
        self.version = version
        self.missing, self.unexpected, self.different = tuple(missing), tuple(unexpected), tuple(different)
        sorts = {
            "only in the stream": self.missing,
            "only in the list": self.unexpected,
            "different": self.different,
        }
        said = "; ".join(f"{sort}: {_some(keys)}" for sort, keys in sorts.items() if keys)
        super().__init__(f"a streaming list and a list at its version {version} differ. {said}")


class ConsistencyDetector:
    """Compares for one reflector.

    Args:
        lister_watcher: what to list.
        options: page size, time-outs, cap and slices of the list.
        on_arrival: what each object went through on its way in.
        decode: makes a record of an object's bytes.
        report: told of differences, and nothing is raised; None to raise them.
        name: of the reflector, for the log.
    """

    def __init__(
        self,
        lister_watcher: ListerWatcher[Any],
        options: ReflectorOptions,
        *,
        on_arrival: Callable[[Record], Record] | None,
        decode: Decode,
        report: Callable[[Exception], None] | None,
        name: str,
    ) -> None:
        self._lister_watcher = lister_watcher
        self._options = options
        # Without a look into the cache: an object of the same version would be taken from there, unread.
        self._intake = Intake(on_arrival, lambda key: None, decode)
        self._report = report
        self._name = name

    async def check(self, records: Collection[Record], version: str) -> None:
        """Compares these objects, all of one streaming list, with a list at its version.

        Raises:
            InconsistentList: they differ.
        """
        if not version or version == "0":  # no version of a state
            return
        for _ in range(_TRIES):
            try:
                difference = await self._compare(records, version)
                break
            except Expired:
                _log.info("%s: version %s was forgotten before it could be compared", self._name, version)
                return
            except Exception as error:
                # Also of credentials, a tweak function, a transport that is not ours: the informer goes on with them.
                reason = str(error) if isinstance(error, AioinformerError) else type(error).__name__
                _log.debug("%s: the list to compare with failed: %s", self._name, reason)
                await asyncio.sleep(1)
        else:
            _log.warning("%s: version %s could not be compared: every list failed", self._name, version)
            return
        if difference is None:
            _log.info("%s: %d objects are as in a list at version %s", self._name, len(records), version)
        elif self._report is None:
            raise difference
        else:
            _log.error("%s: %s", self._name, difference)
            self._report(difference)

    async def _compare(self, records: Collection[Record], version: str) -> InconsistentList | None:
        slicer = Slicer(self._options.slice_seconds)
        left = {record.key: record for record in records}
        unexpected: list[str] = []
        different: list[str] = []
        options: ListOptions | None = ListOptions(
            limit=self._options.page_size, resource_version=version, resource_version_match="Exact"
        )
        while options is not None:
            token = ""
            async with aclosing(read_page(self._lister_watcher, options, self._intake, self._options)) as answers:
                async for answer in answers:
                    if isinstance(answer, PageEnded):
                        token = answer.continue_token
                        continue
                    for item in answer.items:
                        known = left.pop(item.key, None)
                        if known is None and item.key:
                            unexpected.append(item.key)
                        elif (
                            known is not None
                            and type(known) is not UndecodablePlaceholder
                            and not _is_same(known, item)
                        ):
                            different.append(item.key)
                        await slicer.pause()
            options = self._options.next_page(token) if token else None
        missing = [key for key, record in left.items() if type(record) is not UndecodablePlaceholder]
        if not (missing or unexpected or different):
            return None
        return InconsistentList(version, missing, unexpected, different)


def asked_for(said: str) -> str:
    """What is to be done: "off", "report" or "raise".

    Args:
        said: by the options; "" leaves it to the environment.

    Raises:
        OptionError: the environment says something else.
    """
    if said:
        return said
    value = os.environ.get(ENVIRONMENT_VARIABLE, "").lower()
    if value in ("", "0", "false", "off"):
        return "off"
    if value in _ALWAYS_RAISE:
        return "raise"
    if value == "report":
        return "report"
    raise OptionError(f'{ENVIRONMENT_VARIABLE} must be "report" or "raise", not {value!r}')


def _is_same(known: Record, item: Record | DecodeError) -> bool:
    return not isinstance(item, DecodeError) and known.same_version(item) and known.same_content(item)


def _some(keys: tuple[str, ...]) -> str:
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return f"{', '.join(keys[:_NAMED])}{more}"
