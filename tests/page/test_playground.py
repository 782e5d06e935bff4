"""The playground in a real browser: dragged, typed and keyed, it shows what deciban says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from deciban import bayes, bayes_error
from tests.page.playground import MODULES, playground_page
from tests.support.browser import AXE, Opened, needs_axe, opened

SCENES = ("line", "plane", "weather", "documents", "linear", "growth", "theorem", "balance")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return playground_page(tmp_path_factory.mktemp("playground") / "playground.html")


@pytest.fixture(scope="module")
def browser_page(path: Path) -> Iterator[Opened]:
    with opened(path) as found:
        yield found


@pytest.fixture
def played(browser_page: Opened) -> Iterator[Opened]:
    """The page as it is at first."""
    browser_page.page.reload()
    yield browser_page
    browser_page.check_quiet()


def scene(played: Opened, name: str) -> Any:
    """A scene, shown."""
    played.page.locator(f"#scene-tab-{name}").click()
    return played.page.locator(f"[data-scene={name}]")


def told(node: Any, name: str) -> Any:
    """What a scene tells in an attribute."""
    return json.loads(node.get_attribute(f"data-{name}"))


def drag(played: Opened, node: Any, right: float, down: float = 0.0) -> None:
    node.scroll_into_view_if_needed()
    box = node.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    mouse = played.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + right / 2, y + down / 2)
    mouse.move(x + right, y + down)
    mouse.up()


def settled(played: Opened) -> None:
    """Waits until what is drawn once per frame has been drawn."""
    played.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def check_line(played: Opened, line: Any) -> Any:
    """The numbers of the scene are those of `bayes_error`; returns the state."""
    state = played.page.evaluate("played.state().line")
    distributions = [norm(mean, spread) for mean, spread, _ in state["classes"]]
    rule = state["hand"] or {}
    expected = bayes_error(
        distributions,
        [prior for *_, prior in state["classes"]],
        state["loss"],
        boundaries=rule.get("edges"),
        decisions=rule.get("decisions"),
    )
    assert told(line, "boundaries") == pytest.approx(expected.boundaries, abs=1e-6)
    np.testing.assert_allclose(told(line, "areas"), expected.areas, rtol=0, atol=1e-9)
    assert [told(line, name) for name in ("risk", "least", "avoidable")] == pytest.approx(
        [expected.risk, expected.bayes_risk, expected.avoidable], abs=1e-9
    )
    return state


def test_modules_ask_for_nothing_and_run_no_text() -> None:
    for module in MODULES:
        assert not re.search(r"\beval\b|\bfetch\(|setAttribute\(\"style\"|innerHTML|XMLHttpRequest", module.read_text())


@pytest.mark.browser
def test_letters_are_what_one_sees_first(played: Opened) -> None:
    line = scene(played, "line")
    check_line(played, line)
    text = line.inner_text()
    numbers = ("21.7578", "a classified as b: 0.034175", "b classified as a: 0.052203", "0.086378")
    assert all(number in text for number in numbers)


@pytest.mark.browser
def test_a_dragged_mean_moves_the_boundary_to_where_bayes_error_says(played: Opened) -> None:
    line = scene(played, "line")
    before = check_line(played, line)
    drag(played, line.get_by_role("slider", name="Mean of b"), 60)
    after = check_line(played, line)
    assert after["classes"][1][0] > before["classes"][1][0] + 1
    assert line.get_by_label("mean", exact=True).nth(1).input_value() == f"{after['classes'][1][0]:g}"
    drag(played, line.get_by_role("slider", name="Standard deviation of a"), 40)
    assert check_line(played, line)["classes"][0][1] > 4.5


@pytest.mark.browser
def test_keys_do_what_dragging_does(played: Opened) -> None:
    line = scene(played, "line")
    handle = line.get_by_role("slider", name="Mean of b")
    handle.focus()
    for key in ("ArrowRight", "Shift+ArrowRight", "PageUp", "ArrowLeft"):
        played.page.keyboard.press(key)
    assert check_line(played, line)["classes"][1][0] == 27
    assert handle.get_attribute("aria-valuetext") == "mean 27"
    played.page.keyboard.press("Home")
    assert check_line(played, line)["classes"][1][0] == 0
    assert handle.evaluate("node => node === document.activeElement")


@pytest.mark.browser
def test_a_finger_drags_too(played: Opened) -> None:
    line = scene(played, "line")
    session = played.page.context.new_cdp_session(played.page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    box = line.get_by_role("slider", name="Mean of a").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for kind, at in (("touchStart", x), ("touchMove", x - 30), ("touchMove", x - 60)):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": at, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    assert check_line(played, line)["classes"][0][0] < 14


@pytest.mark.browser
def test_a_boundary_moved_by_hand_shows_what_is_avoidable(played: Opened) -> None:
    line = scene(played, "line")
    handle = line.get_by_role("slider", name="Boundary")
    drag(played, handle, -50)
    state = check_line(played, line)
    assert told(line, "avoidable") > 0.001
    assert f"avoidable: {told(line, 'avoidable'):.6f}" in line.inner_text()
    handle.focus()
    played.page.keyboard.press("ArrowRight")
    assert check_line(played, line)["hand"]["edges"][0] == pytest.approx(state["hand"]["edges"][0] + 0.01)
    line.get_by_role("button", name="Reset the boundary").click()
    assert check_line(played, line)["hand"] is None


@pytest.mark.browser
def test_typed_priors_losses_and_a_third_class(played: Opened) -> None:
    line = scene(played, "line")
    line.get_by_label("prior", exact=True).first.fill("0.5")
    assert [prior for *_, prior in check_line(played, line)["classes"]] == [0.5, 0.5]
    assert told(line, "boundary") == pytest.approx(20)
    line.get_by_label("Cost of deciding a if the true class is b").fill("10")
    check_line(played, line)
    line.get_by_role("button", name="Add class c").click()
    state = check_line(played, line)
    assert len(state["classes"]) == 3
    line.get_by_label("Cost of deciding c if the true class is a").fill("3.5")
    check_line(played, line)
    line.get_by_label("mean", exact=True).first.fill("")
    assert check_line(played, line)["classes"] == state["classes"]
    for example in ("Unequal costs", "Different variances", "Three classes"):
        line.get_by_role("button", name=example).click()
        check_line(played, line)


@pytest.mark.browser
def test_a_movable_x_reads_off_densities_posteriors_and_costs(played: Opened) -> None:
    line = scene(played, "line")
    assert told(line, "posterior") == pytest.approx([0.75, 0.25])
    text = line.inner_text()
    assert all(number in text for number in ("Read off at x = 20", "0.04566", "0.750000", "0.250000", "above 0.3333"))
    reader = line.get_by_role("slider", name="x", exact=True)
    reader.focus()
    played.page.keyboard.press("PageUp")
    assert reader.get_attribute("aria-valuetext") == "x = 21"
    drag(played, reader, 100)
    state = played.page.evaluate("played.state().line")
    assert state["x"] > 24
    belief = bayes(0.75, [norm(mean, 4).pdf(state["x"]) for mean in (15, 25)], ("a", "b"))
    assert told(line, "posterior") == pytest.approx(list(belief.posterior.values()))
    line.locator(".picture svg").first.click(position={"x": 200, "y": 100})
    assert played.page.evaluate("played.state().line.x") < 10
    line.get_by_label("without priors").check()
    assert line.locator(".error-area").count() == 0
    check_line(played, line)


@pytest.mark.browser
def test_boundaries_off_the_axis_are_counted_and_not_drawn(played: Opened) -> None:
    line = scene(played, "line")
    line.get_by_role("button", name="Three classes").click()
    assert len(told(line, "best-boundaries")) == 4
    assert "13.7391, 24.9211, 2 outside 0 to 40" in line.inner_text()


@pytest.mark.browser
def test_scenes_are_opened_by_their_names_in_links(played: Opened) -> None:
    for name in SCENES:
        played.page.evaluate("name => played.open(name)", name)
        assert played.page.locator(f"[data-scene={name}]").is_visible()
    played.page.evaluate("played.open('line', 'equal-priors')")
    assert told(scene(played, "line"), "boundary") == pytest.approx(20)
    played.page.evaluate("played.open('posterior')")
    settled(played)
    heading = played.page.get_by_role("heading", name="Posterior at each x").bounding_box()
    assert -2 < heading["y"] < 300
    for call in ("played.open('nowhere')", "played.open('line', 'nothing')"):
        found = played.page.evaluate(f"() => {{ try {{ {call} }} catch (error) {{ return error.message; }} }}")
        assert re.search(r"no (scene|example).*use one of", found)


@pytest.mark.browser
def test_a_number_out_of_range_is_told_the_range(played: Opened) -> None:
    field = played.page.locator("[data-scene=line] input[type=number]").first
    low, high = field.get_attribute("min"), field.get_attribute("max")
    field.fill("1e9")
    told = field.locator("xpath=following-sibling::*[@role='status']")
    assert told.text_content() == f"from {low} to {high}"
    field.blur()
    assert told.text_content() == ""


def test_points_are_added_dragged_and_removed(played: Opened) -> None:
    plane = scene(played, "plane")
    settled(played)
    start = told(plane, "points")
    picture = plane.locator("[data-method=linear] svg")
    picture.click(position={"x": 20, "y": 20})
    settled(played)
    assert told(plane, "points") == start + 1
    added = played.page.evaluate("played.state().plane.points.at(-1)")
    drag(played, plane.locator("[data-method=naive] .point").last, 60, 60)
    settled(played)
    moved = played.page.evaluate("played.state().plane.points.at(-1)")
    assert moved[0] > added[0] + 1
    assert moved[1] < added[1] - 1
    plane.get_by_label("remove", exact=True).check()
    plane.locator("[data-method=quadratic] .point").last.click()
    settled(played)
    assert told(plane, "points") == start


@pytest.mark.browser
def test_keys_move_choose_and_remove_points(played: Opened) -> None:
    plane = scene(played, "plane")
    plane.get_by_role("button", name="Add a point in the middle").click()
    count = len(played.page.evaluate("played.state().plane.points"))
    for key in ("ArrowRight", "ArrowUp", "Shift+ArrowUp"):
        played.page.keyboard.press(key)
    assert played.page.evaluate("played.state().plane.points.at(-1)") == [5.1, 5.6, 0]
    played.page.keyboard.press("PageUp")
    played.page.keyboard.press("Delete")
    left = played.page.evaluate("played.state().plane.points")
    assert len(left) == count - 1
    assert left[-1] == [5.1, 5.6, 0]
    plane.get_by_role("button", name="Remove all points").click()
    settled(played)
    assert told(plane, "points") == 0


@pytest.mark.browser
def test_the_quadratic_rule_is_the_best_under_its_own_gaussians(played: Opened) -> None:
    plane = scene(played, "plane")
    plane.get_by_role("button", name="Correlated columns").click()
    settled(played)
    under = {name: told(plane.locator(f"[data-method={name}]"), "under") for name in ("linear", "quadratic", "naive")}
    assert under["quadratic"] == told(plane, "error")
    assert under["linear"] > under["quadratic"]
    assert under["naive"] > under["linear"]  # what columns say together is lost on it


@pytest.mark.browser
def test_xor_is_solved_by_joint_models_only(played: Opened) -> None:
    played.page.evaluate("played.open('xor')")
    plane = played.page.locator("[data-scene=plane]")
    settled(played)
    methods = ("linear", "naive", "naive-table", "quadratic", "joint-table")
    assert [told(plane.locator(f"[data-method={name}]"), "mistakes") for name in methods] == [20, 20, 20, 0, 0]
    note = plane.locator(".note")
    assert "naive models are left with the prior" in note.inner_text()
    plane.get_by_role("button", name="Equal covariances").click()
    settled(played)
    assert not note.is_visible()


@pytest.mark.browser
def test_the_weather_table_and_the_word_never_seen(played: Opened) -> None:
    weather = scene(played, "weather")
    text = weather.inner_text()
    assert all(number in text for number in ("0.00529", "0.02057", "0.2046", "0.7954", "2/9", "3/5"))
    weather.get_by_label("smoothing α").last.fill("1")
    assert told(weather, "word-ham") == 1 / 102
    assert told(weather, "word-spam") == 31 / 82
    assert "(0 + 1)/(100 + 1·2)" in weather.inner_text()
    weather.get_by_role("slider", name="smoothing α").fill("0")
    weather.get_by_label("outlook").select_option("overcast")
    assert told(weather, "posterior") == [0, 1]
    weather.get_by_role("button", name="Choose day 14").click()
    assert weather.get_by_label("outlook").input_value() == "rain"


@pytest.mark.browser
def test_documents_are_drawn_and_edited(played: Opened) -> None:
    documents = scene(played, "documents")
    state = "played.state().documents.document"
    assert told(documents, "evidence")[0].count(0) == 5  # an absent word is no evidence for the multinomial
    assert 0 not in told(documents, "evidence")[1]
    documents.get_by_role("button", name="Empty the document").click()
    assert played.page.evaluate(state) == []
    assert told(documents, "posterior")[0] == pytest.approx(0.5)  # the prior
    assert told(documents, "posterior")[1] != pytest.approx(0.5)
    documents.get_by_role("button", name="Add free").click()
    once = told(documents, "evidence")
    assert documents.get_by_role("button", name="Add free").evaluate("node => node === document.activeElement")
    played.page.keyboard.press("Enter")
    twice = told(documents, "evidence")
    assert twice[0][3] == pytest.approx(2 * once[0][3])
    assert twice[1] == once[1]
    documents.get_by_label("ham", exact=True).check()
    documents.get_by_role("button", name="Roll: add a word").click()
    documents.get_by_role("button", name="Roll ten times").click()
    assert len(played.page.evaluate(state)) == 13
    assert documents.locator(".side.rolled").count() == 1
    documents.get_by_role("button", name="Toss all coins").click()
    tossed = played.page.evaluate(state)
    assert tossed == sorted(set(tossed))
    assert documents.locator(".toss").count() == 7
    assert documents.locator(".toss.present").count() == len(tossed)
    for _ in range(7):
        documents.get_by_role("button", name="Roll ten times").click()
    assert len(played.page.evaluate(state)) == 60
    documents.get_by_role("button", name="China or not").click()
    assert "68.98%" in documents.inner_text()
    assert "19.11%" in documents.inner_text()


@pytest.mark.browser
def test_parameters_grow_with_the_columns(played: Opened) -> None:
    growth = scene(played, "growth")
    text = growth.inner_text()
    assert all(number in text for number in ("1,073,741,824", "1,073,741,823", "2,147,483,647", "30", "61"))
    growth.get_by_role("slider", name="columns", exact=True).focus()
    played.page.keyboard.press("ArrowLeft")
    assert told(growth, "parameters")["joint"]["own"] == str(2**29 - 1)
    growth.get_by_label("values each (v)").last.fill("3")
    assert told(growth, "parameters")["naive"]["own"] == str(2 * 29)
    growth.get_by_label("rows per class").fill("1000000")
    assert "12 columns in a joint table" in growth.inner_text()  # 3^12 - 1 = 531,440
    growth.get_by_role("button", name="4 columns of 3 values").click()
    assert "most or all of the combinations" in growth.inner_text()


@pytest.mark.browser
def test_the_posterior_of_naive_bayes_is_the_logistic_function_of_a_line(played: Opened) -> None:
    linear = scene(played, "linear")
    for example in ("Few rows", "Correlated columns", "Independent columns"):
        linear.get_by_role("button", name=example).click()
        settled(played)
        assert told(linear, "posterior") == pytest.approx(told(linear, "logistic"), rel=1e-9)
        assert f"{told(linear, 'posterior'):.6f}: the posterior of naive Bayes" in linear.inner_text()
    before = told(linear, "naive")
    linear.get_by_label("x₁").last.fill("3")
    settled(played)
    assert told(linear, "naive") == before
    assert told(linear, "posterior") < 0.3
    linear.locator(".panel svg").click(position={"x": 300, "y": 40})
    settled(played)
    assert played.page.evaluate("played.state().linear.y") > 8
    drag(played, linear.locator(".handle"), -40, 80)
    settled(played)
    assert 5 < played.page.evaluate("played.state().linear.y") < 9
    linear.get_by_role("button", name="Draw new points").click()
    settled(played)
    assert told(linear, "naive") != before


@pytest.mark.browser
def test_the_theorem_says_what_deciban_bayes_says(played: Opened) -> None:
    theorem = scene(played, "theorem")
    belief = bayes(0.05, (0.9, 0.08), ("ill", "well"))
    assert " ".join(belief.frequencies().split("\n")) in theorem.inner_text()
    assert "0.371901" in theorem.inner_text()
    assert told(theorem, "people") == [[45, 5], [76, 874]]
    theorem.get_by_role("button", name="Add a positive test").click()
    assert told(theorem, "posterior") == pytest.approx(belief.update((0.9, 0.08))["ill"], rel=1e-14)
    theorem.get_by_label("positive if well").last.fill("0.1")
    expected = bayes(0.05, (0.9, 0.001), ("ill", "well")).update((0.9, 0.001))
    assert told(theorem, "posterior") == pytest.approx(expected["ill"], rel=1e-14)
    assert " ".join(expected.frequencies().split("\n")) in theorem.inner_text()
    for label in ("positive if ill", "positive if well"):
        theorem.get_by_label(label).last.fill("0")
    assert "impossible" in theorem.inner_text()


@pytest.mark.browser
def test_pieces_are_put_on_the_balance(played: Opened) -> None:
    balance = scene(played, "balance")
    assert told(balance, "probability") == pytest.approx(45 / 121)
    resting = balance.locator(".piece.tray")
    resting.focus()
    played.page.keyboard.press("ArrowRight")
    assert told(balance, "probability") == pytest.approx(bayes(0.05, (0.9, 0.08)).update((0.9, 0.08))["A"])
    assert balance.locator(".piece.tray").count() == 0
    played.page.wait_for_timeout(500)
    drag(played, balance.locator(".piece.against"), 0, 260)
    assert balance.locator(".piece.tray").count() == 1
    balance.get_by_role("button", name="Tennis").click()
    assert told(balance, "probability") == pytest.approx(0.2045826513911)
    balance.get_by_label("P(evidence | against)").fill("0.09")
    balance.get_by_role("button", name="Add to the balance").click()
    assert told(balance, "pieces") == 6


@pytest.mark.browser
def test_a_state_is_told_and_restored(played: Opened) -> None:
    line = scene(played, "line")
    drag(played, line.get_by_role("slider", name="Boundary"), -30)
    scene(played, "theorem").get_by_role("button", name="Positive twice").click()
    scene(played, "balance").get_by_role("button", name="Plain weights").click()
    state = played.page.evaluate("played.state()")
    played.page.reload()
    played.page.evaluate("state => played.restore(JSON.parse(JSON.stringify(state)))", state)
    assert played.page.evaluate("played.state()") == state
    assert state["scene"] == "balance"
    check_line(played, line)


@pytest.mark.browser
def test_links_that_make_no_sense_are_left(played: Opened) -> None:
    assert set(played.page.evaluate("played.state()")) == {"scene", "line"}  # scenes not yet shown have no state
    for name in SCENES:
        scene(played, name)
    before = played.page.evaluate("played.state()")
    strange: list[Any] = [
        None,
        "text",
        {"line": {"classes": [[1, 2]]}, "plane": {"points": "many"}, "scene": "nowhere"},
        {"line": {"classes": "abc"}, "balance": {"pieces": 5}, "documents": {"corpus": "toString"}},
    ]
    for state in strange:
        played.page.evaluate("state => played.restore(state)", state)
    assert played.page.evaluate("played.state()") == before
    wild = {
        "line": {
            "classes": [[1e99, -1, "x"], [None, 0, 9]],
            "loss": [["a"]],
            "hand": {"edges": [3, 1], "decisions": [0]},
        },
        "plane": {"points": [[1, 2, 7], [99, -9, 1], "x"]},
        "weather": {"chosen": {"outlook": "<b>"}, "alpha": -3},
        "linear": {"count": 1e9, "correlation": 7, "seed": "x", "x": None},
        "growth": {"columns": 1e9, "values": "x", "rows": -1},
        "documents": {"corpus": "Emails", "document": [1, "x", 99, -1, None], "writer": "x"},
        "theorem": {"prior": 7, "results": list(range(99))},
        "balance": {"pieces": [["<img src=x>", 1e9, "nowhere"], 3]},
    }
    played.page.evaluate("state => played.restore(state)", wild)
    for name in SCENES:
        scene(played, name)
    settled(played)
    assert played.page.locator("img").count() == 0
    check_line(played, scene(played, "line"))


@pytest.mark.browser
def test_changes_are_told_to_the_page(played: Opened) -> None:
    played.page.evaluate(
        "() => { window.heard = 0;"
        " document.querySelector('main').addEventListener('playground-change', () => { window.heard += 1; }); }"
    )
    line = scene(played, "line")
    line.get_by_label("mean", exact=True).first.fill("14")
    assert played.page.evaluate("window.heard") == 2


@pytest.mark.browser
def test_scenes_are_chosen_by_keys(played: Opened) -> None:
    played.page.locator("#scene-tab-line").focus()
    played.page.keyboard.press("ArrowRight")
    assert played.page.evaluate("played.state().scene") == "plane"
    assert played.page.locator("[data-scene=plane]").is_visible()
    assert not played.page.locator("[data-scene=line]").is_visible()


def violations(found: Opened) -> list[Any]:
    found.page.evaluate(AXE.read_text())
    run = found.page.evaluate(
        "async () => (await axe.run(document)).violations.map(v => [v.id, v.nodes.map(n => n.html)])"
    )
    return list(run)


@pytest.mark.browser
@needs_axe
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_everyone_can_use_it(played: Opened, width: int, dark: bool) -> None:
    played.page.set_viewport_size({"width": width, "height": 900})
    played.page.emulate_media(color_scheme="dark" if dark else "light")
    for name in SCENES:
        scene(played, name).locator("details").evaluate_all("nodes => nodes.forEach(node => { node.open = true; })")
        settled(played)
        assert violations(played) == [], name
        assert played.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    played.page.set_viewport_size({"width": 1280, "height": 900})
    played.page.emulate_media(color_scheme="light")


@pytest.mark.browser
def test_the_beam_jumps_where_people_asked_for_less_motion(played: Opened) -> None:
    played.page.emulate_media(reduced_motion="reduce")
    balance = scene(played, "balance")
    settled(played)
    beam = balance.locator(".beam")
    before = beam.get_attribute("d")
    balance.locator(".piece.tray").focus()
    played.page.keyboard.press("ArrowRight")
    after = beam.get_attribute("d")
    played.page.wait_for_timeout(500)
    assert before != after == beam.get_attribute("d")
    played.page.emulate_media(reduced_motion="no-preference")
