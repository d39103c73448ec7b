"""The texts of `docs/benchmarks.md`."""

from __future__ import annotations

from dataclasses import dataclass, field

PHASES = ("list", "relist", "burst", "late_joiner", "first_look", "add_indexers", "shutdown", "release")


_EVENT, _WEIGHT, _READY = ("watch_us_per_event", "µs"), ("kib_per_object", "KiB"), ("sync_wall_seconds", "s")


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the page.

    Attributes:
        name: of the file with the results.
        title: of the section.
        text: explains the measurement.
        plots: figures to show as bars, with their units.
        limits: the values, by figure, at which longer bars are cut.
    """

    name: str
    title: str
    text: str
    plots: tuple[tuple[str, str], ...] = ()
    limits: dict[str, float] = field(default_factory=dict)


SECTIONS = (
    Section(
        "real_server",
        "A real API server",
        "kube-apiserver and etcd run on the same machine, with 20,000 pods. Each client lists them and watches over "
        "TLS: aioinformer in JSON by HTTP/1.1, client-go in the given format by HTTP/2. *Catching up*: the client is "
        "stopped, 8,000 pods change, and the client goes on. At the steady rate, changes come one by one. No process "
        "is pinned to a core, so the seconds of the first list contain what the server needs to encode it. A streaming "
        "list costs it more than pages (`RunOptions(streaming_list=False)`): each object is an event of its own.",
        (("steady_us_per_event", "µs"), ("catch_up_us_per_event", "µs")),
        {"steady_us_per_event": 300, "catch_up_us_per_event": 300},
    ),
    Section(
        "lone_events",
        "Lone events",
        "Over TLS, from a server that sends each event by a write of its own, evenly. Each event is one chunk and one "
        "TLS record, and each wake-up of the floor and of client-go finds one event, unless the client is late. A "
        "wake-up costs more than the rest, so from about 600 events a second, informers read two, three or more of "
        "them at once. Latency is the time from the server's write to the call of the handler. client-go has the same "
        "kind of connection, with HTTP/1.1.",
        (("cpu_us_1000", "µs"), ("cpu_us_4000", "µs")),
        {"cpu_us_1000": 400, "cpu_us_4000": 400},
    ),
    Section(
        "controllers",
        "Controllers",
        "An empty reconciler for 10,000 pods, on the server of the lone events. Each event changes an annotation. Each "
        "framework runs with its default predicates: aioinformer compares the contents of the old and the new object, "
        "controller-runtime and kopf compare nothing. Each has four workers, except kopf, which has one for each "
        "object. The handler of kopf is one for events, which stores no state in the objects. *As fast as it goes*: "
        "one event for each pod, and the next ones when the reconciler has run for all. Latency is the time from the "
        "server's write to the reconciler. kopf takes longer than 1 ms for an event, so its events queue up. Memory is "
        "that of the whole process.",
        (("cpu_us_flood", "µs"), ("cpu_us_1000", "µs")),
        {"cpu_us_flood": 400, "cpu_us_1000": 500},
    ),
    Section(
        "controllers_real",
        "Widget controllers on a real API server",
        "10,000 custom resources, each with a finalizer, a status, and as many ConfigMaps as its `spec.size`: in the "
        "beginning, one. kube-apiserver, etcd and the controller share the cores, so all times contain the work of the "
        "server. *Lines* are those of the controller without comments, docstrings and generated "
        "code. *Empty* and *one write* are other reconcilers for the same Widgets; the second one patches the status "
        "of each fifth Widget. *Restart*: while no controller ran, each twentieth Widget was changed; the time ends "
        "when all have been reconciled and all are converged. *New Widgets* have two ConfigMaps. *Outage*: the API "
        "server is restarted; the time is that from its readiness until a change is converged, and the runs are those "
        "that follow, for one change. The API server has logged the requests. controller-runtime reads its own "
        "writes only if it is configured to, which is experimental; each read then waits for all writes of that kind. "
        "kopf sends its own patches after a handler, and stores its state in the objects.",
        (("restart_seconds", "s"), ("rss_mib", "MiB")),
        {"restart_seconds": 20},
    ),
    Section(
        "observed",
        "Observation",
        "One controller has metrics, the debug page and `max_staleness`, and nobody reads them. The other one has none "
        "of it. Each round measures two pairs, in opposite orders. Where the pairs differ, the speed of the machine "
        "has changed.",
    ),
    Section(
        "page_open",
        "The open page",
        "200 informers with controllers and 20,000 keys, with and without one reader who follows the page and one key. "
        "The reader is another process.",
    ),
    Section(
        "tls_lists",
        "The first list over TLS",
        "In a streaming list, the server sends each pod by a write of its own.",
        (("sync_cpu_seconds", "s"),),
    ),
    Section(
        "idle",
        "Idle informers",
        "300 informers on a quiet cluster, each with a connection and a handler. Bookmarks and reopened watches are "
        "measured apart. The last column assumes a bookmark a minute for each watch, and a watch that the server ends "
        "after 5 to 10 minutes. The floor opens the same watches with aiohttp and does nothing else.",
    ),
    Section(
        "open_together",
        "Watches that open together",
        "300 informers open their TLS connections together, and again whenever the server breaks all of them. asyncio "
        "needs 256 KiB for each handshake. The memory is that which the process has from the system, so it contains "
        "what the allocator keeps. The earlier commit does not limit the handshakes at once.",
        (("reopened_mib", "MiB"),),
    ),
    Section(
        "watch_path",
        "The watch path",
        "The *floor* is the simplest useful program that follows a watch: default aiohttp, lines, type and metadata "
        "decoded by msgspec, bytes in a dict, one handler that is awaited. It has no queue, no index and no "
        "reconnection. The informer has all of these; ratios compare its cost with that of the floor. "
        "`benchmarks/pair.py` compares two commits.",
        (_EVENT,),
    ),
    Section(
        "watch_path_tls",
        "The watch path over TLS",
        "The same over TLS. The server sends each event by a write of its own, as fast as the client reads.",
        (_EVENT,),
    ),
    Section(
        "hot_path",
        "Parts of the watch path",
        "Each row adds one part to the row above, from the chunk to the handler.",
    ),
    Section(
        "protobuf",
        "Protobuf",
        "From the socket to records, without a cache. Python splits frames and reads metadata. In JSON, msgspec reads "
        "each object to its end, in C. In protobuf, nothing after the metadata is read, so damage there goes "
        "unnoticed. aioinformer does not support protobuf: each read of a body would need a decoder in Python, for "
        "each kind, while JSON has one in C.",
        (_EVENT,),
    ),
    Section(
        "metadata_only",
        "Metadata only",
        'With `storage="metadata"`, the server sends metadata only.',
        (_EVENT,),
    ),
    Section(
        "declared_fields",
        "Declared fields",
        "Declared fields are decoded together with the metadata. If a handler reads the body, the body is decoded in "
        "addition.",
        (_EVENT,),
    ),
    Section(
        "latency",
        "Latency",
        "From the server's socket to the handler, at 1,000 events per second with 20,000 cached pods. Server and "
        "client read the same clock. The timers of an idle loop in the same process show what the machine adds.",
    ),
    Section(
        "loop_blocking",
        "Blocking of the event loop",
        "50,000 pods. A ticker of 1 ms runs at the same time. *Blocked* is the CPU time that the thread consumed while "
        "a tick was due, minus that of an idle ticker, so other load on the machine does not count. *First look* is "
        "the first read of a pod's body in a process, which creates the classes of the model. *Release* is the time "
        "after the last reference to an informer is gone, while its cache is freed.",
    ),
    Section(
        "heavy_objects",
        "One heavy object",
        "Objects of 1.5 MiB, the limit of etcd, in shapes that a tenant could choose to block other users. A *step* is "
        "the CPU time between two turns of the event loop while the object is read, with the default storage tier.",
    ),
    Section(
        "memory",
        "Memory",
        "20,000 pods with 5.6 KiB of JSON each, by `storage=`, and the cost of reads: of metadata; of the body (of a "
        "label, for `metadata`) for the first time, which decodes it; and of the body while a view of the object is "
        "retained.",
        (_WEIGHT,),
    ),
    Section(
        "reads",
        "Reads",
        "50,000 pods. The cost of a list is that of each returned object. For a label without an index, it is that of "
        "each cached object, because every object is checked. A decoded body is not decoded again while a view of the "
        "object is retained.",
    ),
    Section(
        "writing",
        "Single requests",
        "A get, a create and a status patch of a pod of 5.6 KiB over HTTPS, on a connection that is kept. All subjects "
        "send the same JSON, read the whole answer, and look at one field of it; aiohttp decodes it with the standard "
        "library. Each figure is that of the fastest of 50 series of 25 calls.",
        (("get_us", "µs"), ("create_us", "µs"), ("patch_status_us", "µs")),
    ),
    Section(
        "json_lists",
        "JSON of 2,001 pods",
        "`to_json` of a lister's result, beside joining the same bytes in the same process, alternately. The server "
        "left out the type of `listed` pods, which the first array adds; `watched` pods came with it. `decode and "
        "encode` is what a web framework does with each object.",
        (("json_ms", "ms"),),
    ),
    Section(
        "imports",
        "Imports and `connect()`",
        "Fresh interpreters with compiled bytecode: user and system time from start to exit, and the peak of "
        "resident memory. A factory needs asyncio and msgspec, `connect()` needs aiohttp, msgspec and yaml; programs "
        "that import only these run alternately. `connect()` reads a kubeconfig with an authority and a token; it "
        "sends no request.",
        (("cpu_ms", "ms"),),
    ),
    Section("initial_list", "The first list, 20,000 pods", "", (_READY,)),
    Section("initial_list_large", "The first list, 100,000 pods", "", (_READY,)),
    Section(
        "scale",
        "Scale",
        "Each handler receives 20,000 events. The dashed lines show proportional growth. With many pods and handlers "
        "together, the handlers also receive each pod, and a ticker measures how long the event loop is blocked.",
    ),
    Section(
        "million",
        "A million pods",
        'Pods of 2 KB from a server that makes them while it sends them, in pages, with `storage="compressed"` and one '
        "handler. Then 5,000 changes at 1,000 a second, and a relist of all. Blocked times and pauses are CPU time of "
        "the event loop's thread, and grow with the time that the same work takes on the machine, at the end of this "
        "section. The dashed lines show proportional growth.",
    ),
    Section(
        "many_controllers",
        "Many controllers",
        "One process with 20,000 custom objects of 1 KB, in as many kinds as there are controllers, each with an "
        "informer and an empty reconciler. Then 10,000 changes at 500 a second. The latency contains the time in which "
        "server and client wait for each other's core.",
    ),
    Section(
        "endurance",
        "An hour of changes",
        "A real API server, over TLS, that compacts etcd each 30 seconds and restarts each 5 minutes, while 5,000 "
        "ConfigMaps of 1 KB change in turn, in etcd. Latency is the time from before the write to etcd until the call "
        "of the handler: the medians of windows of 10 seconds without a restart, in the first and in the last third. "
        "*Lost* are objects whose last change was not in the cache, or not shown to the handler, at the end.",
    ),
    Section(
        "slow_handler",
        "A slow handler",
        "Ten handlers receive 20,000 events as fast as they arrive. An eleventh handler takes 10 ms for each, or is "
        "fast and retains everything. Undelivered notifications retain old states of objects that are cached no "
        "longer. This is memory that is new to the process, and the kernel fills it with zeros, page by page, in "
        'system time. With `storage="compressed"`, the old states are small.',
    ),
    Section(
        "streams",
        "Streams to clients",
        "A service of aiohttp caches 10,000 pods, of which 200 change each second, and streams a view of three fields "
        "to 1,000 connections of one process. *A queue for each client* is a hub by hand: a handler encodes each "
        "change once, and puts it into the queue of each client. The latency is the time from the event of the API "
        "server to the byte at the client. A client is slow that reads 10 KB a second, and its age is how old the "
        "newest change is that it has after 15 seconds. The API server and all clients share one core.",
        (("cpu_us_per_delivery", "µs"), ("latency_ms_p99", "ms")),
    ),
    Section(
        "server_scale",
        "The server for tests",
        "`aioinformer.testing.ApiServer` on a core of its own, with 50,000 pods. On another core, 1,000 connections "
        "watch all pods, and one patches a pod every 20 ms over HTTP. The delay of a change is the time from the "
        "moment its patch was due until the last of the watches has received it.",
    ),
    Section(
        "relist",
        "A relist",
        "A relist of 50,000 unchanged pods, with indices by namespace, by a path and by a function.",
    ),
    Section(
        "beside_others",
        "Comparison with other clients",
        "client-go and the official Python client (kubernetes) run their informers, kube-rs its reflector, and kopf "
        "its operator with a handler that keeps every object. lightkube and kubernetes_asyncio have none of these; "
        "they run a simple loop (list, keep in a dict, watch, replace, count). Each client has one core. client-go and "
        "kube-rs use streaming lists. In protobuf, the server sends two thirds of the bytes.",
        (_EVENT, _WEIGHT, _READY),
        {"watch_us_per_event": 500, "kib_per_object": 80, "sync_wall_seconds": 15},
    ),
    Section(
        "beside_others_list",
        "Comparison with other clients: listing 100,000 pods",
        "How long a service waits until its cache has synced.",
        (_READY,),
    ),
)

#: The groups of the summary: names of questions, and the beginning of the titles to include.
TOPICS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("A real API server", (("real_server", ""),)),
    ("TLS, event by event", (("lone_events", ""), ("tls_lists", ""))),
    ("Controllers", (("controllers", ""), ("observed", ""), ("page_open", ""))),
    ("Idle informers", (("idle", ""), ("open_together", ""))),
    ("The watch path", (("watch_path", ""), ("watch_path_tls", ""), ("metadata_only", ""), ("beside_others", "CPU"))),
    ("Latency", (("latency", ""),)),
    ("The event loop", (("loop_blocking", ""), ("heavy_objects", ""))),
    ("Memory", (("memory", ""), ("beside_others", "memory"))),
    ("Reads", (("reads", ""), ("declared_fields", ""), ("json_lists", ""))),
    ("The start of a program", (("imports", ""),)),
    ("Single requests", (("writing", ""),)),
    (
        "Scale",
        (
            ("scale", ""),
            ("million", ""),
            ("many_controllers", ""),
            ("endurance", ""),
            ("slow_handler", ""),
            ("relist", ""),
            ("server_scale", ""),
        ),
    ),
    (
        "The first list",
        (("initial_list", ""), ("initial_list_large", ""), ("beside_others", "first"), ("beside_others_list", "")),
    ),
)

INTRODUCTION = """\
# Benchmarks

