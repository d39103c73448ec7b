"""A conversation with the list/watch protocol: the test is the server, the clock and the reader of the conclusions.

Nothing waits: time is a number, and it passes when the protocol wants to wait or the test says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer import DeletedFinalStateUnknown
from aioinformer.cache.objects.record import UndecodablePlaceholder
from aioinformer.errors import DecodeError, TransportError, api_error
from aioinformer.queue import DeltaType
from aioinformer.reflector import ReflectorOptions
from aioinformer.reflector.protocol.list_watch import ListWatchProtocol
from aioinformer.reflector.protocol.messages import (
    Accepted,
    Answer,
    Elapsed,
    Ended,
    Failed,
    Idled,
    Listed,
    PageEnded,
    Pending,
    Read,
    Replaced,
    Send,
    Wait,
    Watched,
)
from tests.support.wire_objects import error_event, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.record import Record
    from aioinformer.reflector import ListOptions
    from aioinformer.reflector.watch_events import WatchEvent


def words(options: ListOptions) -> str:
    """What a request asks for, in short: `stream`, `list limit=500`, `watch @7` …"""
    said = ["stream"] if options.send_initial_events else ["watch" if options.watch else "list"]
    if options.limit:
        said.append(f"limit={options.limit}")
    if options.continue_token:
        said.append(f"continue={options.continue_token}")
    if options.resource_version:
        said.append(f"@{options.resource_version}")
    return " ".join(said)


class Conversation:
    """Speaks with one protocol.

    Attributes:
        now: the time, in seconds.
        asked: every request so far: when, and what.
        cache: what whoever follows the conclusions has: key -> record.
        news: the conclusions, in words: `replaced`, `Added ns/a` …
        lines: what the protocol told the log.
        reports: the failures that it reported.
    """

    def __init__(
        self,
        options: ReflectorOptions | None = None,
        *,
        random: Callable[[], float] = lambda: 0.0,
        now: float = 0.0,
        watchable: bool = True,
    ) -> None:
        self.now = now
        self.asked: list[tuple[float, str]] = []
        self.cache: dict[str, Record] = {}
        self.news: list[str] = []
        self.lines: list[str] = []
        self.reports: list[str] = []
        self.protocol = ListWatchProtocol(
            options,
            random=random,
            known=self.cache.get,
            log=self.lines.append,
            report=lambda error: self.reports.append(str(error)),
            watchable=watchable,
        )

    # What the protocol does.

    def request(self) -> Send:
        """The next request; time passes until it is sent."""
        step = self.protocol.next_step(self.now)
        while isinstance(step, Wait):
            assert step.until > self.now, "waits for what is over"
            self.now = step.until
            self.answer(Elapsed())
            step = self.protocol.next_step(self.now)
        assert isinstance(step, Send), f"reads on: {step}"
        self.asked.append((self.now, words(step.options)))
        return step

    def ask(self) -> str:
        """The next request, in words."""
        return words(self.request().options)

    def delay(self) -> float:
        """How long the protocol wants to wait now."""
        step = self.protocol.next_step(self.now)
        return step.until - self.now if isinstance(step, Wait) else 0.0

    @property
    def reads(self) -> bool:
        """Whether it reads on in what is open."""
        return isinstance(self.protocol.next_step(self.now), Read)

    @property
    def patience(self) -> float | None:
        """For how long it reads on if nothing of interest comes."""
        step = self.protocol.next_step(self.now)
        assert isinstance(step, Read)
        return None if step.until is None else step.until - self.now

    # What the server does.

    def answer(self, *answers: Answer, after: float = 0.0) -> None:
        self.now += after
        for answer in answers:
            for conclusion in self.protocol.receive(answer, self.now):
                if isinstance(conclusion, Replaced):
                    there = {item.key: item for item in conclusion.records.values()}
                    kept = {key for key, item in there.items() if isinstance(item, UndecodablePlaceholder)}
                    stays = self.cache.keys() - there.keys() if "" in kept else set()
                    before = {key: self.cache[key] for key in (kept & self.cache.keys()) | stays}
                    self.cache.clear()
                    self.cache |= {key: item for key, item in there.items() if key not in kept} | before
                    self.news.append("replaced")
                    continue
                for delta in conclusion.deltas:
                    thing = delta.object
                    self.news.append(f"{delta.type} {thing.key}")
                    if delta.type is not DeltaType.DELETED:
                        assert not isinstance(thing, DeletedFinalStateUnknown)
                        self.cache[thing.key] = thing
                    else:
                        self.cache.pop(thing.key, None)

    def accept(self, after: float = 0.0) -> None:
        self.answer(Accepted(), after=after)

    def page(self, *names: str, version: int | str = 10, token: str = "", after: float = 0.0) -> None:
        """A whole page; its objects all have version 1."""
        self.accept(after)
        self.answer(Listed([record(name) for name in names]), PageEnded(str(version), token))

    def events(self, *events: WatchEvent, after: float = 0.0) -> None:
        self.answer(Watched(list(events)), after=after)

    @property
    def silence(self) -> float | None:
        """For how long it reads on if nothing comes at all."""
        step = self.protocol.next_step(self.now)
        assert isinstance(step, Read)
        return step.silence

    def no_head(self, after: float = 10.0) -> None:
        """The head of the response does not come in time."""
        self.answer(Pending(), after=after)

    def end(self, after: float = 0.0) -> None:
        self.answer(Ended(), after=after)

    # A request and what the server does with it.

    def open(self, after: float = 0.0) -> str:
        """Accept the next request; return it in words."""
        asked = self.ask()
        self.accept(after)
        return asked

    def answer_list(self, *names: str, version: int | str = 10, token: str = "") -> None:
        """Answer the next request with a whole page."""
        self.ask()
        self.page(*names, version=version, token=token)

    def relist(self, *names: str, version: int | str = 10) -> None:
        """Answer the next list, and accept the watch after it."""
        self.answer_list(*names, version=version)
        self.open()

    def refuse_next(self, status: int, reason: str = "Because", *, retry_after: float | None = None) -> None:
        self.ask()
        self.refuse(status, reason, retry_after=retry_after)

    def break_next(self) -> None:
        self.ask()
        self.break_off()

    def idle(self, seconds: float = 90.0) -> None:
        self.answer(Idled(seconds), after=seconds)

    def refuse(self, status: int, reason: str = "Because", *, retry_after: float | None = None) -> None:
        self.answer(Failed(api_error(status, {"reason": reason}, retry_after=retry_after)))

    def too_large(self) -> None:
        details = {"causes": [{"reason": "ResourceVersionTooLarge"}]}
        self.answer(Failed(api_error(504, {"reason": "Timeout", "details": details})))

    def error(self, status: int, after: float = 0.0, **details: float) -> None:
        """An ERROR event in what is open."""
        self.events(error_event(status, **details), after=after)

    def break_off(self, after: float = 0.0, *, sent: bool = False) -> None:
        error = TransportError("the connection broke")
        error.sent = sent
        self.answer(Failed(error), after=after)

    def broken_line(self, after: float = 0.0) -> None:
        self.answer(Failed(DecodeError("a line is no JSON")), after=after)


def watching(*names: str, version: int | str = 10, options: ReflectorOptions | None = None) -> Conversation:
    """A conversation that has listed these objects, in pages, and has just opened a watch."""
    talk = Conversation(options or ReflectorOptions(streaming_list=False))
    assert talk.ask().startswith("list")
    talk.page(*names, version=version)
    assert talk.ask() == (f"watch @{version}" if version != "" else "watch")
    talk.accept()
    return talk


def streaming(*events: WatchEvent) -> Conversation:
    """A conversation whose streaming list has been accepted, and has these events so far."""
    talk = Conversation()
    assert talk.open() == "stream"
    talk.events(*events)
    return talk
