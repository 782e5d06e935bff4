"""The page as a whole: one file without network, by keyboard, on any screen, light and dark, for screen readers."""

import re
from pathlib import Path

import pytest

from deciban.page.build import render_folder_page, render_page
from tests.page.pages import faults, tab, written_page
from tests.support.browser import needs_axe, opened
from tests.support.models import mixed_model

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_page(tmp_path_factory.mktemp("page"), mixed_model().fitted_, "Who buys")


def test_nothing_in_a_page_is_inline_but_what_its_policy_knows() -> None:
    for html, policy in (
        render_page(None, service=False, title="static"),
        render_page(None, service=True, title="served"),
        render_folder_page("folder"),
    ):
        assert "unsafe" not in policy
        assert not re.search(r"<[^>]* (style|on\w+)=", html.split("<script", 1)[0])
        assert ("connect-src 'self'" in policy) == ("static" not in html.split("<h1>")[1][:8])
        assert "http:" not in html.replace("http://www.w3.org/2000/svg", "")
        assert "https:" not in html


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_it_fits_the_screen_and_is_quiet(page: Path, width: int, dark: bool) -> None:
    with opened(page, width, dark) as it:
        for name in ("Try it", "Playground", "Model"):
            tab(it, name)
            assert it.page.evaluate("document.documentElement.scrollWidth") <= width
        tab(it, "Playground")
        for scene in it.page.locator(".scene-tabs [role=tab]").all():
            scene.click()
            assert it.page.evaluate("document.documentElement.scrollWidth") <= width
        background = it.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(22, 24, 26)" if dark else "rgb(255, 255, 255)")
        assert it.page.locator("#report section").count() == 6
        it.check_quiet()


def test_the_demo_page_starts_with_the_playground_and_that_of_a_model_with_its_form(page: Path, tmp_path: Path) -> None:
    for path, name in ((page, "Try it"), (written_page(tmp_path, None), "Playground")):
        with opened(path) as it:
            assert it.page.locator("#tabs [aria-selected=true]").inner_text() == name
            assert it.page.get_by_role("tab").first.inner_text() == name
            it.check_quiet()


def test_the_legend_of_the_evidence_stays_on_one_line(page: Path) -> None:
    for width in (390, 700, 1280):
        with opened(page, width) as it:
            legend = it.page.locator("#against .legend")
            assert legend.inner_text().split() == ["for", "against"]
            assert legend.evaluate("node => node.getClientRects().length") == 1


def test_tabs_work_by_keyboard(page: Path) -> None:
    with opened(page) as it:
        it.page.keyboard.press("Tab")
        assert it.page.evaluate("document.activeElement.textContent") == "Skip to content"
        it.page.keyboard.press("Tab")
        assert it.page.evaluate("document.activeElement.id") == "tab-try"
        it.page.keyboard.press("End")
        assert it.page.evaluate("document.activeElement.id") == "tab-model"
        assert it.page.locator("#panel-model").is_visible()
        assert not it.page.locator("#panel-try").is_visible()
        it.page.keyboard.press("ArrowRight")
        assert it.page.evaluate("document.activeElement.id") == "tab-try"
        assert it.page.locator("[role=tab][aria-selected=true]").count() == 1
        ring = it.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring == "solid"


def test_reduced_motion_is_honored(page: Path) -> None:
    moves = "getComputedStyle(document.querySelector('#posterior .fill')).transitionDuration"
    with opened(page) as it:
        assert it.page.evaluate(moves) == "0.2s"
        it.page.emulate_media(reduced_motion="reduce")
        assert it.page.evaluate(moves) == "0s"


@needs_axe
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_no_fault(page: Path, dark: bool) -> None:
    with opened(page, dark=dark) as it:
        it.page.get_by_role("button", name="Pin this row").click()
        it.enter("age", "66")
        assert faults(it) == []
        for name in ("Playground", "Model"):
            tab(it, name)
            assert faults(it) == []


def test_a_link_names_a_scene_and_may_show_it_alone(page: Path) -> None:
    with opened(page) as it:
        it.page.goto(f"{page.as_uri()}#scene=line&example=equal-priors")
        it.page.reload()
        assert it.page.locator("[data-scene=line]").get_attribute("data-boundary").startswith("20")
        assert it.page.evaluate("location.hash") == "#scene=line&example=equal-priors"
        it.page.goto(f"{page.as_uri()}#scene=nowhere")
        assert "use one of line" in it.page.locator("#page-problem").inner_text()
        it.page.evaluate("addEventListener('message', (event) => { window.heard = event.data; })")
        it.page.goto(f"{page.as_uri()}#scene=theorem&embed")
        it.page.wait_for_function("window.heard && document.querySelector('[data-scene=theorem]').checkVisibility()")
        for part in ("#tabs", ".scene-tabs", "header", "footer"):
            assert not it.page.locator(part).is_visible(), part
        assert it.page.evaluate("window.heard.deciban.height") == it.page.evaluate("document.body.offsetHeight")
        it.page.get_by_role("button", name="Positive twice").click()
        assert it.page.evaluate("location.hash") == "#scene=theorem&embed"
        it.check_quiet()


def test_a_link_chooses_the_colors(page: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    for dark in (False, True):
        with opened(page, dark=dark) as it:
            for theme, color in (("dark", "rgb(22, 24, 26)"), ("light", "rgb(255, 255, 255)")):
                it.page.goto(f"{page.as_uri()}#scene=xor&embed&theme={theme}")
                it.page.wait_for_function(f"{background} === {color!r}")
            it.check_quiet()


def test_a_frame_is_as_high_as_its_scene(page: Path, tmp_path: Path) -> None:
    """The example of docs/howto/page.md, which follows the messages of the page in its frame."""
    text = (Path(__file__).parents[2] / "docs" / "howto" / "page.md").read_text()
    example = text.split("```html\n")[1].split("```")[0]
    around = tmp_path / "around.html"
    around.write_text(f'<!doctype html><html lang="en"><title>x</title>{example.replace("page.html", page.as_uri())}')
    with opened(around) as it:
        it.page.wait_for_function("document.querySelector('iframe').height !== '700'")
        frame = it.page.frames[1]
        assert frame.locator("[data-scene=plane]").is_visible()
        frame.wait_for_function("innerHeight > 900 && document.documentElement.scrollHeight === innerHeight")


def test_a_link_to_the_playground_holds_what_is_set_there(page: Path) -> None:
    boundaries = "document.querySelector('[data-scene=line]').dataset.boundaries"
    with opened(page) as it:
        tab(it, "Playground")
        before = it.page.evaluate(boundaries)
        it.page.locator("[data-scene=line] [role=slider]").first.press("ArrowRight")
        it.page.wait_for_function(f"{boundaries} !== {before!r}")
        moved, link = it.page.evaluate(boundaries), it.page.evaluate("location.href")
        assert "#playground/" in link
        it.page.goto("about:blank")
        it.page.goto(link)
        assert it.page.evaluate(boundaries) == moved
        assert it.page.locator("#panel-playground").is_visible()
        it.check_quiet()
