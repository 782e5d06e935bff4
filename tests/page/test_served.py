"""The page of a service asks for the model, follows it when it learns, and keeps what was entered."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from deciban import BayesClassifier, Text
from deciban.datasets import weather
from tests.page.pages import tab, told_terms
from tests.page.service import Served, serving
from tests.support.browser import Opened, opened

pytestmark = pytest.mark.browser

TOKEN = "a-token-of-some-length"
ROW = {"outlook": "rain", "temperature": "mild", "humidity": "high", "wind": "strong"}


def posterior_of(clf: BayesClassifier, row: dict[str, Any]) -> dict[str, float]:
    return dict(zip(map(str, clf.classes_), clf.predict_proba(pd.DataFrame([row]))[0], strict=True))


def learned() -> BayesClassifier:
    return BayesClassifier(tune=None).fit(weather(), "play")


def enter_row(it: Opened) -> None:
    it.page.wait_for_selector("#posterior li")
    for column, value in ROW.items():
        it.enter(column, value)


def check_own_server(it: Opened, served: Served) -> None:
    assert it.complaints == []
    assert all(url.startswith((served.url, "data:")) for url in it.requests)


def post(served: Served, path: str, body: Any) -> Any:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{served.url}{path}", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request, timeout=20))


def test_it_follows_a_model_that_learns_and_keeps_what_is_entered(tmp_path: Path) -> None:
    clf = learned()
    with serving(clf, tmp_path, learn=True, new_classes=True) as served, opened(served.url) as it:
        enter_row(it)
        assert it.posterior() == pytest.approx(posterior_of(clf, ROW), abs=1e-9)
        assert "14 rows" in it.page.locator("#service-status").text_content()
        tab(it, "Model")
        it.page.wait_for_selector("#report section")
        assert it.page.locator("#report .tiles dd").first.text_content() == "14"
        rows = [{**ROW, "wind": "gale"}] * 6
        clf.partial_fit(pd.DataFrame(rows), ["maybe"] * 6)
        post(served, "learn", {"rows": rows, "labels": ["maybe"] * 6})
        it.page.wait_for_function("() => document.querySelector('#report .tiles dd').textContent === '20'")
        tab(it, "Try it")
        assert it.posterior() == pytest.approx(posterior_of(clf, ROW), abs=1e-9)
        assert set(it.posterior()) == {"maybe", "no", "yes"}
        it.enter("wind", "gale")
        assert it.posterior() == pytest.approx(posterior_of(clf, {**ROW, "wind": "gale"}), abs=1e-9)
        assert it.page.get_by_label("outlook", exact=True).locator("option:checked").text_content() == "rain"
        check_own_server(it, served)


def test_more_rows_of_the_same_kind_leave_the_form_as_it_is(tmp_path: Path) -> None:
    clf = learned()
    with serving(clf, tmp_path) as served, opened(served.url) as it:
        enter_row(it)
        it.page.get_by_label("wind", exact=True).focus()
        clf.partial_fit(weather(), "play")
        served.show(clf)
        it.page.wait_for_function("() => document.querySelector('#service-status').textContent.includes('28 rows')")
        assert it.posterior() == pytest.approx(posterior_of(clf, ROW), abs=1e-9)
        assert it.page.evaluate("document.activeElement.tagName") == "SELECT"
        assert served.asked.count("/model/form") == 1


def test_it_asks_for_a_token_and_keeps_it_while_the_tab_is_open(tmp_path: Path) -> None:
    clf = learned()
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read {TOKEN}\n")
    tokens.chmod(0o600)
    with serving(clf, tmp_path, token_file=str(tokens)) as served, opened(served.url) as it:
        token = it.page.get_by_label("This service requires a token")
        token.wait_for()
        assert it.page.locator("#service-problem").text_content() == ""  # nothing was typed yet
        token.fill("wrong")
        it.page.keyboard.press("Enter")
        it.page.wait_for_function(
            "() => document.querySelector('#token') && document.querySelector('#token').value === ''"
        )
        assert "Invalid token" in it.page.locator("#service-problem").text_content()
        it.page.get_by_label("This service requires a token").fill(TOKEN)
        it.page.get_by_role("button", name="Continue").click()
        enter_row(it)
        assert it.posterior() == pytest.approx(posterior_of(clf, ROW), abs=1e-9)
        it.page.reload()
        it.page.wait_for_selector("#posterior li")
        assert it.posterior() == pytest.approx(posterior_of(clf, ROW), abs=1e-9)
        assert it.page.locator("#token").count() == 0
        assert TOKEN not in it.page.url
        assert it.page.locator("#service-problem").text_content() == ""


@pytest.mark.filterwarnings("ignore:Text.tokenizer")
def test_a_model_that_the_scorer_cannot_have_is_asked_of_the_service(tmp_path: Path) -> None:
    table = pd.DataFrame({"text": ["a b", "c d", "a c", "d d"] * 10, "x": [1.0, 2.0, 0.5, 2.5] * 10})
    clf = BayesClassifier(families={"text": Text(tokenizer=str.split)}, tune=None).fit(table, ["k", "l", "k", "l"] * 10)
    with serving(clf, tmp_path) as served, opened(served.url) as it:
        it.page.wait_for_selector("#posterior li")
        it.enter("text", "a d d")
        it.enter("x", "1.25")
        row = {"text": "a d d", "x": 1.25}
        expected = posterior_of(clf, row)
        it.page.wait_for_function(
            "value => Math.abs(document.querySelector('#posterior li').dataset.probability - value) < 1e-9",
            arg=expected["k"],
        )
        assert it.posterior() == pytest.approx(expected, abs=1e-9)
        told = told_terms(it.page.locator("#evidence svg").get_attribute("aria-label"))
        assert told["sum"] == pytest.approx(clf.explain(pd.DataFrame([row])).to_dict(0)["sum"], abs=0.06)
        assert "/explain" in served.asked
        assert "/model/scorer" not in served.asked
        check_own_server(it, served)


def test_a_folder_of_models_links_to_the_page_of_each(tmp_path: Path) -> None:
    clf = learned()
    with serving(clf, tmp_path, "a & b") as served, opened(served.url) as it:
        it.page.get_by_role("link", name="a & b").click()
        enter_row(it)
        assert it.posterior() == pytest.approx(posterior_of(clf, ROW), abs=1e-9)
        assert it.page.url.startswith(f"{served.url}models/a%20%26%20b/")
        check_own_server(it, served)


def test_a_folder_marks_what_cannot_answer(tmp_path: Path) -> None:
    (tmp_path / "bad.dcb").write_bytes(b"no model")
    with serving(learned(), tmp_path, "good", shown=False) as served, opened(served.url) as it:
        it.page.get_by_role("link", name="good").wait_for()
        assert it.page.get_by_role("link").count() == 1
        assert "bad failed to load" in it.page.locator("#models").text_content()


def test_a_service_says_that_it_keeps_no_rows(tmp_path: Path) -> None:
    with serving(learned(), tmp_path) as served, opened(served.url) as it:
        tab(it, "Model")
        it.page.wait_for_selector("#report section")
        told = it.page.locator("#report").text_content()
        assert "deciban evaluate" in told
        assert "No rows were given" not in told
        assert "none are given" not in told


def test_a_service_that_does_not_answer_is_told_and_what_is_there_goes_on(tmp_path: Path) -> None:
    clf = learned()
    with serving(clf, tmp_path) as served, opened(served.url) as it:
        enter_row(it)
        it.page.route("**/model", lambda route: route.abort())
        it.page.get_by_text("the service does not respond").wait_for()
        it.enter("wind", "weak")
        assert it.posterior() == pytest.approx(posterior_of(clf, {**ROW, "wind": "weak"}), abs=1e-9)
        it.page.unroute("**/model")
        tab(it, "Model")
        it.page.wait_for_selector("#report section")
        assert it.page.locator("#service-problem").text_content() == ""
