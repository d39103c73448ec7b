"""What `docs/benchmarks.md` says about each question, beside its figures."""

from __future__ import annotations

from dataclasses import dataclass, field

FIGURES = {
    "watch_us_per_event": "CPU, µs an event",
    "watch_events_per_second": "events/s",
    "watch_us_per_notification": "CPU, µs a notification",
    "watch_user_us_per_event": "user time, µs an event",
    "watch_system_us_per_event": "system time, µs an event",
    "new_pages": "new pages of memory",
    "list_held_max_ms": "list: held max, ms",
    "burst_held_max_ms": "events: held max, ms",
    "watch_step_ms": "watch: longest step, ms",
    "stream_step_ms": "streaming list: longest step, ms",
    "list_step_ms": "list: longest step, ms",
    "sync_cpu_seconds": "first list, CPU s",
    "sync_wall_seconds": "first list, s",
    "sync_us_per_object": "first list, CPU µs an object",
    "sync_user_us_per_object": "first list, user µs an object",
    "kib_per_object": "KiB an object",
    "events_per_second": "events/s, all watches",
    "events_lost": "events lost",
    "server_cpu_share": "the server's share of its core",
    "kib_per_watch": "KiB an idle watch",
    "kib_per_busy_watch": "KiB a busy watch",
    "populate_cpu_seconds": "50,000 pods loaded, CPU s",
    "whole_list_seconds": "whole list, s",
    "latency_ms_p50": "p50, ms",
    "latency_ms_p99": "p99, ms",
    "latency_ms_max": "max, ms",
    "idle_ms_p50": "idle loop p50, ms",
    "idle_ms_p99": "idle loop p99, ms",
    "list_us_each": "all, µs an object",
    "namespace_us_each": "a namespace",
    "index_us_each": "by index",
    "label_indexed_us_each": "a label with an index",
    "label_in_namespace_us_each": "a label in a namespace",
    "field_indexed_us_each": "a field with an index",
    "label_not_indexed_us_each_held": "a label without index, µs an object held",
    "get_us": "get, µs",
    "metadata_us": "read of metadata, µs",
    "first_look_us": "first look, µs",
    "look_while_held_us": "look while held, µs",
    "relist_cpu_seconds": "again, CPU s",
    "relist_wall_seconds": "again, s",
    "relist_notifications": "notifications",
    "relist_index_writes": "index writes",
    "relist_bodies": "bodies replaced",
    "relist_kib_per_object": "KiB more an object",
}
PHASES = ("list", "relist", "burst", "late_joiner", "first_look", "add_indexers", "shutdown", "release")


_EVENT, _WEIGHT, _READY = ("watch_us_per_event", "µs"), ("kib_per_object", "KiB"), ("sync_wall_seconds", "s")


@dataclass(frozen=True, slots=True)
class Section:
    """One question.

    Attributes:
        name: of the file with its results.
        title: of the section.
        text: what people should know.
        plots: figures that are shown as bars, with their units.
        limits: by figure, where bars are cut that would leave no room for others.
    """

    name: str
    title: str
    text: str
    plots: tuple[tuple[str, str], ...] = ()
    limits: dict[str, float] = field(default_factory=dict)


