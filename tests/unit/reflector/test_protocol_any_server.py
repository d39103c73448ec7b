"""Invariants of the protocol, for any answers of a server at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from aioinformer.backoff import MAX_RETRY_AFTER
from aioinformer.errors import DecodeError, Forbidden, TransportError, api_error
from aioinformer.reflector import Phase, ReflectorOptions
from aioinformer.reflector.protocol.messages import (
    Accepted,
    Elapsed,
    Ended,
    Failed,
    Idled,
    Listed,
    PageEnded,
    Read,
    Send,
    Wait,
    Watched,
)
from aioinformer.reflector.protocol.watches import SHORT_WATCH
from aioinformer.reflector.watch_events import ADDED, DELETED, ERROR, WatchEvent
from tests.support.conversation import Conversation
from tests.support.wire_objects import (
    added,
    bookmark,
    deleted,
    error_event,
    initial_events_end,
    modified,
    record,
    undecodable,
)

if TYPE_CHECKING:
    from aioinformer.reflector.protocol.messages import Answer

NAMES = st.sampled_from("abc")
VERSIONS = st.one_of(st.integers(1, 9), st.just(""), st.just("opaque"))
PASSING = st.sampled_from([0.0, 0.0, 0.0, 0.3, 0.99, 1.0, 5.0, 29.0, 40.0, 150.0])
STATUSES = st.sampled_from([0, 400, 401, 403, 404, 405, 410, 422, 429, 500, 503, 504])
RETRY_AFTER = st.one_of(st.none(), st.sampled_from([0.5, 3.0, 70.0, 1e12]))

EVENTS = st.one_of(
    st.builds(added, NAMES, VERSIONS),
    st.builds(modified, NAMES, VERSIONS),
    st.builds(deleted, NAMES, VERSIONS),
    st.builds(bookmark, VERSIONS),
    st.builds(initial_events_end, VERSIONS),
    st.builds(undecodable, st.sampled_from(["a", "b", ""]), st.sampled_from([ADDED, DELETED])),
    st.builds(WatchEvent, st.just("NEWS")),
)
ERRORS = st.builds(lambda status, wait: error_event(status, retryAfterSeconds=wait), STATUSES, RETRY_AFTER)
FAILURES = st.one_of(
    st.builds(lambda status, wait: Failed(api_error(status or 500, retry_after=wait)), STATUSES, RETRY_AFTER),
    st.just(Failed(TransportError("broke"))),
    st.just(Failed(DecodeError("garbage"))),
)
ITEMS = st.one_of(
    st.builds(record, NAMES, VERSIONS), st.just(DecodeError("no", key="ns/a")), st.just(DecodeError("no"))
)
WATCH_ANSWERS = st.one_of(
    st.lists(EVENTS, max_size=4).map(Watched),
    st.builds(lambda event: Watched([event]), ERRORS),
    st.just(Ended()),
    FAILURES,
)
PAGE_ANSWERS = st.one_of(
    st.lists(ITEMS, max_size=3).map(Listed),
    st.builds(lambda version, token: PageEnded(str(version), token), VERSIONS, st.sampled_from(["", "", "p", "q"])),
    FAILURES,
)


def failure_in(answer: Answer) -> Exception | None:
    """What the answer ends the request with."""
    if isinstance(answer, Failed):
        return answer.error
    if isinstance(answer, Watched) and answer.events and answer.events[0].type == ERROR:
        return answer.events[0].error
    return None


@dataclass
class Attempt:
    """One request: when it was sent, for how long it was read, and whether it came to a bad end."""

    sent: float
    page: bool
    ended: float = 0.0
    bad: bool = False


class AnyServer:
    """Answers whatever was drawn, and keeps account of what the protocol does."""

    def __init__(self, draw: Any, options: ReflectorOptions) -> None:
        self._draw = draw
        chance = draw(st.floats(0, 0.999))
        self.talk = Conversation(options, random=lambda: chance)
        self.attempts: list[Attempt] = []
        self._quiet_until = 0.0

    def turn(self) -> None:
        """One step of the protocol, and one answer."""
        talk = self.talk
        step = talk.protocol.next_step(talk.now)
        if isinstance(step, Wait):
            assert step.until > talk.now, "waits for what is over"
            talk.now = step.until
            talk.answer(Elapsed())
        elif isinstance(step, Send):
            assert talk.now >= self._quiet_until, "asked before the time that the server named"
            self.attempts.append(Attempt(talk.now, page=not step.options.watch, ended=talk.now))
            self._say(self._draw(st.one_of(st.just(Accepted()), FAILURES)))
        else:
            self._read(step)

    def _read(self, step: Read) -> None:
        talk, passing = self.talk, self._draw(PASSING)
        if step.until is not None and talk.now + passing >= step.until:
            talk.now = max(talk.now, step.until)
            self._say(Elapsed())
        elif passing > 90:
            talk.now += 90
            self._say(Idled(90))
        else:
            talk.now += passing
            self._say(self._draw(PAGE_ANSWERS if self.attempts[-1].page else WATCH_ANSWERS))

    def _say(self, answer: Answer) -> None:
        talk, attempt = self.talk, self.attempts[-1]
        told = len(talk.lines)
        talk.answer(answer)
        attempt.ended = talk.now
        failure = failure_in(answer)
        if failure is not None:
            # Refusals that alternate are one state, with the text of the first.
            known = "403" if isinstance(failure, Forbidden) else str(failure)
            assert len(talk.lines) > told or known in talk.protocol.reason, "nobody knows of a failure"
            if wait := getattr(failure, "retry_after", None):
                self._quiet_until = talk.now + min(wait, MAX_RETRY_AFTER)
        early = isinstance(answer, Ended) and talk.now - attempt.sent < SHORT_WATCH
        attempt.bad = failure is not None or early

    def bad_ends(self, since: float, seconds: float) -> int:
        """How many requests of a span of time failed, or ended at once."""
        return sum(attempt.bad for attempt in self.attempts if since <= attempt.sent < since + seconds)

    def requests(self, since: float, seconds: float) -> int:
        """How many requests were sent in a span of time, pages apart."""
        return sum(not attempt.page and since <= attempt.sent < since + seconds for attempt in self.attempts)


class GoodServer:
    """A server that can do everything, and whose history begins where it is now."""

    NOW = 1000
    NAMES = ("x", "y", "z")

    def __init__(self, talk: Conversation) -> None:
        self._talk = talk

    def serve(self) -> None:
        """Answers until a watch has been open for a while."""
        talk = self._talk
        for _ in range(20):
            if talk.reads:  # what is open still is the old server's, which has gone
                talk.break_off()
            step = talk.request()
            if step.options.continue_token:
                talk.refuse(410)
            elif not step.options.watch:
                talk.page(*self.NAMES, version=self.NOW)
            elif step.options.send_initial_events:
                talk.accept()
                talk.events(*(added(name, 1) for name in self.NAMES), initial_events_end(self.NOW))
                return
            elif step.options.resource_version == str(self.NOW):
                talk.accept()
                return
            else:
                talk.refuse(410)
        raise AssertionError(f"no watch after all: {talk.asked[-20:]}")


OPTIONS = st.builds(ReflectorOptions, streaming_list=st.booleans(), list_resource_version=st.sampled_from(["", "0"]))


@given(st.data(), OPTIONS)
def test_every_conversation_continues_at_a_limited_rate(data: st.DataObject, options: ReflectorOptions) -> None:
    server = AnyServer(data.draw, options)
    for _ in range(60):
        server.turn()
    for attempt in server.attempts:
        assert server.bad_ends(attempt.sent, 2.0) <= 3
        assert server.requests(attempt.sent, 2.0) <= 6


@given(st.data(), OPTIONS)
def test_protocol_recovers_with_the_server(data: st.DataObject, options: ReflectorOptions) -> None:
    server = AnyServer(data.draw, options)
    for _ in range(data.draw(st.integers(1, 40))):
        server.turn()
    GoodServer(server.talk).serve()
    assert server.talk.protocol.phase is Phase.WATCHING
    assert set(server.talk.cache) == {"ns/x", "ns/y", "ns/z"}


@given(st.data(), st.lists(st.one_of(WATCH_ANSWERS, PAGE_ANSWERS, st.just(Accepted()), st.just(Elapsed()))))
def test_unsolicited_responses_are_harmless(data: st.DataObject, answers: list[Answer]) -> None:
    talk = Conversation()
    for answer in answers:
        talk.answer(answer, after=data.draw(PASSING))
        talk.protocol.next_step(talk.now)
