"""A real browser, without a window: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
AXE = ROOT / ".ci" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

needs_axe = pytest.mark.skipif(not AXE.exists(), reason="there is no axe-core here: npm install --prefix .ci axe-core")


@dataclass
class Opened:
    """A page in a browser, and what it complained of or asked the network for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def check_quiet(self) -> None:
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []

    def posterior(self) -> dict[str, float]:
        """What the bars say."""
        bars = self.page.locator("#what-if-posterior li, #posterior li").all()
        return {bar.get_attribute("data-class"): float(bar.get_attribute("data-probability")) for bar in bars}

    def enter(self, column: str, value: str) -> None:
        """Type a value into the field of a column, or choose it there."""
        field = self.page.get_by_label(column, exact=True)
        if field.evaluate("node => node.tagName") == "SELECT":
            field.select_option(label=value)
        else:
            field.fill(value)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests marked `browser` if there is none."""
    if CHROMIUM is None and item.get_closest_marker("browser"):
        pytest.skip("there is no Chromium here: install Debian's `chromium`")


@contextmanager
def opened(place: Path | str, width: int = 1280, dark: bool = False) -> Iterator[Opened]:
    """A page, opened from a file or from an address, with cookies and storage of its own."""
    scheme = "dark" if dark else "light"
    page = started_browser().new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    found = Opened(page)
    page.on("console", lambda message: found.complaints.append(message.text))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", lambda request: found.requests.append(request.url))
    page.goto(place.as_uri() if isinstance(place, Path) else place)
    try:
        yield found
    finally:
        page.close()


@cache
def started_browser() -> Any:
    """The browser of the tests of one module: to start one takes longer than most tests."""
    from playwright.sync_api import sync_playwright

    player = sync_playwright().start()
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    browser = player.chromium.launch(executable_path=CHROMIUM, args=options)
    _to_close.callback(player.stop)
    _to_close.callback(browser.close)
    return browser


_to_close = ExitStack()


@pytest.fixture(scope="module", autouse=True)
def closed_browser() -> Iterator[None]:
    """The browser ends with the module: while one runs, nothing else can run an event loop in this thread."""
    yield
    _to_close.close()
    started_browser.cache_clear()
