"""Checks of single options: a value that makes no sense is refused where it is given, with the name of the option."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aioinformer.backoff import BackoffOptions
from aioinformer.errors import OptionError
from aioinformer.transport.json_scanner import DEFAULT_MAX_FRAME


@dataclass(slots=True)
class ListOptions:
    """The parameters of one list or watch request. Mutable: tweak functions change it in place.

    Attributes:
        label_selector: as the API takes it, "" for none.
        field_selector: as the API takes it, "" for none.
        shard_selector: as the API takes it, "" for none; servers that know of no shards ignore it.
        resource_version: "" asks for the most recent data (lists) or for "whatever there is" (watches).
        resource_version_match: "", "NotOlderThan" or "Exact".
        limit: objects in a page, 0 for no limit.
        continue_token: what the page before handed out.
        watch: a watch instead of a list.
        allow_watch_bookmarks: ask for bookmarks.
        send_initial_events: a streaming list.
        timeout_seconds: after which the server ends the watch, 0 for its own choice.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    send_initial_events: bool = False
    timeout_seconds: int = 0
    shard_selector: str = ""

    def to_query(self) -> list[tuple[str, str]]:
        """The parameters that are set, in wire spelling and in a fixed order."""
        query = [
            ("labelSelector", self.label_selector),
            ("fieldSelector", self.field_selector),
            ("shardSelector", self.shard_selector),
            ("resourceVersion", self.resource_version),
            ("resourceVersionMatch", self.resource_version_match),
            ("limit", str(self.limit) if self.limit else ""),
            ("continue", self.continue_token),
            ("watch", "true" if self.watch else ""),
            ("allowWatchBookmarks", "true" if self.allow_watch_bookmarks else ""),
            ("sendInitialEvents", "true" if self.send_initial_events else ""),
            ("timeoutSeconds", str(self.timeout_seconds) if self.timeout_seconds else ""),
        ]
        return [(name, value) for name, value in query if value]


@dataclass(frozen=True, slots=True)
class ReflectorOptions:
    """How a collection is listed and watched; times in seconds.

    Attributes:
        page_size: objects in a page of a list, 0 for one page.
        streaming_list: ask for streaming lists (`sendInitialEvents`); servers that cannot are asked for pages.
        list_resource_version: "" lists what is true now. "0" lists what the server has in memory, which may be old
            after a fail-over, and comes in one body (client-go's way, for servers that must be spared).
        min_watch_timeout: watches ask the server to end them after a random time between this and its double.
        stream_patience: a streaming list that brings no new object for so long is not one.
        idle_timeout: a watch without an event or bookmark (which come once a minute) for so long is opened again. If
            the next one brings nothing either, the collection is quiet: then only TCP keepalive, or the end that the
            server was asked for, ends a watch. A page of a list without a new object for so long is a failure.
        backoff: the delays after failures.
        max_frame: the largest object accepted, in bytes.
        slice_seconds: how long work may hold the event loop at a time.
        consistency_check: whether each streaming list is compared with a list at its version: "off", "report" to the
            watch error handler and the log, or "raise", which ends the informer. "" leaves it to the environment
            variable `AIOINFORMER_WATCHLIST_INCONSISTENCY_DETECTOR`, and to "off" without it.
        max_internal_error_retry_duration: for so long since the first of a row of internal errors (500) within watches,
            the watch is opened again from the same version, after a delay; then a list follows. 0 lists at once: such
            an error may be all that is told of an object.
    """

    page_size: int = 500
    streaming_list: bool = True
    list_resource_version: str = ""
    min_watch_timeout: float = 300.0
    stream_patience: float = 30.0
    idle_timeout: float = 90.0
    backoff: BackoffOptions = field(default_factory=BackoffOptions)
    max_frame: int = DEFAULT_MAX_FRAME
    slice_seconds: float = 0.0005
    consistency_check: str = ""
    max_internal_error_retry_duration: float = 0.0

    def __post_init__(self) -> None:
        page_size: object = self.page_size
        if not isinstance(page_size, int) or page_size < 0:
            raise OptionError(f"page_size must be 0 (no paging) or more, not {self.page_size!r}")
        if not self.min_watch_timeout >= 1:
            raise OptionError(f"min_watch_timeout must be at least 1 second, not {self.min_watch_timeout!r}")
        for name in ("stream_patience", "idle_timeout", "max_frame", "slice_seconds"):
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} must be positive, not {getattr(self, name)!r}")
        if not self.max_internal_error_retry_duration >= 0:
            raise OptionError(
                "max_internal_error_retry_duration must be 0 (never) or more, "
                f"not {self.max_internal_error_retry_duration!r}"
            )
        if self.consistency_check not in ("", "off", "report", "raise"):
            raise OptionError(f'consistency_check must be "off", "report" or "raise", not {self.consistency_check!r}')
        if self.list_resource_version not in ("", "0"):
            raise OptionError(f'list_resource_version must be "" or "0", not {self.list_resource_version!r}')

    def stream(self, version: str, share: float) -> ListOptions:
        """The request for a streaming list.

        Args:
            version: that the list must not be older than, "" for what is true now.
            share: in [0, 1): how much longer than the least the watch shall last.
        """
        options = self.watch(version, share)
        options.send_initial_events = True
        options.resource_version_match = "NotOlderThan"
        return options

    def first_page(self, version: str | None, *, paged: bool = True) -> ListOptions:
        """The request for the first page of a list, or for all of it.

        Args:
            version: that is held already, "" if none is; None if none may be named.
            paged: False for one body.
        """
        from_memory = self.list_resource_version == "0" and version is not None
        return ListOptions(
            limit=self.page_size if paged else 0, resource_version=(version or "0") if from_memory else ""
        )

    def next_page(self, token: str) -> ListOptions:
        """The request for a page that follows another; it must not name a version again."""
        return ListOptions(limit=self.page_size, continue_token=token)

    def probe(self) -> ListOptions:
        """The request for a single object, which shows the server's version."""
        return ListOptions(limit=1)

    def watch(self, version: str, share: float) -> ListOptions:
        """The request for a watch.

        Args:
            version: after which it begins.
            share: in [0, 1): how much longer than the least it shall last.
        """
        return ListOptions(
            watch=True,
            resource_version=version,
            allow_watch_bookmarks=True,
            timeout_seconds=int(self.min_watch_timeout * (1 + share)),
        )


