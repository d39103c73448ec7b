"""State that outlives the process, in a SQLite file.

Every change is in the file before its writer is answered. What is kept is the present, not the history: a server that
starts again with the file is to its clients one that has been compacted, and they relist.
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
    """One file, which belongs to one server at a time.

    Args:
        path: of the file; made if need be. Only its owner can read it, then, and a link is not followed.

    Raises:
        UsageError: it is none of ours, or another server has it.
    """

    def __init__(self, path: Path) -> None:
        try:
            if str(path) != ":memory:":
                ensure_private(path)
                # SQLite gives others that it makes beside it the same mode.
                for suffix in ("-wal", "-shm", "-journal"):
                    restrict_if_there(path.with_name(path.name + suffix))
        except OSError as error:
            raise UsageError(f"{path}: cannot be used as a database: {_reason(error)}") from error
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=0)
            # The lock is taken with the first write, and kept.
            self._connection.execute("pragma locking_mode=exclusive")
            self._connection.execute("pragma journal_mode=wal")
            self._connection.execute("pragma synchronous=normal")
            self._connection.executescript(_TABLES)
        except sqlite3.Error as error:
            raise UsageError(f"{path}: cannot be used as a database: {error}") from error

    @property
    def version(self) -> int:
        """Of the server when it was last written; 0 for a new file."""
        with closing(self._connection.execute("select version from server")) as found:
            row = found.fetchone()
        return int(row[0]) if row else 0

    def bodies(self) -> Iterator[tuple[str, bytes]]:
        """All objects with the names of their resources, oldest version first."""
        with closing(self._connection.execute("select resource, body from objects order by version")) as found:
            yield from found

    def note(self, group_resource: str, change: Change) -> None:
        """Keeps a change."""
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
        """Keeps this state, and nothing else."""
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
        """Idempotent."""
        self._connection.close()


def _reason(error: OSError) -> str:
    return "it is a link; name the file itself" if error.errno == errno.ELOOP else error.strerror or str(error)
