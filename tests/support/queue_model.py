"""A stateful model for queues: a server whose changes are queued at any time, beside the state that it should have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tests.support.queues import AnyQueue

NAMES = st.sampled_from("abcd")


class QueueModel(RuleBasedStateMachine):
    """Changes a server, and queues the changes; subclasses process the queue.

    Attributes:
        server: name -> version of each object on the server.
        clock: the version of the server.
        queue: set by subclasses.
    """

    queue: AnyQueue

    def __init__(self) -> None:
        super().__init__()
        self.server: dict[str, int] = {}
        self.clock = 0

    def queued(self, name: str) -> Any:
        """Return an object of the server in the form that is queued."""
        raise NotImplementedError

    @staticmethod
    def run(operation: Coroutine[Any, Any, Any]) -> Any:
        """Run an operation that never waits."""
        try:
            while True:
                operation.send(None)
        except StopIteration as done:
            return done.value

    def version(self) -> int:
        self.clock += 1
        return self.clock

    @rule(name=NAMES)
    def write(self, name: str) -> None:
        new = name not in self.server
        self.server[name] = self.version()
        self.run(self.queue.add(self.queued(name)) if new else self.queue.update(self.queued(name)))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if name in self.server:
            self.server[name] = self.version()
            last = self.queued(name)
            del self.server[name]
            self.run(self.queue.delete(last))

    @rule(written=st.lists(NAMES), deleted=st.lists(NAMES), owned=st.booleans())
    def miss_and_list(self, written: list[str], deleted: list[str], owned: bool) -> None:
        for name in written:
            self.server[name] = self.version()
        for name in deleted:
            self.server.pop(name, None)
        objects = {name: self.queued(name) for name in self.server}
        version = str(self.version())
        self.run(self.queue.replace_owned(objects, version) if owned else self.queue.replace(objects.values(), version))

    @rule()
    def resync(self) -> None:
        self.run(self.queue.resync())
