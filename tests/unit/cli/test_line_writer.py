"""The line writer: whole lines, in order, and without blocking the caller."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from aioinformer.cli.output.line_writer import LineWriter

if TYPE_CHECKING:
    from pathlib import Path


def test_lines_are_whole_and_in_order(tmp_path: Path) -> None:
    lines = [f"{number} {'x' * (number % 500)}\n".encode() for number in range(2000)]
    with open(tmp_path / "out", "wb") as out:
        writer = LineWriter(out.fileno())
        for line in lines:
            writer.write(line)
        assert writer.close(10)
    assert (tmp_path / "out").read_bytes() == b"".join(lines)


def test_line_is_written_before_the_next_is_queued() -> None:
    reading, writing = os.pipe()
    writer = LineWriter(writing)
    writer.write(b"one\n")
    assert os.read(reading, 100) == b"one\n"
    writer.write(b"two\n")
    assert os.read(reading, 100) == b"two\n"
    assert writer.close(10)
    os.close(writing)
    os.close(reading)


def test_unread_pipe_gets_whole_lines_until_the_patience_ends() -> None:
    reading, writing = os.pipe()
    writer = LineWriter(writing)
    line = b"x" * 150 + b"\n"
    for _ in range(2000):
        writer.write(line)
    assert not writer.close(0.05)
    found = b""
    while not found.endswith(line * 2) or len(found) < 60_000:
        found += os.read(reading, 151)
    assert len(found) % len(line) == 0
    os.close(reading)
    # The thread still writes: the descriptor number must not be reused before the thread has ended.
    assert not writer.close(10)
    os.close(writing)


def test_close_waits_for_a_slow_reader() -> None:
    reading, writing = os.pipe()
    writer = LineWriter(writing)
    line = b"x" * 1000 + b"\n"
    total = 300 * len(line)
    for _ in range(300):
        writer.write(line)
    read = 0

    def drain() -> None:
        nonlocal read
        while read < total:
            read += len(os.read(reading, 20_000))

    reader = threading.Thread(target=drain)
    progress: list[bool] = []
    reader.start()
    assert writer.close(10, on_progress=lambda: progress.append(True))
    reader.join()
    os.close(writing)
    os.close(reading)
    assert read == total


def test_closed_reader_is_detected_without_a_line() -> None:
    reading, writing = os.pipe()
    failed = threading.Event()
    writer = LineWriter(writing, lambda error: failed.set())
    os.close(reading)
    assert failed.wait(10)
    writer.close(10)
    os.close(writing)
