"""The site: built once without a warning; every page is reachable, found by the words people type, and accessible."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

import pytest

from tests.support.browser import AXE, needs_axe, opened

fcntl = pytest.importorskip("fcntl")
pytest.importorskip("sphinx", reason="the site needs the extra 'docs'")

ROOT = Path(__file__).parent.parent

# Colors are measured without the fade of wide blocks, and not on their way to those of the theme.
AT_REST = "*, *::before, *::after { animation: none !important; transition: none !important; mask: none !important }"

# What people type into the search, and the pages of which one must be the first result.
SEARCHES = {
    "accuracy": {"howto/evaluate"},
    "authentication": {"howto/serve"},
    "calibration": {"concepts/calibration"},
    "categorical": {"deciban.Categorical", "reference/families"},
    "class imbalance": {"howto/costs"},
    "concept drift": {"howto/drift"},
    "conformal": {"howto/prediction-sets"},
    "confusion": {"howto/evaluate"},
    "cost": {"howto/costs"},
    "coverage": {"howto/prediction-sets"},
    "csv": {"start/first-model", "howto/files"},
    "custom family": {"howto/own-family"},
    "differential privacy": {"howto/private-counts"},
    "delete row": {"howto/forget"},
    "docker": {"howto/deploy"},
    "drift": {"howto/drift"},
    "erase": {"howto/forget"},
    "excel": {"howto/files"},
    "explain": {"howto/explain"},
    "exponential": {"howto/own-family"},
    "feature importance": {"concepts/evidence"},
    "forget a row": {"howto/forget"},
    "forget row": {"howto/forget"},
    "forget": {"howto/forget", "reference/glossary"},
    "GDPR": {"howto/forget"},
    "ignore column": {"howto/tables"},
    "imbalanced": {"howto/costs"},
    "install": {"start/install"},
    "json": {"howto/explain"},
    "label errors": {"howto/label-errors"},
    "Laplace": {"lectures/estimation"},
    "LDA": {"concepts/linear-forms", "lectures/linear"},
    "likelihood": {"reference/glossary", "lectures/bayes-theorem"},
    "MAP": {"lectures/bayes-classifier"},
    "mislabeled": {"howto/label-errors"},
    "missing": {"howto/missing-values"},
    "online": {"howto/online-learning"},
    "onnx": {"howto/export"},
    "oversampling": {"howto/costs"},
    "own distribution": {"howto/own-family"},
    "P(value | class)": {"howto/probability-tables"},
    "pickle": {"reference/model-file"},
    "playground": {"start/playground"},
    "postgres": {"howto/sql", "howto/databases"},
    "predict_proba": {"deciban.BayesClassifier.predict_proba"},
    "prior": {"concepts/decisions"},
    "prometheus": {"howto/monitor"},
    "QDA": {"concepts/linear-forms", "lectures/linear"},
    "reject": {"howto/costs", "reference/glossary"},
    "rest": {"reference/rest"},
    "retrain": {"howto/forget", "howto/online-learning"},
    "right to be forgotten": {"howto/forget"},
    "save model": {"reference/model-file"},
    "score in PostgreSQL": {"howto/sql"},
    "scikit-learn": {"howto/scikit-learn"},
    "shap": {"howto/explain"},
    "smoothing": {"lectures/estimation"},
    "SMOTE": {"howto/costs"},
    "spark": {"howto/databases"},
    "sql": {"howto/sql", "howto/databases"},
    "text": {"howto/text"},
    "threshold": {"howto/costs"},
    "token": {"howto/serve"},
    "troubleshooting": {"howto/diagnose"},
    "unbalanced": {"howto/costs"},
    "weights": {"reference/glossary", "howto/tables"},
    "XOR": {"lectures/failures"},
}

# One page of each kind, by what it may break: cards, prose, tables, formulas, long signatures, frames.
KINDS = [
    "index.html",
    "start/playground.html",
    "howto/index.html",
    "howto/files.html",
    "concepts/decisions.html",
    "lectures/linear.html",
    "reference/glossary.html",
    "reference/command-line.html",
    "reference/api/generated/deciban.BayesClassifier.html",
    "project/contributing.html",
]


@dataclass
class Site:
    folder: Path
    printed: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site, without running the programs of the gallery, as tests/examples do; built once for all processes."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    log, trees, html = folder / "site.log", folder / "site-trees", folder / "site"
    with log.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not file.tell():
            options = ["-W", "--keep-going", "-D", "plot_gallery=0", "-d", str(trees)]
            command = [sys.executable, "-m", "sphinx", *options, "docs", str(html)]
            subprocess.run(command, cwd=ROOT, stdout=file, stderr=file, check=False)
    printed = log.read_text()
    assert "build succeeded." in printed, printed[-3000:]
    return Site(html, printed)


@pytest.mark.house
def test_the_site_is_built_without_a_warning(site: Site) -> None:
    assert "WARNING" not in site.printed
    assert "Playground" in (site.folder / "_static" / "playground.html").read_text()


@pytest.mark.house
def test_every_page_can_be_reached_by_links(site: Site) -> None:
    pages = {path.relative_to(site.folder).as_posix() for path in site.folder.rglob("*.html")}
    pages -= {"_static/webpack-macros.html"}
    waiting, reached = ["index.html"], {"index.html"}
    while waiting:
        page = waiting.pop()
        for link in set(re.findall(r'href="([^"#:]+\.html)', (site.folder / page).read_text())):
            target = normpath(join(dirname(page), link))
            assert target in pages, (page, link)
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    assert pages - reached == set()


@pytest.mark.house
def test_the_api_lists_every_name_once(site: Site) -> None:
    folder = site.folder / "reference" / "api"
    article = (folder / "index.html").read_text().partition("<article")[2].partition("</article")[0]
    listed = re.findall(r'<td><p><a [^>]*href="generated/(deciban\.[\w.]+)\.html#\1"', article)
    assert sorted(listed) == sorted(path.stem for path in (folder / "generated").glob("*.html"))


@pytest.mark.browser
def test_the_search_finds_what_people_type(site: Site) -> None:
    missed = {}
    with opened(site.folder / "search.html") as it:
        it.page.wait_for_function("typeof Search !== 'undefined' && Search.hasIndex()")
        for word, pages in SEARCHES.items():
            found = first_result(it.page, word)
            if not any(name in found for name in pages):
                missed[word] = found
    assert missed == {}


def first_result(page: Any, word: str) -> str:
    """Return the place of the first result of the site's own search."""
    ask = (
        "word => { const [query, ...asked] = Search._parseQuery(word); return Search._performSearch(query, ...asked); }"
    )
    return next((f"{page}#{anchor}" for page, _, anchor, *_ in page.evaluate(ask, word)[::-1]), "")


