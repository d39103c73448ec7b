"""Options of list and watch requests and of the reflector, and checks of single options of informers."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from aioinformer.backoff import BackoffOptions
from aioinformer.errors import OptionError
from aioinformer.transport.json_scanner import DEFAULT_MAX_FRAME


class ListOptions(msgspec.Struct):
    """The parameters of one list or watch request. Mutable: tweak functions change it in place.

    Attributes:
        label_selector: in the API's syntax, "" for none.
        field_selector: in the API's syntax, "" for none.
        shard_selector: in the API's syntax, "" for none; servers without shards ignore it.
        resource_version: "" requests the most recent data (lists), or a start at any version (watches).
        resource_version_match: "", "NotOlderThan" or "Exact".
        limit: the number of objects in a page, 0 for no limit.
        continue_token: the token from the page before.
        watch: request a watch instead of a list.
        allow_watch_bookmarks: request bookmarks.
        send_initial_events: request a streaming list.
        timeout_seconds: after which the server ends the watch, 0 for the server's default.
        max_frame: the largest object that the reader of the response accepts, in bytes; it is not sent.
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
    max_frame: int = DEFAULT_MAX_FRAME

    def to_query(self) -> list[tuple[str, str]]:
        """Return the parameters that are set, with their names in the API, in a fixed order."""
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


class ReflectorOptions(msgspec.Struct, frozen=True):
    """How a collection is listed and watched; times in seconds.

    Attributes:
        page_size: the number of objects in a page of a list, 0 for one page.
        streaming_list: request streaming lists (`sendInitialEvents`). If the server does not support them, lists are
            requested in pages. "auto" streams a collection that had at most 1,000 objects in its last list, which saves
            requests, and requests pages otherwise, which is faster.
        list_resource_version: "" lists the current state. "0" lists the server's watch cache, which may be stale
            after a fail-over, in one body. client-go does this; it reduces the load on the server.
        min_watch_timeout: each watch requests to be ended by the server after a random time between this and twice
            this.
        idle_timeout: a watch without an event or bookmark (which come once a minute) for this time is opened again. If
            the next one is silent, too, a list follows if the server has sent bookmarks regularly. Otherwise, the
            collection is quiet: then a watch ends by TCP keepalive, or at the time requested from the server. A page of
            a list without a new object for this time is a failure; a streaming list that brings fewer than 100 new
            objects and less than 1 MiB of them in a third of it is replaced by a list in pages.
        backoff: the delays after failures.
        max_frame: the largest object accepted, in bytes.
    """

    page_size: int = 500
    streaming_list: bool | Literal["auto"] = True
    list_resource_version: str = ""
    min_watch_timeout: float = 300.0
    idle_timeout: float = 90.0
    backoff: BackoffOptions = msgspec.field(default_factory=BackoffOptions)
    max_frame: int = DEFAULT_MAX_FRAME

    def __post_init__(self) -> None:
        page_size: object = self.page_size
        if not isinstance(page_size, int) or page_size < 0:
            raise OptionError(f"page_size must be 0 (no paging) or more, not {self.page_size!r}")
        if not isinstance(self.streaming_list, bool) and self.streaming_list != "auto":
            raise OptionError(f"streaming_list must be True, False or 'auto', not {self.streaming_list!r}")
        if not self.min_watch_timeout >= 1:
            raise OptionError(f"min_watch_timeout must be at least 1 second, not {self.min_watch_timeout!r}")
        for name in ("idle_timeout", "max_frame"):
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} must be positive, not {getattr(self, name)!r}")
        if self.list_resource_version not in ("", "0"):
            raise OptionError(f'list_resource_version must be "" or "0", not {self.list_resource_version!r}')

    @property
    def stream_patience(self) -> float:
        """The time in which a streaming list must bring something, or is replaced by a list in pages."""
        return self.idle_timeout / 3

    def stream(self, version: str, share: float) -> ListOptions:
        """Return the request for a streaming list.

        Args:
            version: the list must not be older; "" for the current state.
            share: in [0, 1): how much longer than `min_watch_timeout` the watch lasts.
        """
        options = self.watch(version, share)
        options.send_initial_events = True
        options.resource_version_match = "NotOlderThan"
        return options

    def first_page(self, version: str | None, *, paged: bool = True) -> ListOptions:
        """Return the request for the first page of a list, or for the whole list.

        Args:
            version: up to which the collection has been read, "" for none; None if the request must not name one.
            paged: False for one body.
        """
        from_memory = self.list_resource_version == "0" and version is not None
        return ListOptions(
            limit=self.page_size if paged else 0,
            resource_version=(version or "0") if from_memory else "",
            max_frame=self.max_frame,
        )

    def next_page(self, token: str) -> ListOptions:
        """Return the request for the page after another. It must not name a version again."""
        return ListOptions(limit=self.page_size, continue_token=token, max_frame=self.max_frame)

    def probe(self) -> ListOptions:
        """Return the request for a list of one object, which shows the server's version."""
        return ListOptions(limit=1, max_frame=self.max_frame)

    def watch(self, version: str, share: float) -> ListOptions:
        """Return the request for a watch.

        Args:
            version: from which it starts.
            share: in [0, 1): how much longer than `min_watch_timeout` it lasts.
        """
        return ListOptions(
            watch=True,
            resource_version=version,
            allow_watch_bookmarks=True,
            timeout_seconds=int(self.min_watch_timeout * (1 + share)),
            max_frame=self.max_frame,
        )


def checked_fields(paths: Any) -> list[str]:
    """Return field paths as a list.

    Raises:
        OptionError: they are not a list of strings.
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


def check_seconds(seconds: Any, name: str) -> None:
    """Check that an option is a number of seconds.

    Raises:
        OptionError: it is not.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise OptionError(f"{name} must be a number of seconds, 0 or more, not {seconds!r}")


def check_metrics(metrics: Any) -> None:
    """Check that an option is a provider of metrics, or None.

    Raises:
        OptionError: it is not.
    """
    if metrics is not None and (isinstance(metrics, type) or not callable(getattr(metrics, "register", None))):
        if isinstance(metrics, type):
            kind = f"the class {metrics.__name__}"
        else:
            kind = type(metrics).__name__
        raise OptionError(f"metrics must be a provider such as PrometheusMetrics(), not {kind}")


def check_options(options: Any, kind: type[ReflectorOptions] = ReflectorOptions) -> None:
    """Check that options are of a kind, or None.

    Raises:
        OptionError: they are not.
    """
    if options is not None and not isinstance(options, kind):
        raise OptionError(f"options must be {kind.__name__}(…), not {type(options).__name__}")


def check_indexers(indexers: Any) -> None:
    """Check that indexers are a mapping, or None.

    Raises:
        OptionError: it is not.
    """
    if indexers is not None and not hasattr(indexers, "items"):
        raise OptionError(
            f'indexers must map names to functions or paths, {{"node": …}}, not {type(indexers).__name__}'
        )
