"""What a list or watch asks of the server: the query parameters of the API, by their names in Python spelling."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ListOptions:
    """The parameters of one list or watch request. Mutable: tweak functions change it in place.

    Attributes:
        label_selector: as the API takes it, "" for none.
        field_selector: as the API takes it, "" for none.
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

    def to_query(self) -> list[tuple[str, str]]:
        """The parameters that are set, in wire spelling and in a fixed order."""
        query = [
            ("labelSelector", self.label_selector),
            ("fieldSelector", self.field_selector),
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