def checked_fields(paths: Any) -> list[str]:
    """Return the paths as a list.

    Raises:
        OptionError: they are no list of strings.
    """
    if isinstance(paths, str):
        raise OptionError(f"fields must be a list of paths, not a string: fields=[{paths!r}]")
    try:
        found = list(paths)
    except TypeError:
        raise OptionError(f"fields must be a list of paths, not {paths!r}") from None
    for path in found:
        if not isinstance(path, str):
            raise OptionError(f"fields must be paths such as 'spec.nodeName', not {path!r}")
    return found


def check_share(share: Any, name: str = "max_undecodable") -> None:
    """Do nothing if this is a share, or None.

    Raises:
        OptionError: it is not.
    """
    if share is None:
        return
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise OptionError(f"{name} must be a share from 0 to 1, or None for no limit, not {share!r}")


def check_seconds(seconds: Any, name: str) -> None:
    """Do nothing if this is a number of seconds.

    Raises:
        OptionError: it is not.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise OptionError(f"{name} must be a number of seconds, 0 or more, not {seconds!r}")


def check_metrics(metrics: Any) -> None:
    """Do nothing if informers can be registered with this, or it is None.

    Raises:
        OptionError: they cannot.
    """
    if metrics is not None and (isinstance(metrics, type) or not callable(getattr(metrics, "register", None))):
        kind = f"the class {metrics.__name__}" if isinstance(metrics, type) else type(metrics).__name__
        raise OptionError(f"metrics must be a provider such as PrometheusMetrics(), not {kind}")


def check_options(options: Any) -> None:
    """Do nothing if these are `ReflectorOptions`, or None.

    Raises:
        OptionError: they are not.
    """
    if options is not None and not isinstance(options, ReflectorOptions):
        raise OptionError(f"options must be a ReflectorOptions(...), not {type(options).__name__}")


def check_indexers(indexers: Any) -> None:
    """Do nothing if this is a mapping, or None.

    Raises:
        OptionError: it is not.
    """
    if indexers is not None and not hasattr(indexers, "items"):
        raise OptionError(
            f'indexers must map names to functions or paths, {{"node": …}}, not {type(indexers).__name__}'
        )
