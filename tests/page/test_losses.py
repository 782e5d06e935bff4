"""The decision follows the losses that are edited, and a link brings all of it back."""

from pathlib import Path

import pytest

from deciban import BayesClassifier, Loss, decide
from deciban.datasets import weather
from tests.page.pages import decided, risks, tab, written_page
from tests.support.browser import Opened, opened

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[BayesClassifier, Path]:
    clf = BayesClassifier(tune=None).fit(weather(), "play")
    return clf, written_page(tmp_path_factory.mktemp("page"), clf.fitted_)


def enter_cost(it: Opened, decision: str, truth: str, cost: str) -> None:
    it.page.get_by_label(f"cost of {decision} if {truth}", exact=True).fill(cost)


def check_decision(it: Opened, loss: Loss, reject: float | None = None) -> str:
    """The page decides as `decide` does, at the same risk."""
    found = decide(it.posterior(), loss, reject=reject)
    assert decided(it) == found.decision[0]
    assert risks(it)[decided(it)] == pytest.approx(found.risk[0], abs=1e-12)
    return decided(it)


def test_the_decision_follows_the_losses_as_decide_does(page: tuple[BayesClassifier, Path]) -> None:
    names = ("no", "yes")
    with opened(page[1]) as it:
        assert check_decision(it, Loss.zero_one(names)) == "no"
        enter_cost(it, "no", "yes", "20")
        assert check_decision(it, Loss([[0, 20], [1, 0]], names, names)) == "yes"
        it.page.get_by_role("button", name="Add a decision").click()
        it.page.keyboard.type("wait")
        enter_cost(it, "wait", "no", "0.25")
        enter_cost(it, "wait", "yes", "0.4")
        costs = Loss([[0, 20], [1, 0], [0.25, 0.4]], (*names, "wait"), names)
        assert check_decision(it, costs) == "wait"
        it.page.get_by_label("cost of rejecting (leaving the row undecided)").fill("0.1")
        assert check_decision(it, costs, 0.1) == "reject"
        it.page.get_by_role("button", name="Remove wait").click()
        assert set(risks(it)) == {"no", "yes", "reject"}
        it.page.get_by_role("button", name="Every mistake costs 1").click()
        assert check_decision(it, Loss.zero_one(names)) == "no"
        it.check_quiet()


@pytest.mark.parametrize(
    ("label", "entered", "told"),
    [
        ("cost of no if yes", "dear", 'no if yes: "dear" is not a number'),
        ("cost of no if yes", "", 'no if yes: "" is not a number'),
        ("cost of rejecting (leaving the row undecided)", "-1", "must be at least 0"),
    ],
)
def test_a_loss_that_cannot_be_is_told(page: tuple[BayesClassifier, Path], label: str, entered: str, told: str) -> None:
    with opened(page[1]) as it:
        it.page.get_by_label(label, exact=True).fill(entered)
        assert told in it.page.locator("#loss-problem").text_content()
        assert it.page.locator("#problem").text_content() == ""
        assert it.page.locator("#decided").text_content().startswith("No decision")
        assert it.page.locator("#verdict").text_content() == ""
        assert it.page.locator("#risks li").count() == 0


def test_two_decisions_of_one_name_and_none_at_all_are_told(page: tuple[BayesClassifier, Path]) -> None:
    with opened(page[1]) as it:
        it.page.get_by_label("name of a decision").first.fill("yes")
        assert "two decisions are named yes" in it.page.locator("#loss-problem").text_content()
        for _ in range(2):
            it.page.get_by_role("button", name="Remove").first.click()
        assert "add at least one decision" in it.page.locator("#loss-problem").text_content()
        it.check_quiet()


def test_a_link_brings_back_values_losses_and_the_pinned_row(page: tuple[BayesClassifier, Path]) -> None:
    with opened(page[1]) as it:
        it.enter("outlook", "overcast")
        it.page.get_by_role("button", name="Pin this row").click()
        it.enter("outlook", "rain")
        it.enter("wind", "(missing)")
        enter_cost(it, "no", "yes", "7.5")
        it.page.get_by_label("cost of rejecting (leaving the row undecided)").fill("0.2")
        it.page.get_by_role("button", name="Copy link").click()
        before = (it.posterior(), risks(it), it.page.locator("#compared").text_content())
        tab(it, "Model")
        assert it.page.url.endswith("#model")
        tab(it, "Try it")
        link = it.page.url
    with opened(link) as it:
        assert (it.posterior(), risks(it), it.page.locator("#compared").text_content()) == before
        assert it.page.get_by_label("outlook", exact=True).locator("option:checked").text_content() == "rain"
        assert it.page.get_by_label("cost of no if yes").input_value() == "7.5"
        it.check_quiet()


@pytest.mark.parametrize("fragment", ["try/@@", "try/e30", "try/W10", "nowhere", "try/eyJyb3ciOls", "model/x"])
def test_a_link_that_was_cut_off_does_no_harm(page: tuple[BayesClassifier, Path], fragment: str) -> None:
    with opened(f"{page[1].as_uri()}#{fragment}") as it:
        assert len(it.posterior()) == 2
        assert bool(it.page.locator("#page-problem").text_content()) == fragment.startswith("try/")
        it.check_quiet()