SECTIONS = (
    Section(
        "watch_path",
        "The watch path",
        "The *floor* is the simplest program that follows a watch and does anything at all: aiohttp with its defaults, "
        "lines, type and metadata decoded by msgspec, bytes kept in a dict, one handler awaited. No queue, no index, "
        "no reconnection. The informer does all of that, and is told as a multiple.",
        (_EVENT,),
    ),
    Section(
        "hot_path",
        "Where the microseconds go",
        "From the chunk to the handler, each line does one thing more than the one above it.",
    ),
    Section(
        "protobuf",
        "Protobuf on the wire",
        "From the socket to records, without a cache. Frames are cut and metadata is read in Python; JSON is read by "
        "msgspec in C, but to its end, while in protobuf nothing behind the metadata is looked at, broken or not. It "
        "is not built in: every look into a body would need a decoder in Python, and one for each kind, where JSON has "
        "one in C.",
        (_EVENT,),
    ),
    Section(
        "metadata_only",
        "Metadata only",
        'With `storage="metadata"` the server sends no more than that.',
        (_EVENT,),
    ),
    Section(
        "declared_fields",
        "Declared fields",
        "Declared fields are decoded in the same pass as the metadata; a body that the handler looks into is decoded "
        "for it.",
        (_EVENT,),
    ),
    Section(
        "latency",
        "Latency",
        "From the server's socket to the handler, at 1,000 events a second with 20,000 pods cached. Server and client "
        "read the same clock. An idle loop's timers in the same process say what the machine adds.",
    ),
    Section(
        "loop_holds",
        "How long the loop is held",
        "50,000 pods; a ticker of 1 ms runs beside everything. *Held* is the CPU time that the thread itself used up "
        "while a tick was due, over an idle ticker: what others on the machine take is not counted. *First look* is "
        "the first time that a process looks into a pod, which makes the classes of its model, once. *Release* is "
        "the cache of an informer that nobody has any more being freed.",
    ),
    Section(
        "heavy_objects",
        "One heavy object",
        "Objects of 3 MiB, of shapes that a tenant may choose to block others. A *step* is the CPU time between two "
        "turns of the event loop while one of them is taken in, with the default storage.",
    ),
    Section(
        "memory",
        "Memory",
        "20,000 pods of 5.6 KiB of JSON each, by `storage=`, and what each costs to read: metadata; a first look into "
        "the body (of `metadata`, at a label), which decodes it; another while somebody holds the object.",
        (_WEIGHT,),
    ),
    Section(
        "reads",
        "Reads",
        "50,000 pods. What a list costs is told for each object that it returns, but for the label without an index, "
        "for which each object that is held is looked at. Where a body was decoded, and somebody holds the object, it "
        "is not decoded again.",
    ),
    Section("initial_list", "The first list, 20,000 pods", "", (_READY,)),
    Section("initial_list_large", "The first list, 100,000 pods", "", (_READY,)),
    Section(
        "scale",
        "Scale",
        "Handlers are told of 20,000 events each. What grows in proportion is on the dashed lines. With many pods and "
        "handlers at once, handlers are told of each pod, too, and a ticker says how long the loop is held.",
    ),
    Section(
        "slow_handler",
        "A slow handler",
        "Ten handlers are told of 20,000 events as fast as they come; an eleventh takes 10 ms for each, or is quick "
        "and keeps all it is told. What waits for a handler is the old states of objects, which nobody else has any "
        "more: memory that is new to the process, and that the kernel fills with zeros, page by page, in system time. "
        'With `storage="compressed"` these are small.',
    ),
    Section(
        "server_scale",
        "The server for tests",
        "`aioinformer.testing.ApiServer` on a core of its own, with 50,000 pods: 1,000 connections on another core "
        "watch all of them, and a pod is patched every 20 ms over HTTP. How late a change is, is the time from the "
        "moment at which its patch was due until the last of the watches has it.",
    ),
    Section(
        "relist",
        "A relist",
        "50,000 pods, with indices by namespace, by a path and by a function, are listed again, and none has changed.",
    ),
    Section(
        "beside_others",
        "Beside others",
        "client-go and the official Python client (kubernetes) run their informers, kube-rs its reflector, kopf its "
        "operator with a handler that keeps every object; for lightkube and kubernetes_asyncio, which have none of "
        "these, a simple loop was written (list, keep in a dict, watch, replace, count). One core for each. Lists of "
        "client-go and kube-rs are streamed. In protobuf the server sends two thirds of the bytes.",
        (_EVENT, _WEIGHT, _READY),
        {"watch_us_per_event": 500, "kib_per_object": 80, "sync_wall_seconds": 15},
    ),
    Section(
        "beside_others_list",
        "Beside others: 100,000 pods, from nothing to ready",
        "How soon a service that needs the cache can begin.",
        (_READY,),
    ),
)

