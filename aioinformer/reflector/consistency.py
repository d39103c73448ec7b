"""Compare what a streaming list brought with a list at the same version: both must be equal.

If requested, a task lists the collection once more, in pages, after each streaming list, and compares the objects in
slices. This costs a list, so it is meant for tests, and for suspected faults of a server or proxy. Objects that cannot
be decoded are not compared, and neither is a version that the server no longer has.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import aclosing
from typing import Any, Final

from aioinformer.cache.objects.record import Decode, Record, UndecodablePlaceholder
from aioinformer.concurrency import Slicer
from aioinformer.errors import AioinformerError, DecodeError, Expired, OptionError
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListerWatcher
from aioinformer.reflector.options import ListOptions, ReflectorOptions
from aioinformer.reflector.pager import read_page
from aioinformer.reflector.protocol.messages import PageEnded
from aioinformer.reflector.watch_events import RecordDecoder

_log = get_logger("aioinformer.reflector")

#: Enables the comparison: "report" to the watch error handler and the log, or "raise" (also "1" and "true").
ENVIRONMENT_VARIABLE: Final = "AIOINFORMER_WATCHLIST_INCONSISTENCY_DETECTOR"

_ALWAYS_RAISE: Final = ("1", "true", "raise")
#: The number of attempts to list, one each second.
_ATTEMPTS: Final = 60
#: The number of keys of each kind that a message names.
_NAMED_KEYS: Final = 10


class InconsistentList(AioinformerError):
    """A streaming list and a list at the same version differ. The message contains keys, but no object contents.

    Attributes:
        version: of both lists.
        missing: keys of objects that are only in the streaming list.
        unexpected: keys of objects that are only in the list.
        different: keys of objects that differ.
    """

    def __init__(
        self, version: str, missing: Iterable[str], unexpected: Iterable[str], different: Iterable[str]
    ) -> None:
        self.version = version
        self.missing = tuple(missing)
        self.unexpected = tuple(unexpected)
        self.different = tuple(different)
        sorts = {
            "only in the stream": self.missing,
            "only in the list": self.unexpected,
            "different": self.different,
        }
        option = "; ".join(f"{sort}: {_first_keys(keys)}" for sort, keys in sorts.items() if keys)
        super().__init__(f"a streaming list and a list at its version {version} differ. {option}")


class ConsistencyDetector:
    """Compare the streaming lists of one reflector with lists in pages.

    Args:
        lister_watcher: lists the collection.
        options: page size, timeouts and largest object of the list.
        on_arrival: as for `RecordDecoder`.
        decode: makes a record of the bytes of an object.
        report: is called with differences; None to raise them.
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
        # Without the cache: an object of the same version would be taken from there, without being read.
        self._record_decoder = RecordDecoder(on_arrival, lambda key: None, decode)
        self._report = report
        self._name = name

    async def check(self, records: Collection[Record], version: str) -> None:
        """Compare the objects of a streaming list with a list at its version.

        Raises:
            InconsistentList: they differ.
        """
        if not version or version == "0":  # there is no list at these versions
            return
        for _ in range(_ATTEMPTS):
            try:
                difference = await self._compare(records, version)
                break
            except Expired:
                _log.info("%s: version %s expired before it could be compared", self._name, version)
                return
            except Exception as error:
                # Any error, also of credentials, a tweak function or a transport of the user: the reflector handles it.
                reason = str(error) if isinstance(error, AioinformerError) else type(error).__name__
                _log.debug("%s: the list for the comparison failed: %s; retrying in 1 s", self._name, reason)
                await asyncio.sleep(1)
        else:
            _log.warning("%s: version %s could not be compared: every list failed", self._name, version)
            return
        if difference is None:
            _log.info(
                "%s: the streaming list of %d objects equals a list at version %s", self._name, len(records), version
            )
        elif self._report is None:
            raise difference
        else:
            _log.error("%s: %s", self._name, difference)
            self._report(difference)

    async def _compare(self, records: Collection[Record], version: str) -> InconsistentList | None:
        slicer = Slicer()
        left = {record.key: record for record in records}
        unexpected: list[str] = []
        different: list[str] = []
        options: ListOptions | None = ListOptions(
            limit=self._options.page_size, resource_version=version, resource_version_match="Exact"
        )
        while options is not None:
            token = ""
            async with aclosing(
                read_page(self._lister_watcher, options, self._record_decoder, self._options)
            ) as answers:
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


def consistency_mode() -> str:
    """Return whether the environment variable demands that streaming lists are compared: "off", "report" or "raise".

    Raises:
        OptionError: the environment variable has another value.
    """
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


def _first_keys(keys: tuple[str, ...]) -> str:
    more = f" and {len(keys) - _NAMED_KEYS} more" if len(keys) > _NAMED_KEYS else ""
    return f"{', '.join(keys[:_NAMED_KEYS])}{more}"
