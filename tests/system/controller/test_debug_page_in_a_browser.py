"""The debug page in a real browser: loads, shows a planted problem first, follows by events, is narrow and dark."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from aioinformer.controller import Manager, Request, TerminalError
from aioinformer.controller.debug import problems
from aioinformer.controller.inputs import Source
from aioinformer.models import core_v1
from tests.support.chromium import CHROMIUM, Tab, chromium
from tests.support.limits import ignore_late_loops

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
    """The page of a manager that colours ConfigMaps, parks one whose colour has markup, and fails for those without."""
    ignore_late_loops(monkeypatch)
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
        if data.get("colour") == "none":
            raise ValueError("no colour")

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
    await tab.value("document.querySelector('.problem p:last-child a').click()")
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
    await tab.until("document.querySelector('.problem a')")
    await tab.value("document.querySelector('.problem p:last-child a').click()")
    await tab.until("document.querySelector('#detail-body dl')")
    assert await tab.value("document.documentElement.scrollWidth") <= width
    assert await tab.value(_CONTRAST) >= 4.5
    back = await tab.value("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(15, 19, 23)" if dark else "rgb(246, 247, 249)")
    assert tab.complaints == []


async def test_page_is_used_with_the_keyboard(tab: Tab, address: str) -> None:
    await tab.open(address)
    await tab.until("document.querySelector('.problem a')")
    for _ in range(10):
        await tab.press("Tab")
        if await tab.value("!!document.activeElement.closest('.problem p:last-child')"):
            break
    await tab.press("Enter")
    await tab.until("document.activeElement.id === 'detail'")
    await tab.press("Escape")
    await tab.until("document.getElementById('detail').hidden")
    assert await tab.value("!!document.activeElement.closest('.problem p:last-child')")
    await tab.value("document.querySelector('[role=tab]').focus()")
    await tab.press("ArrowRight")
    await tab.until("document.activeElement.getAttribute('aria-selected') === 'true'")
    focused = await tab.value("document.activeElement.dataset.id")
    before = await tab.value("document.getElementById('updated').innerText")
    await tab.until(f"document.getElementById('updated').innerText !== {before!r}")  # another event
    assert await tab.value("document.activeElement.dataset.id") == focused


@asynccontextmanager
async def served(manager: Manager, *middlewares: Any) -> AsyncIterator[str]:
    """Serve the page of a manager in an application of aiohttp; return its address."""
    application = web.Application(middlewares=middlewares)
    application.add_subapp("/debug/", manager.debug_app(check=lambda request: True).aiohttp())
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/debug/"
    finally:
        await asyncio.wait_for(runner.cleanup(), 50)


async def test_lost_connection_is_shown_and_made_again(tab: Tab, api_server: ApiServer) -> None:
    failures = [True]

    @web.middleware
    async def proxy(request: web.Request, handler: Any) -> web.StreamResponse:
        if failures and "/api/" in request.path:
            return web.Response(status=502, text="<h1>502</h1>", content_type="text/html")
        found: web.StreamResponse = await handler(request)
        return found

    manager = Manager("shop", client=api_server.url)
    async with manager:
        async with served(manager, proxy) as address:
            await tab.open(address)
            text = "document.querySelector('#connection.lost')?.innerText"
            await tab.until(text)
            shown = "502 Bad Gateway; what is shown is old; trying again in "
            assert (await tab.value(text)).startswith(shown)
            failures.clear()
            await tab.until("document.querySelector('.all-well') && !document.getElementById('connection').innerText")
        await tab.until(
            "document.querySelector('#connection.lost')?.innerText.startsWith('The manager does not answer;')"
        )


async def test_page_without_events_says_so_and_reads_the_report(tab: Tab, address: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session, AsyncExitStack() as readers:
        for _ in range(16):
            answer = await readers.enter_async_context(session.get(f"{address}api/events"))
            await answer.content.readline()
        await tab.open(address)
        await tab.until("document.querySelector('#connection.polled')")
        text = await tab.value("document.getElementById('connection').innerText")
        assert text.startswith(
            "16 readers follow this page already, so this one gets no events; close another one; reading"
        )
        await tab.until("document.querySelector('.problem')")
        before = await tab.value("document.getElementById('updated').innerText")
        await tab.until(f"document.getElementById('updated').innerText !== {before!r}")
        await readers.aclose()
        await tab.until("!document.getElementById('connection').innerText")
    assert all("503" in each for each in tab.complaints)


async def test_back_leads_to_the_key_before(tab: Tab, address: str) -> None:
    title = "document.getElementById('detail').hidden ? '' : document.getElementById('detail-title').innerText"
    await tab.open(address)
    await tab.until("document.querySelector('.problem p:last-child a')")
    await tab.value("document.querySelector('.problem p:last-child a').click()")
    await tab.until(f"({title}) === 'default/bad of colours'")
    await tab.value(
        "document.getElementById('find-key').value = 'default/good';document.querySelector('#find button').click()"
    )
    await tab.until(f"({title}) === 'default/good of colours'")
    await tab.value("history.back()")
    await tab.until(f"({title}) === 'default/bad of colours'")
    await tab.value("history.back()")
    await tab.until(f"({title}) === ''")
    assert tab.complaints == []


@pytest.mark.parametrize("name", ["system:a b?c#d", "50%", "ü &=+;x", "%zz", "'\"<b>"])
async def test_links_to_keys_with_odd_characters(tab: Tab, api_server: ApiServer, name: str) -> None:
    manager = Manager("shop", client=api_server.url, grace=0.0)

    async def names() -> AsyncIterator[str]:
        yield name
        await asyncio.sleep(1e6)

    @manager.controller(core_v1.NAMESPACES, name="the.roles_1", sources=[Source(names)])
    async def roles(request: Request[Any]) -> None:
        if request.name == name:
            raise TerminalError("odd")

    title = "document.getElementById('detail').hidden ? '' : document.getElementById('detail-body').innerText"
    async with manager, served(manager) as address:
        await tab.open(address)
        await tab.until("document.querySelector('.problem p:last-child a')")
        link = await tab.value("document.querySelector('.problem p:last-child a').href")
        await tab.call("Page.navigate", url="about:blank")
        await tab.open(link)
        await tab.until(f"({title}).includes('TerminalError at')")
        heading = await tab.value("document.getElementById('detail-title').innerText")
        assert heading == f"{name} of the.roles_1"
        assert await tab.value("document.activeElement.id") == "detail"
        await tab.open(f"{address}#controller=the.roles_1&key={'%' if '%' in name else name}")  # as typed by hand
        await tab.until("document.getElementById('detail-title').innerText.endsWith('of the.roles_1')")
    assert [each for each in tab.complaints if "exceptionDetails" in each] == []


#: Words of which a part is on another line.
_BROKEN = """(() => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const broken = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest(".unseen")) continue;
    for (const found of node.data.matchAll(/[A-Za-z0-9]+/g)) {
      const range = document.createRange();
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      if (new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1) broken.push(found[0]);
    }
  }
  return broken;
})()"""


@pytest.mark.parametrize("width", [400, 800, 1400])
async def test_no_word_is_broken(tab: Tab, address: str, api_server: ApiServer, width: int) -> None:
    api_server.create("configmaps", _map("a-name-that-somebody-has-generated-from-a-template-0a1b2c3d4e5f", "purple"))
    await tab.open(address, width=width)
    await tab.until("document.querySelector('.problem strong')?.innerText.startsWith('2 keys')")
    await tab.value("document.querySelector('.problem p:last-child a').click()")
    await tab.until("document.querySelector('#detail-body dl')")
    assert await tab.value(_BROKEN) == []
    assert await tab.value("document.documentElement.scrollWidth") <= width


async def test_screen_readers_hear_changes_of_problems_only(tab: Tab, address: str, api_server: ApiServer) -> None:
    api_server.create("configmaps", _map("failing", "none"))
    await tab.open(address)
    await tab.until("document.getElementById('announcement').innerText.startsWith('2 problems: 1 key is parked')")
    await tab.value("""{
      window.said = 0;
      const observer = new MutationObserver((changes) => { window.said += changes.length; });
      document.querySelectorAll("[role=status], [aria-live]").forEach((each) =>
        observer.observe(each, { childList: true, characterData: true, subtree: true }));
    }""")
    before = await tab.value("document.getElementById('problem-list').innerText")
    await tab.until(f"document.getElementById('problem-list').innerText !== {before!r}")  # it has failed once more
    assert await tab.value("window.said") == 0
    api_server.patch("configmaps", "bad", {"data": {"colour": "blue"}}, "default")
    await tab.until("document.getElementById('announcement').innerText.startsWith('1 problem: 1 key fails')")


async def test_remedy_leads_to_its_section_and_the_header_says_when_the_process_began(tab: Tab, address: str) -> None:
    await tab.open(address)
    await tab.until("document.querySelector('.problem a')")
    header = await tab.value("document.getElementById('facts').innerText")
    assert re.search(r"started \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, .* ago", header)
    link = await tab.value("document.querySelector('.problem a').href")
    assert link == f"{address}troubleshooting#parked"
    await tab.open(link)
    await tab.until("document.querySelector(':target')?.innerText === 'A key is parked'")
    assert await tab.value("getComputedStyle(document.body).maxWidth") != "none"  # the style is that of the page
    assert tab.complaints == []