#: What is told together in the summary: questions, and how what they say of it begins.
TOPICS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("The watch path", (("watch_path", ""), ("metadata_only", ""), ("beside_others", "an event"))),
    ("Latency", (("latency", ""),)),
    ("The loop", (("loop_holds", ""), ("heavy_objects", ""))),
    ("Memory", (("memory", ""), ("beside_others", "memory"))),
    ("Reads", (("reads", ""), ("declared_fields", ""))),
    ("Scale", (("scale", ""), ("slow_handler", ""), ("relist", ""), ("server_scale", ""))),
    (
        "The first list",
        (("initial_list", ""), ("initial_list_large", ""), ("beside_others", "first"), ("beside_others_list", "")),
    ),
)

INTRODUCTION = """\
# Benchmarks

*Everything on this page is written by a program from the figures in `benchmarks/results/`; `make bench` measures them
anew, in a quarter of an hour, `make bench-peers` those of others, in less than an hour.*

One question is one file in `benchmarks/`. A load server of its own process and core writes bytes that were prepared
once; whoever is measured runs in a process of its own on another core; they take turns, and medians are told. Ratios
are medians of the ratios within a round, since machines change their speed. CPU time is user and system time together.
Memory that is new to a process is system time: on the virtual machine on which this was measured, whose host takes back
what nobody uses, a page of 4 KiB took 3 to 14 µs, depending on what had run the second before. That is 0.5 to 2 seconds
for 100,000 pods, whoever lists them. Where it decides, user time is told as well.
Pods have 5.6 KiB of JSON, managed fields included.

Your own case, against your own server: [`aioinformer bench`](command-line.md).
"""

TRIED = """\
### What was tried and did not help

| tried | result |
|---|---|
| a read size of 2 MiB instead of the transport's 128 KiB | within the noise; sixteen times as much may wait |
| a decoder for the whole watch line (`{"type", "object": Raw}`) | half as much again as a cut by place |
| decoding a whole page of a list at once | saves 1 µs an object, but holds the loop for a page, and the body twice |
| the ends of a list's items by a regular expression, or by a shorter separator | 2.6 and 1.9 µs an object, not 1.5 |
| a chunk of a list split at all separators at once | as much as one by one, and what was cut off must be put back |
| of a list's items the metadata alone | cuts objects in two: an item ends where reading all of it ends, nowhere else |
| slices of 1 ms instead of 0.5 ms | no cheaper as far as could be seen, and longer turns of the loop |
| two bytes of JSON looked for at once (`find(b"}]")`) | thirty times slower than one, where one of them is frequent |
| huge pages for what waits for a slow handler | fewer faults, and more time: whole pages are filled with zeros |
| reads of 128 KiB instead of 256 KiB | shorter turns of the loop, but an event of a watch costs more |
| half as much that may wait for the reader | a page costs less: reads are not joined; an event costs more |
| dicts that keep the hashes of strings, to grow without a look at them | no shorter: the time goes into new memory |
| the cache itself in many small dicts | grows without holding the loop; a walk through it takes three times as long |
| memory touched before it is needed | shorter turns; but the host takes it back in a second, and they are longer |
| a `set` of keys for each value of an index | the garbage collector walks sets, but no dicts from strings to None |

### What holds the loop no longer

| what | held before | how |
|---|---|---|
| who joins late, with 50,000 pods | 38 ms | no copy of the cache in tuples |
| an index function added, with 50,000 pods | 965 ms | `add_indexers_in_slices` |
| what a list of 50,000 pods brings, by key | 9 ms | many small dicts instead of one that grows in one step |
| a cache of 50,000 pods freed | 18 ms | freed in slices, beside the loop |
"""
