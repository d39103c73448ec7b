"""A headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import shutil
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

#: The program, of Debian's package chromium; None without one.
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Tab:
    """A page in a browser.

    Attributes:
        complaints: what the browser reported: exceptions of scripts, refused resources, lines of the console.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self._socket = socket
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}

    async def listen(self) -> None:
        """Receive what the browser sends, until it ends."""
        async for message in self._socket:
            found = message.json()
            if (number := found.get("id")) in self._answers:
                self._answers.pop(number).set_result(found)
            elif found.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                self.complaints.append(str(found["params"]))

    async def call(self, method: str, **params: Any) -> Any:
        """Return the result of a call of the protocol."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        answer = await self._answers[number]
        assert "error" not in answer, answer
        return answer["result"]

    async def open(self, address: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Open an address in a window of a size, with a light or a dark theme."""
        for domain in ("Page", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.call("Emulation.setEmulatedMedia", features=theme)
        await self.call("Page.navigate", url=address)

    async def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        found = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        async with asyncio.timeout(50):
            while not await self.value(f"document.readyState !== 'loading' && !!({expression})"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def press(self, key: str) -> None:
        """Press a key."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    async def screenshot(self, *, whole: bool = False) -> bytes:
        """Return a picture of the window, or of the whole page, as WebP."""
        found = await self.call("Page.captureScreenshot", format="webp", quality=80, captureBeyondViewport=whole)
        return base64.b64decode(found["data"])


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Tab]:
    """Run a browser with its profile in a folder."""
    assert CHROMIUM is not None
    flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0")
    quiet = ("--no-first-run", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars")
    with (folder / "chromium.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(CHROMIUM, *flags, *quiet, f"--user-data-dir={folder}", "about:blank"), stdout=log, stderr=log
        )
    try:
        found = folder / "DevToolsActivePort"
        async with asyncio.timeout(50):
            while not found.exists() or not found.read_text().count("\n"):
                assert process.returncode is None, (folder / "chromium.log").read_text()
                await asyncio.sleep(0.05)
        port = found.read_text().split()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                [page] = [each for each in await answer.json() if each["type"] == "page"]
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                listening = asyncio.create_task(tab.listen())
                try:
                    yield tab
                finally:
                    listening.cancel()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
