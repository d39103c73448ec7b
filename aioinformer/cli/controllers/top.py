"""`aioinformer top`: the first screen of a debug page in a terminal, or as lines."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from aioinformer.cli.demo.view import duration
from aioinformer.cli.program import Program
from aioinformer.concurrency import create_task
from aioinformer.errors import TransportError, UsageError
from aioinformer.logs import visible
from aioinformer.transport.auth.token_file import TokenFile
from aioinformer.transport.proxies import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LISTS: Final = ("failing", "parked", "waiting", "running", "oldest", "hottest", "slowest", "settling")
SORTS: Final = ("page", "key", "attempts", "runs", "longest")
_RETRY: Final = 2.0
#: A report is one line; the longest one has twice as many bytes.
_LINE: Final = 1 << 24
#: What a terminal sends.
_KEYS: Final = {b"\x1b[A": "up", b"k": "up", b"\x1b[B": "down", b"j": "down", b"\r": "enter", b"\n": "enter"} | {
    b"\x1b": "escape", b"\t": "list", b"s": "sort", b"q": "quit", b"\x03": "quit"
}  # fmt: skip


class Screen(msgspec.Struct):
    """What the terminal shows, and what was chosen with keys. `address` is that of the page."""

    address: str = ""
    report: dict[str, Any] = {}
    lost: str = ""
    shown: str = ""
    sort: str = "page"
    selected: int = 0
    followed: tuple[str, str] | None = None
    detail: dict[str, Any] = {}

    def rows(self) -> list[dict[str, Any]]:
        """Return the keys of the chosen list, sorted."""
        known = self.report.get("keys", {})
        self.shown = self.shown or next((name for name in LISTS if known.get(name)), LISTS[0])
        rows = list(known.get(self.shown, ()))
        orders: dict[str, Callable[[dict[str, Any]], Any]] = {
            "key": lambda row: (row["key"], row["controller"]),
            "attempts": lambda row: -row["attempts"],
            "runs": lambda row: -row.get("runs", {}).get("count", 0),
            "longest": lambda row: -row.get("runs", {}).get("longest", 0.0),
        }
        rows.sort(key=orders.get(self.sort, lambda row: 0))
        self.selected = max(0, min(self.selected, len(rows) - 1))
        return rows

    def press(self, key: str) -> None:
        """Act on a key of the terminal."""
        rows = self.rows()
        if key in ("up", "down"):
            self.selected = max(0, min(self.selected + (1 if key == "down" else -1), len(rows) - 1))
        elif key == "list":
            self.shown = LISTS[(LISTS.index(self.shown) + 1) % len(LISTS)]
            self.selected = 0
        elif key == "sort":
            self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
        elif key == "enter" and rows:
            row = rows[self.selected]
            self.followed = (row["controller"], row["key"])
            self.detail = {}
        elif key == "escape":
            self.followed = None
            self.detail = {}

    def lines(self) -> Iterator[str]:
        """Yield the screen as lines without a terminal: what is wrong, then the controllers."""
        report = self.report
        if self.lost:
            yield self.lost
            return
        state = "runs"
        if not report["running"]:
            state = "does not run"
        elif report["standby"]:
            state = "is a standby"
        yield f"{report['manager']} {state}, {_wrong(report)}"
        if report["standby"]:
            yield report["standby"]
        for each in report["problems"]:
            see = f"{report['docs'] or f'{self.address}troubleshooting'}#{each['see']}"
            yield f"{each['severity']}: {each['text']} {each['remedy']} See {see}"
        for name, each in report["controllers"].items():
            yield f"controller {name}: {_counts(each)}"

    def render(self, height: int) -> Group:
        """Return the screen for a terminal of `height` lines."""
        report = self.report
        parts: list[Any] = [Text(f"manager {report.get('manager', '')}  {self.lost or _wrong(report)}", style="bold")]
        if self.lost:
            parts[0].stylize("red")
        if standby := report.get("standby"):
            parts.append(_line("standby: ", "cyan", standby))
        problems = report.get("problems", ())
        most = max(2, height // 6)
        for each in problems[:most]:
            style = "red" if each["severity"] == "error" else "yellow"
            parts.append(_line(f"{each['severity']}: ", style, each["text"]))
            parts.append(_line("  ", style, each["remedy"]))
        if len(problems) > most:
            parts.append(_line(f"and {_count(len(problems) - most, 'more problem')}", "dim"))
        for name, each in report.get("controllers", {}).items():
            parts.append(_line(f"{name}  ", "cyan", _counts(each)))
        if self.followed is not None:
            parts += [Text(), *self._detail()]
        else:
            parts += [Text(), self._table(height - len(parts) - 5)]
        help = "q quit  Tab list  s sort  Up/Down select  Enter follow  Esc back"
        return Group(*parts, Text(help, style="dim", no_wrap=True))

    def _table(self, height: int) -> Table:
        rows = self.rows()
        table = Table(box=None, expand=True, pad_edge=False, header_style="bold cyan", title_justify="left")
        total = self.report.get("key_counts", {}).get(self.shown, 0)
        size = f"{len(rows):,} of {total:,}" if total > len(rows) else f"{len(rows):,}"
        table.title = f"{self.shown} ({size}), in the order of {self.sort}"
        for name in ("KEY", "CONTROLLER", "STATE"):
            table.add_column(name, no_wrap=True)
        for name in ("ATTEMPTS", "RUNS", "LONGEST"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("WHY", ratio=1, no_wrap=True)
        first = max(0, self.selected - max(1, height) + 1)
        for at, row in enumerate(rows[first : first + max(1, height)], first):
            runs = row.get("runs")
            cells = [row["key"], row["controller"], row["state"], str(row["attempts"])]
            cells += [str(runs["count"]), duration(runs["longest"])] if runs else ["", ""]
            cells.append(row["error"] or row.get("awaits") or row["own_writes"] or ", ".join(row["causes"]))
            table.add_row(*(Text(visible(each)) for each in cells), style="reverse" if at == self.selected else "")
        return table

    def _detail(self) -> Iterator[Text]:
        assert self.followed is not None
        controller, key = self.followed
        yield Text(visible(f"{key} of {controller}"), style="bold")
        found = self.detail
        if reason := found.get("problem"):
            yield Text(visible(reason), style="red")
        for name in ("state", "attempts", "error", "awaits", "own_writes"):
            if found.get(name):
                yield _line(f"{name.replace('_', ' ')}: ", "cyan", str(found[name]))
        for frame in found.get("stack", ()):
            yield Text(visible(f"  {frame}"), style="dim")
        for change in found.get("changes", ()):
            age = duration(self.report["time"] - change["time"])
            what = " ".join(filter(None, (change.get("child"), change["what"])))
            yield _line(f"{what} {age} ago ", "cyan", f"by {', '.join(change['managers']) or 'unknown'}")
            for line in change["lines"]:
                yield Text(visible(f"  {line}"), style={"+": "green", "-": "red"}.get(line[:1], ""))


class TopProgram(Program):
    """Follows a debug page until the end. Make it while the event loop runs.

    Args:
        interval: seconds between two reports.
        seconds: the run time; None for no end.
        live: whether there is a terminal.
        token_file: with a bearer token for the page, which is read again when it changes; None for none.

    Raises:
        UsageError: the URL is not one of HTTP, or would get the token in clear text.
    """

    def __init__(
        self,
        url: str,
        interval: float,
        seconds: float | None,
        write: Callable[[bytes], None],
        *,
        live: bool,
        token_file: str | None = None,
    ) -> None:
        super().__init__()
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"--attach must be an URL such as http://127.0.0.1:8081/, not {url!r}")
        if token_file is not None and urlsplit(url).scheme != "https" and not is_loopback(urlsplit(url).hostname):
            raise UsageError(f"--token-file: {url} would get the token in clear text; use an https address")
        self._token = None if token_file is None else TokenFile(token_file)
        if self._token is not None:
            self._token.check()
        self._base = url if url.endswith("/") else f"{url}/"
        self._interval = interval
        self._seconds = seconds
        self._write = write
        self._live = live
        self._screen = Screen(address=self._base)
        self._view: Live | None = None
        self._session: aiohttp.ClientSession | None = None
        self._loading: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Run until `q`, a signal, or the end of the time."""
        work = create_task(self._work(), name="top")
        return await self.stop(work, await self.wait_for_end(work, self._seconds, 0))

    async def _work(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=3 * self._interval + 10)
        async with aiohttp.ClientSession(timeout=timeout, read_bufsize=_LINE) as self._session:
            if not self._live:
                await self._follow()
                return
            with Live(console=Console(), screen=True, auto_refresh=False) as self._view, _keyboard(self._press):
                await self._follow()

    async def _follow(self) -> None:
        while True:
            try:
                async with await self._get("api/events", interval=str(self._interval)) as answer:
                    if answer.status in (401, 403):
                        if self._token:
                            remedy = "the token is not accepted"
                        else:
                            remedy = "pass --token-file if it takes a token"
                        raise UsageError(f"{self._base} refuses: {answer.status} {await _reason(answer)}; {remedy}")
                    if answer.status != 200 or answer.content_type != "text/event-stream":
                        raise UsageError(f"{self._base} is no debug page: {answer.status} {await _reason(answer)}")
                    async for line in answer.content:
                        if line.startswith(b"data: "):
                            self._screen.report = msgspec.json.decode(line[6:])
                            self._screen.lost = ""
                            self._show()
                            self._load()
                lost = "the manager has closed the page"
            except (aiohttp.ClientError, TransportError, TimeoutError) as error:
                lost = str(error) or type(error).__name__
                if not self._screen.report:
                    raise UsageError(
                        f"{self._base} does not answer: {lost}; is it the port of --debug-port?"
                    ) from error
            self._screen.lost = f"connection lost: {lost}"
            self._show()
            await asyncio.sleep(_RETRY)

    async def _get(self, path: str, **parameters: str) -> aiohttp.ClientResponse:
        assert self._session is not None
        if self._token is None:
            headers = {}
        else:
            headers = {"Authorization": (await self._token.current()).authorization}
        # The token is for this address alone.
        options: Any = {"headers": headers, "params": parameters, "allow_redirects": self._token is None}
        return await self._session.get(f"{self._base}{path}", **options)

    def _show(self) -> None:
        if self._view is not None:
            self._view.update(self._screen.render(self._view.console.height), refresh=True)
        else:
            self._write("".join(f"{visible(line)}\n" for line in self._screen.lines()).encode())

    def _press(self, key: str) -> None:
        if key == "quit":
            self.end(0)
            return
        self._screen.press(key)
        self._show()
        self._load()

    def _load(self) -> None:
        if self._screen.followed is not None and (self._loading is None or self._loading.done()):
            self._loading = create_task(self._load_key(*self._screen.followed), name="top: key")

    async def _load_key(self, controller: str, key: str) -> None:
        try:
            async with await self._get("api/key", controller=controller, key=key) as answer:
                if answer.status == 200:
                    found = await answer.json()
                else:
                    found = {"problem": await _reason(answer)}
        except (aiohttp.ClientError, TransportError, TimeoutError) as error:
            found = {"problem": str(error)}
        if self._screen.followed == (controller, key):
            self._screen.detail = found
            self._show()


