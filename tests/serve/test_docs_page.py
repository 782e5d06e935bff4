"""The page /docs: all endpoints and columns of the description, examples that work, on any screen, without scripts."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from deciban import BayesClassifier
from deciban.datasets import weather
from deciban.serve.problems import PROBLEM_CODES
from tests.serve.conftest import Opened
from tests.serve.processes import serving
from tests.support.browser import opened as shown


def text_of(html: str) -> str:
    return unescape(re.sub("<[^>]+>", " ", html))


@pytest.mark.parametrize("model", ["mixed.dcb", "weather.dcb", "matrix.dcb", "."])
def test_it_has_every_endpoint_column_and_code(opened: Opened, model: str) -> None:
    client = opened(model)
    answer, description = client.get("/docs"), client.get("/openapi.json").json()
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert re.fullmatch(
        r"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src 'sha256-\S+'",
        answer.headers["content-security-policy"],
    )
    text = text_of(answer.text)
    assert all(f"{method.upper()} {path}" in text for path, found in description["paths"].items() for method in found)
    assert all(code in text for code in PROBLEM_CODES)
    rows = [schema for name, schema in description["components"]["schemas"].items() if name.startswith("Row")]
    assert len(rows) == (4 if model == "." else 1)
    assert all(column in text for row in rows for column in row.get("properties", ()))


def examples(html: str, address: str) -> Iterator[tuple[str, object]]:
    for body, path in re.findall(rf"curl --json '(.*?)' {address}(/\w+)<", html):
        yield path, json.loads(unescape(body).replace("'\\''", "'").replace("CLASS", "mid"))


def test_its_examples_work(models: Path, opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "mixed.dcb").write_bytes((models / "mixed.dcb").read_bytes())
    client = opened(tmp_path / "mixed.dcb", learn=True)
    found = dict(examples(client.get("/docs").text, str(client.base_url)))
    assert [*found] == ["/predict", "/explain", "/decide", "/learn", "/forget"]
    for path, body in found.items():
        assert client.post(path, json=body).status_code == 200, path
    client = opened("matrix.dcb")
    for path, body in [*examples(client.get("/docs").text, str(client.base_url))][:3]:
        assert client.post(path, json=body).status_code == 200, path


def test_names_are_text(opened: Opened, tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "it's", "wind", "humidity", "play"]
    table = weather().rename_columns([f"{name}" for name in names])
    BayesClassifier(tune=None).fit(table, "play").save(tmp_path / "m.dcb")
    client = opened(tmp_path / "m.dcb")
    page = client.get("/docs").text
    assert "<script" not in page
    assert "<script>alert(1)</script>" in text_of(page.replace("<b>", ""))
    path, body = next(examples(page, str(client.base_url)))
    assert client.post(path, json=body).status_code == 200


@pytest.fixture(scope="module")
def address(models: Path) -> Iterator[str]:
    """A service that runs as a process of its own."""
    with serving(models / "mixed.dcb") as found:
        yield found


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_it_fits_the_screen_and_asks_for_nothing_else(address: str, width: int, dark: bool) -> None:
    with shown(f"{address}/docs", width, dark) as it:
        for summary in it.page.locator("summary").all():
            summary.click()
        assert it.page.evaluate("document.documentElement.scrollWidth") <= width
        background = it.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(22, 24, 26)" if dark else "rgb(255, 255, 255)")
        assert it.complaints == []
        assert [url for url in it.requests if not url.startswith("data:")] == [f"{address}/docs"]
        it.page.get_by_role("link", name="OpenAPI description").click()
        assert it.page.url == f"{address}/openapi.json"
