"""The debug page in a real browser: loads, shows a planted problem first, follows by events, is narrow and dark."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from aioinformer.controller import Manager, Request, TerminalError
from aioinformer.controller.debug import problems
from aioinformer.models import core_v1
from tests.support.chromium import CHROMIUM, Tab, chromium

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aioinformer.testing import ApiServer

pytestmark = pytest.mark.skipif(
    CHROMIUM is None and "AIOINFORMER_BROWSER" not in os.environ, reason="needs Debian's package chromium"
)

#: The least contrast between a text and its background.
_CONTRAST = """(() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
    .map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
    .reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
  const back = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const found = parts(getComputedStyle(each).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const shown = [...document.querySelectorAll("main *, header *")]
    .filter((node) => node.offsetParent)
    .filter((node) => [...node.childNodes].some((each) => each.nodeType === 3 && each.data.trim()));
  return Math.min(...shown.map((node) => {
    const [one, other] = [light(parts(getComputedStyle(node).color)), light(back(node))].sort((a, b) => b - a);
    return (one + 0.05) / (other + 0.05);
  }));
})()"""


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncIterator[Tab]:
    folder = tmp_path / "profile"
    folder.mkdir()
    async with chromium(folder) as opened:
        yield opened


@pytest.fixture
async def address(api_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The page of a manager that colours ConfigMaps, and parks one whose colour has markup."""
    monkeypatch.setattr(problems, "_LATE", 1000)  # how late the event loop is depends on the load of the machine
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    manager = Manager("shop", client=api_server.url, debug_port=port, grace=0.0)
    manager.debug_app(values=True, retry=True)

    @manager.controller(core_v1.CONFIG_MAPS)
    async def colours(request: Request[Any]) -> None:
        data = {} if request.object is None else request.object.data or {}
        if data.get("colour") == "purple":
            raise TerminalError("<img src=x onerror=alert(1)> is not a colour")

    async with manager:
        api_server.create("configmaps", _map("good", "red"))
        api_server.create("configmaps", _map("bad", "purple"))
        yield f"http://127.0.0.1:{port}/"


def _map(name: str, colour: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"colour": colour}}


async def test_code_in_a_remedy_is_marked(tab: Tab, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain: Any = problems._problem
    monkeypatch.setattr(problems, "_problem", lambda *args, **who: plain(*args[:2], "try `a < b` there", "x", **who))
    await tab.open(address)
    await tab.until("document.querySelector('.problem')")
    remedy = await tab.value("document.querySelector('.problem p:nth-child(2)').innerHTML")
    assert remedy.startswith('Try <span class="mono">a &lt; b</span> there.')


async def test_planted_problem_is_first_and_goes_away_by_events(tab: Tab, address: str, api_server: ApiServer) -> None:
    await tab.open(address)
    await tab.until("document.querySelector('.problem')")
    text = "document.querySelector('main section:first-child').innerText"
    assert "default/bad: <img src=x onerror=alert(1)> is not a colour" in await tab.value(text)
    assert await tab.value("document.querySelectorAll('img').length") == 0
    await tab.value("document.querySelector('.problem button').click()")
    await tab.until("document.querySelector('#detail-body dl')")
    assert "Run again" in await tab.value("document.getElementById('detail').innerText")
    runs = "document.getElementById('detail').innerText.match(/Runs\\s+(\\d+);/)?.[1]"
    assert await tab.value(runs) == "1"
    await tab.value("[...document.querySelectorAll('#detail button')].find((b) => b.innerText === 'Run again').click()")
    await tab.until(f"{runs} === '2'")
    api_server.patch("configmaps", "bad", {"data": {"colour": "blue"}}, "default")
    await tab.until("document.querySelector('.all-well')")
    await tab.until("document.querySelector('#detail pre')?.innerText.includes('+ data.colour: \"blue\"')")
    assert tab.complaints == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1200])
async def test_page_fits_its_window_with_contrast(tab: Tab, address: str, width: int, dark: bool) -> None:
    await tab.open(address, width=width, dark=dark)
    await tab.until("document.querySelector('.problem button')")
    await tab.value("document.querySelector('.problem button').click()")
    await tab.until("document.querySelector('#detail-body dl')")
    assert await tab.value("document.documentElement.scrollWidth") <= width
    assert await tab.value(_CONTRAST) >= 4.5
    back = await tab.value("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(15, 19, 23)" if dark else "rgb(246, 247, 249)")
    assert tab.complaints == []


async def test_page_is_used_with_the_keyboard(tab: Tab, address: str) -> None:
    await tab.open(address)
    await tab.until("document.querySelector('.problem button')")
    for _ in range(10):
        await tab.press("Tab")
        if await tab.value("!!document.activeElement.closest('.problem')"):
            break
    await tab.press("Enter")
    await tab.until("document.activeElement.id === 'detail'")
    await tab.press("Escape")
    await tab.until("document.getElementById('detail').hidden")
    await tab.value("document.querySelector('[role=tab]').focus()")
    await tab.press("ArrowRight")
    await tab.until("document.activeElement.getAttribute('aria-selected') === 'true'")
    focused = await tab.value("document.activeElement.dataset.id")
    before = await tab.value("document.getElementById('connection').innerText")
    await tab.until(f"document.getElementById('connection').innerText !== {before!r}")  # another event
    assert await tab.value("document.activeElement.dataset.id") == focused


async def test_lost_connection_is_shown(tab: Tab, api_server: ApiServer) -> None:
    manager = Manager("shop", client=api_server.url, debug_port=0)
    page = manager.debug_app(check=lambda request: True)
    async with manager:
        runner = web.AppRunner(page.aiohttp(), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        await tab.open(f"http://127.0.0.1:{runner.addresses[0][1]}/")
        await tab.until("document.querySelector('.all-well')")
        await asyncio.wait_for(runner.cleanup(), 10)
        await tab.until("document.querySelector('#connection.lost')")
