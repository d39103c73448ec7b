"""Two network namespaces, that of this process and another one, and a link between them that goes down and up."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


_HERE, _THERE = "02:00:00:00:00:01", "02:00:00:00:00:02"


class BrokenLink:
    """A pair of interfaces, of which one is in another namespace.

    Each side knows the hardware address of the other one. Otherwise, packets would wait for that below TCP, where a
    closed socket does not discard them.

    Attributes:
        address: of this side.
        inside: the command that runs another command in the other namespace.
    """

    def __init__(self) -> None:
        number = os.getpid() % 16384
        self._namespace = f"aio{number}"
        self._here = f"aioh{number}"
        self._there = f"aiot{number}"
        network = f"10.{200 + number // 4096}.{number // 16 % 256}.{number % 16 * 16}".rpartition(".")
        self.address = f"{network[0]}.{int(network[2]) + 1}"
        self._other = f"{network[0]}.{int(network[2]) + 2}"
        self.inside = ["ip", "netns", "exec", self._namespace]

    def make(self) -> None:
        """Make the namespace and the link."""
        _ip("netns", "add", self._namespace)
        peer = ("peer", "name", self._there, "address", _THERE, "netns", self._namespace)
        _ip("link", "add", self._here, "address", _HERE, "type", "veth", *peer)
        _ip("address", "add", f"{self.address}/28", "dev", self._here)
        self.up()
        for command in (
            ("address", "add", f"{self._other}/28", "dev", self._there),
            ("link", "set", self._there, "up"),
            ("link", "set", "lo", "up"),
            ("neigh", "replace", self.address, "lladdr", _HERE, "nud", "permanent", "dev", self._there),
        ):
            _ip("-n", self._namespace, *command)

    def up(self) -> None:
        """Let packets pass."""
        _ip("link", "set", self._here, "up")
        _ip("neigh", "replace", self._other, "lladdr", _THERE, "nud", "permanent", "dev", self._here)

    def down(self) -> None:
        """Lose all packets."""
        _ip("link", "set", self._here, "down")

    def remove(self) -> None:
        """Remove what `make` has made."""
        for command in (("link", "del", self._here), ("netns", "del", self._namespace)):
            subprocess.run(["ip", *command], capture_output=True, check=False)


@contextmanager
def broken_link() -> Iterator[BrokenLink]:
    """Provide a link that is up; skip the test where this process may not make one."""
    link = BrokenLink()
    try:
        link.make()
    except (OSError, subprocess.CalledProcessError) as error:
        link.remove()
        reason = getattr(error, "stderr", b"") or str(error).encode()
        pytest.skip(f"no network namespaces here: {reason.decode().strip()}")
    try:
        yield link
    finally:
        link.remove()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], capture_output=True, check=True, timeout=50)
