"""One line for each notification: JSON for programs, columns for people.

Both forms say the same and are made of the same few values; nothing here does I/O or knows the time. The fields and
their order in the JSON form are relied upon by scripts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from aioinformer.cli.output.changes import changed
from aioinformer.logs import visible, visible_json
from aioinformer.resources.keys import DeletedFinalStateUnknown
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func as key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.cli.output.palette import Palette

_encode = msgspec.json.Encoder().encode
_KEY_WIDTH = 52


class Form(Protocol):
    """How notifications become lines; each method returns a line with its line feed."""

    def add(self, obj: Any, initial: bool) -> bytes: ...

    def update(self, old: Any, new: Any) -> bytes: ...

    def delete(self, obj: Any) -> bytes: ...

    def synced(self, count: int, resource_version: str) -> bytes: ...


def identity(obj: Any) -> tuple[str, str]:
    """uid and resourceVersion of an object, as far as it has them."""
    metadata = getattr(obj, "metadata", None)
    return (getattr(metadata, "uid", None) or "", getattr(metadata, "resource_version", None) or "")


class JsonForm:
    """One JSON object a line.

    Args:
        resource: named in each line, "" where there is only one.
        whole: makes the JSON of an object, which each line of one then has; None to leave it out.
    """

    def __init__(self, resource: str = "", whole: Callable[[Any], msgspec.Raw] | None = None) -> None:
        self._resource = {"resource": resource} if resource else {}
        self._whole = whole

    def add(self, obj: Any, initial: bool) -> bytes:
        return self._about("add", key_of(obj), obj, initial=initial)

    def update(self, old: Any, new: Any) -> bytes:
        return self._about("update", key_of(new), new, oldResourceVersion=identity(old)[1])

    def delete(self, obj: Any) -> bytes:
        missed = isinstance(obj, DeletedFinalStateUnknown)
        return self._about("delete", key_of(obj), obj.obj if missed else obj, tombstone=missed)

    def stored(self, obj: Any) -> bytes:
        """What the cache holds of an object at the end."""
        return self._about("store", key_of(obj), obj)

    def synced(self, count: int, resource_version: str) -> bytes:
        return _line({"event": "synced", **self._resource, "count": count, "resourceVersion": resource_version})

    def _about(self, event: str, key: str, obj: Any, **more: Any) -> bytes:
        uid, version = identity(obj)
        line = {"event": event, **self._resource, "key": key, "uid": uid, "resourceVersion": version, **more}
        if self._whole is not None:
            line["object"] = self._whole(obj)
        return _line(line)


class Columns:
    """Widths of columns, shared by the forms of several resources; each grows when it has to hold more."""

    def __init__(self) -> None:
        self.resource = 0
        self.key = _KEY_WIDTH // 2

    def fit(self, resource: str, key: str) -> str:
        """Return both, as wide as the columns are; the resource is left out where there is none."""
        self.key = max(self.key, min(len(key), _KEY_WIDTH))
        if not resource:
            return f"{key:<{self.key}}"
        self.resource = max(self.resource, len(resource))
        return f"{resource:<{self.resource}}  {key:<{self.key}}"


class TextForm:
    """Columns for people: time, event, key, what changed.

    Args:
        palette: colours, or none.
        clock: the time of day, as text.
        resource: put before each key, "" where there is only one.
        columns: shared by the forms of all resources.
        secret: the objects are Secrets, whatever they say.
        show_secrets: show values of Secrets.
    """

    def __init__(
        self,
        palette: Palette,
        clock: Callable[[], str],
        resource: str = "",
        *,
        columns: Columns | None = None,
        secret: bool = False,
        show_secrets: bool = False,
    ) -> None:
        self._secrets = {"secret": secret, "show_secrets": show_secrets}
        self._palette = palette
        self._clock = clock
        self._resource = visible(resource)
        self._shared = columns or Columns()
        self._shared.fit(self._resource, "")

    def add(self, obj: Any, initial: bool) -> bytes:
        return self._columns("add", key_of(obj), "" if initial else _standing(obj))

    def update(self, old: Any, new: Any) -> bytes:
        (old_uid, old_version), (uid, version) = identity(old), identity(new)
        if old_uid != uid:
            said = "deleted and created again"
        elif old_version == version:
            return self._columns("resync", key_of(new), "")
        else:
            said = changed(old.to_dict(), new.to_dict(), **self._secrets) or f"version {version}"
        return self._columns("update", key_of(new), said)

    def delete(self, obj: Any) -> bytes:
        missed = isinstance(obj, DeletedFinalStateUnknown)
        return self._columns("delete", key_of(obj), "gone while nobody watched" if missed else "")

    def synced(self, count: int, resource_version: str) -> bytes:
        objects = "1 object" if count == 1 else f"{count} objects"
        return self._columns("synced", "", f"{objects} at version {resource_version}")

    def _columns(self, event: str, key: str, said: str) -> bytes:
        palette = self._palette
        named, said = palette.paint(event, f"{event:<6}"), visible(said)
        line = f"{palette.paint('time', self._clock())}  {named}  {self._shared.fit(self._resource, visible(key))}"
        return f"{line}  {said}\n".encode() if said else f"{line.rstrip()}\n".encode()


def summed_up(figures: Mapping[str, Any]) -> bytes:
    """The figures of a summary."""
    return _line(figures)


def _standing(obj: Any) -> str:
    return f"version {identity(obj)[1]}"


def _line(fields: Mapping[str, Any]) -> bytes:
    return visible_json(_encode(fields)) + b"\n"
