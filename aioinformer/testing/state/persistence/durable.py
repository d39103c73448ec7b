"""State that outlives the process, in a SQLite file.

Every change is in the file before the response to its writer. The file has the current state, not the history: to
clients, a restarted server is one that has been compacted, and they relist.
"""

from __future__ import annotations

import errno
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from aioinformer.errors import UsageError
from aioinformer.testing.state.persistence.private_files import ensure_private, restrict_if_there

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aioinformer.testing.state.storage import Backup, Change

_TABLES = """
create table if not exists objects (
    resource text not null, key text not null, version integer not null, body blob not null,
    primary key (resource, key)
) without rowid;
create table if not exists server (only integer primary key check (only = 1), version integer not null);
"""
_VERSION = "insert or replace into server values (1, ?)"
_OBJECT = "insert or replace into objects values (?, ?, ?, ?)"


class Database:
    """One database file, used by one server at a time.

    Args:
        path: of the file; created if needed, readable by its owner only. A symbolic link is not followed.

    Raises:
        UsageError: the file is no database of this kind, or another server uses it.
    """

    def __init__(self, path: Path) -> None:
        try:
            if str(path) != ":memory:":
                ensure_private(path)
                # SQLite gives its auxiliary files the same mode.
                for suffix in ("-wal", "-shm", "-journal"):
                    restrict_if_there(path.with_name(path.name + suffix))
        except OSError as error:
            raise UsageError(f"{path}: cannot be used as a database: {_reason(error)}") from error
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=0)
            # The first write takes the lock, and the connection keeps it.
            self._connection.execute("pragma locking_mode=exclusive")
            self._connection.execute("pragma journal_mode=wal")
            self._connection.execute("pragma synchronous=normal")
            self._connection.executescript(_TABLES)
        except sqlite3.Error as error:
            raise UsageError(f"{path}: cannot be used as a database: {error}") from error

    @property
    def version(self) -> int:
        """The version of the server at its last write; 0 for a new file."""
        with closing(self._connection.execute("select version from server")) as found:
            row = found.fetchone()
        return int(row[0]) if row else 0

    def bodies(self) -> Iterator[tuple[str, bytes]]:
        """Return all objects with the names of their resources, oldest version first."""
        with closing(self._connection.execute("select resource, body from objects order by version")) as found:
            yield from found

    def note(self, group_resource: str, change: Change) -> None:
        """Write a change."""
        record = change.record
        with self._connection:
            self._connection.execute("begin")
            if change.type == "DELETED":
                sql = "delete from objects where resource = ? and key = ?"
                self._connection.execute(sql, (group_resource, record.key))
            else:
                self._connection.execute(_OBJECT, (group_resource, record.key, record.version, record.body))
            self._connection.execute(_VERSION, (change.version,))

    def replace(self, state: Backup) -> None:
        """Replace the contents by this state."""
        rows = (
            (name, record.key, record.version, record.body)
            for name, records in state.collections.items()
            for record in records.values()
        )
        with self._connection:
            self._connection.execute("begin")
            self._connection.execute("delete from objects")
            self._connection.executemany(_OBJECT, rows)
            self._connection.execute(_VERSION, (state.version,))

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._connection.close()


def _reason(error: OSError) -> str:
    return "it is a link; name the file itself" if error.errno == errno.ELOOP else error.strerror or str(error)
