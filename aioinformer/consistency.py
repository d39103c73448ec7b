"""Compares what a streaming list brought with a list at its very version: both must say the same (CON-01, CON-02).

On request, and after each streaming list, a task of its own lists the collection once more, in pages, and compares in
slices. It costs a list, so it is for tests, and for those who suspect their server or a proxy. Objects that do not
decode are left out, and so is a version that the server has forgotten by then.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from aioinformer.errors import AioinformerError, DecodeError, Expired, OptionError
from aioinformer.list_pager import read_page
from aioinformer.logger import get_logger
from aioinformer.objects import KeptRecord
from aioinformer.options import ListOptions
from aioinformer.slices import Slicer
from aioinformer.steps import PageEnded
from aioinformer.wire import Intake

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from aioinformer.listwatch import ListerWatcher
    from aioinformer.objects import Decode, Record
    from aioinformer.options import ReflectorOptions

_log = get_logger(__name__)

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
        admit: what each object went through on its way in.
        decode: makes a record of an object's bytes.
        report: told of differences, and nothing is raised; None to raise them.
        name: of the reflector, for the log.
    """

    def __init__(
        self,
        lister_watcher: ListerWatcher[Any],
        options: ReflectorOptions,
        *,
        admit: Callable[[Record], Record] | None,
        decode: Decode,
        report: Callable[[Exception], None] | None,
        name: str,
    ) -> None:
        self._lister_watcher = lister_watcher
        self._options = options
        # Without a look into the cache: an object of the same version would be taken from there, unread.
        self._intake = Intake(admit, lambda key: None, decode)
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
                        elif known is not None and type(known) is not KeptRecord and not _is_same(known, item):
                            different.append(item.key)
                        await slicer.pause()
            options = self._options.next_page(token) if token else None
        missing = [key for key, record in left.items() if type(record) is not KeptRecord]
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