@needs_axe
@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark, on a phone"])
def test_axe_finds_nothing_serious(site: Site, dark: bool) -> None:
    faults = {}
    for kind in KINDS:
        with opened(site.folder / kind, width=390 if dark else 1280, dark=dark) as it:
            it.page.wait_for_load_state("networkidle")
            it.page.add_style_tag(content=AT_REST)
            it.page.evaluate(AXE.read_text(encoding="utf-8"))
            rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
            if dark:
                rules = ["color-contrast", "button-name", "link-name"]
            found = it.page.evaluate("runOnly => axe.run(document, { runOnly, iframes: false })", rules)["violations"]
            serious = [
                [one["id"], one["nodes"][0]["html"]] for one in found if one["impact"] in ("serious", "critical")
            ]
            if serious:
                faults[kind] = serious
    assert faults == {}


@pytest.mark.browser
def test_a_phone_does_not_scroll_sideways_and_no_page_asks_the_network(site: Site) -> None:
    for kind in KINDS:
        with opened(site.folder / kind, width=390) as it:
            assert it.page.evaluate("document.documentElement.scrollWidth") == 390, kind
            assert [url for url in it.requests if not url.startswith(("file:", "data:"))] == [], kind
            assert [text for text in it.complaints if not text.startswith("[PST]")] == [], kind


@pytest.mark.browser
def test_the_playground_is_alive_in_its_frame_and_follows_the_theme(site: Site) -> None:
    with opened(site.folder / "start" / "playground.html") as it:
        frame = it.page.frame_locator("iframe.playground")
        assert frame.locator("[role=tab]").first.inner_text() == "Playground"
        frame.get_by_role("tab", name="Theorem").click()
        assert frame.locator("[data-scene=theorem]").is_visible()
        it.page.evaluate("document.documentElement.dataset.theme = 'dark'")
        background = "getComputedStyle(document.body).backgroundColor"
        it.page.frames[1].wait_for_function(f"{background} === 'rgb(22, 24, 26)'")
