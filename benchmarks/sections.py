"""The order of the sections of `docs/benchmarks.md`. Their texts are in `benchmarks/prose/`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

_PROSE = Path(__file__).parent / "prose"

PHASES = ("list", "relist", "burst", "late_joiner", "first_look", "add_indexers", "shutdown", "release")


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the page.

    Attributes:
        name: of the file with the results, and of the file with the title and the text.
        plots: figures to show as bars, with their units.
        limits: the values, by figure, at which longer bars are cut.
    """

    name: str
    plots: tuple[tuple[str, str], ...] = ()
    limits: dict[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title of the section."""
        heading, _, _ = prose(self.name).partition("\n")
        return heading.removeprefix("## ")

    @property
    def text(self) -> str:
        """What explains the measurement."""
        _, _, text = prose(self.name).partition("\n")
        return text.strip()


def prose(name: str) -> str:
    """Return a part of the page that is written by hand.

    Raises:
        FileNotFoundError: the part has no file.
    """
    return (_PROSE / f"{name}.md").read_text()


SECTIONS = (
    Section(
        "real_server",
        (("steady_us_per_event", "µs"), ("catch_up_us_per_event", "µs")),
        {"steady_us_per_event": 300, "catch_up_us_per_event": 300},
    ),
    Section("lone_events", (("cpu_us_1000", "µs"), ("cpu_us_4000", "µs")), {"cpu_us_1000": 400, "cpu_us_4000": 400}),
    Section("controllers", (("cpu_us_flood", "µs"), ("cpu_us_1000", "µs")), {"cpu_us_flood": 400, "cpu_us_1000": 500}),
    Section("unchanged_runs", (("unchanged_us", "µs"),)),
    Section("controllers_real", (("restart_seconds", "s"), ("rss_mib", "MiB")), {"restart_seconds": 20}),
    Section("observed"),
    Section("page_open"),
    Section("idle"),
    Section("open_together", (("reopened_mib", "MiB"),)),
    Section("protobuf", (("watch_us_per_event", "µs"),)),
    Section("declared_fields", (("watch_us_per_event", "µs"),)),
    Section("loop_blocking"),
    Section("heavy_objects"),
    Section("memory", (("kib_per_object", "KiB"),)),
    Section("writing", (("get_us", "µs"), ("create_us", "µs"), ("patch_status_us", "µs"))),
    Section("json_lists", (("json_ms", "ms"),)),
    Section("imports", (("cpu_ms", "ms"),)),
    Section("scale"),
    Section("million"),
    Section("many_controllers"),
    Section("streams", (("cpu_us_per_delivery", "µs"),)),
    Section("server_scale"),
    Section(
        "beside_others",
        (("watch_us_per_event", "µs"), ("kib_per_object", "KiB"), ("sync_wall_seconds", "s")),
        {"watch_us_per_event": 500, "kib_per_object": 80, "sync_wall_seconds": 15},
    ),
)

#: The groups of the summary: names of questions, and the beginning of the titles to include.
TOPICS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("A real API server", (("real_server", ""),)),
    ("TLS, event by event", (("lone_events", ""),)),
    ("Controllers", (("controllers", ""), ("unchanged_runs", ""), ("observed", ""), ("page_open", ""))),
    ("Idle informers", (("idle", ""), ("open_together", ""))),
    ("Events as fast as they come", (("beside_others", "CPU"),)),
    ("The event loop", (("loop_blocking", ""), ("heavy_objects", ""))),
    ("Memory", (("memory", ""), ("beside_others", "memory"))),
    ("Reads", (("declared_fields", ""), ("json_lists", ""))),
    ("The start of a program", (("imports", ""),)),
    ("Single requests", (("writing", ""),)),
    (
        "Scale",
        (
            ("scale", ""),
            ("million", ""),
            ("many_controllers", ""),
            ("server_scale", ""),
            ("streams", ""),
        ),
    ),
    ("The first list", (("beside_others", "first"),)),
)