@contextmanager
def _keyboard(on_key: Callable[[str], None]) -> Iterator[None]:
    """Call a function with the names of keys that are pressed while the block runs; the terminal is restored.

    On Windows, it is not called: Ctrl-C ends the program.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield
        return
    if not sys.stdin.isatty():
        yield
        return

    number = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    before = termios.tcgetattr(number)

    def read() -> None:
        pressed = os.read(number, 64)
        if not pressed:
            loop.remove_reader(number)
        elif (key := _KEYS.get(pressed)) is not None:
            on_key(key)

    tty.setcbreak(number)
    loop.add_reader(number, read)
    try:
        yield
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)


async def _reason(answer: aiohttp.ClientResponse) -> str:
    try:
        return str((await answer.json())["error"])
    except (aiohttp.ClientError, ValueError, KeyError, TypeError):
        return answer.reason or ""


def _wrong(report: dict[str, Any]) -> str:
    count = len(report.get("problems", ()))
    return _count(count, "problem") if count else "nothing is known to be wrong"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _counts(found: dict[str, Any]) -> str:
    counts = (f"{found[name]:,} {name}" for name in ("ready", "delayed"))
    kinds = (f"{found[f'{name}_keys']:,} {name}" for name in ("failing", "parked", "waiting"))
    results = " ".join(f"{name}={count}" for name, count in found["results"].items())
    running = f"{len(found['running'])}/{found['workers']} running"
    return f"{found['phase']}, {', '.join([running, *counts, *kinds])}; {results or 'no results yet'}"


def _line(name: str, style: str, *texts: str) -> Text:
    return Text.assemble((visible(name), style), *map(visible, texts), no_wrap=True, overflow="ellipsis")
