"""What a background task of a manager is, and what each of its runs receives. What runs it is in `running`."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar

import msgspec

from aioinformer.controller.declaration import NAME, checked_writes
from aioinformer.errors import OptionError, UsageError
from aioinformer.exports import lazy_type
from aioinformer.functions import async_function, function_name, plain_function
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.state import NO_STATE, State_co, Stated

if TYPE_CHECKING:
    from aioinformer.client.client import Client
    from aioinformer.leaderelection.elector import Term
else:
    Client = lazy_type("aioinformer.client.client", "Client")
    Term = lazy_type("aioinformer.leaderelection.elector", "Term")

R = TypeVar("R")
P = ParamSpec("P")

_log = get_logger("aioinformer.controller")


class ThreadRunner(Protocol):
    """Runs functions in threads for a run, which does not end before them."""

    async def run(self, call: Callable[[], R], name: str) -> R:
        """Return the result of a function."""


class BackgroundRun(Stated[State_co]):
    """One run of a background task: what `Manager.background` passes to the function.

    Attributes:
        name: of the task.
        client: a client whose field manager is the task. Once the run is over, it sends no write: because of the end of
            the term, or because the task goes on after its cancellation. Deletes and evictions raise `Stale` while a
            cache of a controller of the manager is staler than `max_staleness`, and are not sent.
        log: a logger that adds the name of the task to each line.
        term: the term of leadership; None if the task needs none.
        attempt: 1 for the first run; it grows with each restart, until the task has run for two minutes.
        dry_run: whether writes are logged and not sent. Ask it before your own calls to other systems.
    """

    __slots__ = ("_threads", "attempt", "client", "dry_run", "log", "name", "term")

    def __init__(
        self,
        name: str,
        client: Client,
        *,
        log: logging.LoggerAdapter[logging.Logger] | logging.Logger = _log,
        term: Term | None = None,
        attempt: int = 1,
        dry_run: bool = False,
        state: State_co = NO_STATE,
        threads: ThreadRunner | None = None,
    ) -> None:
        super().__init__(state)
        self._threads = threads
        self.name = name
        self.client = client
        self.log = log
        self.term = term
        self.attempt = attempt
        self.dry_run = dry_run

    async def to_thread(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result of a function that blocks, called in a thread with the context variables of the caller.

        If the run is cancelled, this call raises CancelledError at once, and the thread goes on: the Lease is not
        released before the thread has ended, and the log names a function that takes longer than ten seconds. So let it
        end soon: pass a timeout to it, or set a flag that it reads. A stop of the manager gives up such a thread after
        ten seconds; the Lease is not released then, and expires.

        Raises:
            Exception: the function raised it.
            LeadershipLost: the term of leadership is over; the function is not called.
            UsageError: the run has ended, or `function` is a coroutine function.
        """
        plain_function(function, "to_thread")
        call = partial(function, *args, **kwargs)
        if self._threads is None:  # in a test without a manager
            return await asyncio.to_thread(call)
        return await self._threads.run(call, function_name(function))

    def __repr__(self) -> str:
        return f"<run of background task {self.name}>"


BackgroundFunction: TypeAlias = Callable[[BackgroundRun[State_co]], Coroutine[Any, Any, None]]


class BackgroundTask(msgspec.Struct, frozen=True):
    """The declaration of a background task; `Manager.background` describes it.

    Attributes:
        name: of the task.
        function: an async function of a `BackgroundRun`.
        elected: whether only the leader runs it.
        writes: resource -> verbs; None if its writes are not declared.
    """

    name: str
    function: Callable[[Any], Any]
    elected: bool
    writes: dict[Resource[Any], tuple[str, ...]] | None


def declared_task(
    manager: str, function: Any, name: str, elected: Any, writes: Mapping[Resource[Any], Any] | None
) -> BackgroundTask:
    """Return the declaration of a background task.

    Args:
        manager: the name of the manager, for errors.

    Raises:
        UsageError: the function has no name of its own, and none is given; or another argument is invalid.
    """
    where = f"manager {manager}: background"
    async_function(function, where, "the function", "run")
    name = name or getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise UsageError(
            f"{where}: {function_name(function)} has no name, which log lines, readiness and its field manager need; "
            'pass one: background(function, name="sweep")'
        )
    if not NAME.fullmatch(name):
        raise OptionError(
            f"{where}: name must be up to 63 letters, digits, '-', '_' and '.', such as 'sweep', not {name!r}"
        )
    where = f"background task {name}"
    if not isinstance(elected, bool):
        raise OptionError(f"{where}: elected must be True or False, not {elected!r}")
    return BackgroundTask(name, function, elected, checked_writes(writes, f"{where}: writes"))


def checked_lifespan(lifespan: Any) -> Any:
    """Return the lifespan of a manager unchanged if it is None, or a function that may return a context manager.

    Raises:
        UsageError: it is not.
    """
    example = "decorate an async generator function of the manager with @contextlib.asynccontextmanager"
    if lifespan is None:
        return None
    if isinstance(lifespan, (list, tuple, set, frozenset)):
        raise UsageError(
            "Manager: lifespan must be one function, not several; write one that enters them in order, in an "
            "`async with` or with contextlib.AsyncExitStack"
        )
    if hasattr(type(lifespan), "__aenter__"):  # one of `asynccontextmanager` is callable, too
        raise UsageError(
            f"Manager: lifespan must be a function that returns an async context manager, not {lifespan!r}: each start "
            "of the manager enters a new one; pass the function without calling it"
        )
    if not callable(lifespan):
        raise UsageError(f"Manager: lifespan must be a function, not {lifespan!r}; {example}")
    if inspect.isasyncgenfunction(lifespan) or inspect.iscoroutinefunction(lifespan):
        raise UsageError(f"Manager: lifespan is {function_name(lifespan)}, without its decorator; {example}")
    try:
        inspect.signature(lifespan).bind("manager")
    except TypeError:
        raise UsageError(
            f"Manager: lifespan is {function_name(lifespan)}, and must accept one argument, the manager; {example}"
        ) from None
    except ValueError:  # a callable without a signature
        pass
    return lifespan