*A program generates this page from the figures in `benchmarks/results/`. `make bench` measures aioinformer again, in
less than half an hour, `make bench-peers` other clients, in an hour, `make bench-real` both on a real API server, in a
quarter of an hour, and `make bench-controllers` controllers, in a quarter of an hour.*

Each question is a file in `benchmarks/`. A load server writes prepared bytes, from a process and core of its own. Each
client runs in its own process on another core. Clients run alternately; the tables show medians. Ratios are medians of
the ratios within a round, because machines change their speed. CPU time is user and system time together. Pods have
5.6 KiB of JSON, including managed fields.

Memory that is new to a process costs system time. On the virtual machine used here, whose host reclaims unused memory,
a page of 4 KiB took 3 to 14 µs, depending on what had run before. That is 0.5 to 2 seconds for 100,000 pods, with any
client. Where this matters, the tables show user time as well.

To measure your own case on your own server, use [`aioinformer bench`](command-line.md).
"""

TRIED = """\
### Experiments without success

| experiment | result |
|---|---|
| a read size of 2 MiB instead of the 1 MiB of a stream | no measurable difference |
| a decoder for the whole watch line (`{"type", "object": Raw}`) | half as much again as cutting by position |
| one decoding call for all lines of a read of a watch (`decode_lines` of msgspec) | 6.7 to 7.2 µs per event, as one by one (6.7): the time is spent on skipping the bodies |
| reads of 64 or 128 KiB, so that the lines of a flood stay in the processor's cache | 1.47 and 1.39 of the floor's CPU in a flood, instead of 1.22 |
| decoding a whole page of a list at once | saves 1 µs per object, but blocks the event loop for a page, and needs the memory of the body twice |
| finding the ends of items by a regular expression, or by a shorter separator | 2.6 and 1.9 µs per object instead of 1.5 |
| splitting a chunk of a list at all separators at once | costs as much as one by one, and wrong splits must be joined again |
| decoding only the metadata of items | splits objects: only reading all of an item finds its end |
| slices of 1 ms instead of 0.5 ms | no measurable saving, and longer turns of the event loop |
| searching for two bytes of JSON at once (`find(b"}]")`) | thirty times slower than for one byte, if one of them is frequent |
| huge pages for the buffer of a slow handler | fewer page faults, but more time, because whole pages are filled with zeros |
| reads of 128 KiB instead of 256 KiB | shorter turns of the event loop, but each event of a watch costs more |
| half the buffer between socket and reader | a page of a list costs less, because reads are not joined, but each event costs more |
| dicts that grow without hashing strings again | no saving: the time is spent on new memory |
| storing the cache in many small dicts | the cache grows without blocking the event loop, but an iteration takes three times as long |
| touching memory before it is needed | shorter turns at first, but the host reclaims the memory within a second |
| a `set` of keys for each value of an index | the garbage collector traverses sets, but not dicts from strings to None |

### Blocking that was removed

| cause | blocked before | solution |
|---|---|---|
| adding a handler, with 50,000 pods | 38 ms | no copy of the cache in tuples |
| adding an index function, with 50,000 pods | 965 ms | `add_indexers_in_slices` |
| collecting a list of 50,000 pods by key | 9 ms | many small dicts instead of one that grows in one step |
| freeing a cache of 50,000 pods | 18 ms | freed in slices |
| a step of each of 100 handlers with a backlog in each turn | 25 ms | eight handlers go on in each turn, one after the other |
| the step that replaces a cache by a list of 200,000 objects | 16 ms (7 ms are left) | notifications are counted while they are made, and waits are looked up, instead of loops over all objects |
| a list in order after which all of 200,000 objects have changed | 1.2 s (35 ms are left) | only objects that move in an index go through the indices in that step |

What is left for large caches is the growth of one dict, which cannot be interrupted: 10 to 25 ms when it gets its
174,763rd entry, and 50 to 75 ms at the 699,051st.
"""  # noqa: E501
