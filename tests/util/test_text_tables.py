"""Tables and numbers as people read them."""

import io
import sys

import numpy as np
import pytest

from deciban import BayesClassifier
from deciban.datasets import weather
from deciban.util.text_tables import (
    align_table,
    count_noun,
    fit_table,
    format_amount,
    format_digits,
    shorten,
    shorten_middle,
    text_width,
)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("Ulm", 3),
        ("東京", 4),
        ("ｱｲ", 2),
        ("Ａ", 2),
        ("e\u0301", 1),
        ("é", 1),
        ("한국", 4),
        ("👍", 2),
        ("a\u200bb", 2),
        ("", 0),
    ],
)
def test_wide_characters_take_two_places_and_accents_none(text: str, places: int) -> None:
    assert text_width(text) == places


def test_every_column_of_a_table_begins_at_one_place_of_the_terminal() -> None:
    table = align_table([("town", "rows"), ("東京都", "1"), ("Ulm", "12"), ("Cafe\u0301", "345")], right=[1])
    assert {text_width(line) for line in table.splitlines()} == {12}
    assert table.splitlines()[1] == "東京都     1"


def test_a_short_text_is_whole_and_a_long_one_fits() -> None:
    assert shorten("Ulm", 3) == "Ulm"
    assert shorten("東京都庁", 6) == "東京…"
    assert text_width(shorten("x" * 50, 32)) == 32


def test_one_is_singular_and_large_numbers_have_commas() -> None:
    assert count_noun(1, "class") == "1 class"
    assert count_noun(1.0, "row") == "1 row"
    assert count_noun(12_345, "row") == "12,345 rows"
    assert format_amount(1_234_567.0) == "1,234,567"
    assert format_amount(0.30000000000000004) == "0.3"
    assert format_digits(0.12345678901) == "0.123457"


def test_wide_tables_are_wrapped_and_folded() -> None:
    draw = np.random.default_rng(0)
    for width in (40, 80, 100):
        lines = [
            ("column", *(f"a class with a long name {k}" for k in range(6)), "why"),
            *(
                (" ".join(["long", "name"] * k), *map(str, draw.integers(0, 9_999, 6)), "東京" * 30)
                for k in range(1, 9)
            ),
        ]
        text = fit_table(lines, width, right=range(1, 7))
        assert max(map(text_width, text.splitlines())) <= width
        found = "".join(text.split())
        assert all(number in text for line in lines[1:] for number in line[1:7])
        assert found.count("東") == 30 * 8
        assert text.count("column") == len(text.split("\n\n"))
    assert fit_table(lines, 1_000, right=range(1, 7)) == align_table(lines, range(1, 7))
    lines = [("date+precipitation+temp_max", "all numeric columns jointly"), ("wind", "kept")]
    names = fit_table(lines, 40, head=False)
    assert "\n".join(line[:20].rstrip() for line in names.splitlines()) == "date+precipitation+\n  temp_max\nwind"


def test_the_end_of_a_long_label_stays() -> None:
    assert shorten_middle("the name of a column = 2", 24) == "the name of a column = 2"
    for width in range(4, 24):
        assert text_width(shorten_middle("the name of a column = 2", width)) <= width
        assert shorten_middle("the name of a column = 2", width).endswith("2")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_results_are_wrapped_after_words_in_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    clf = BayesClassifier().fit(weather(), "play")
    loss = {("no", "yes"): 2, ("yes", "no"): 1}
    results = [
        clf.evaluate(weather(), "play", loss=loss), clf.leave_one_out(), clf.tuning_, clf.diagnose(), clf.schema_,
        clf.bayes_error(n_samples=100), clf.importance(), clf.explain(weather(), by="block"), clf.estimates(),
    ]  # fmt: skip
    plain = [str(result) for result in results]
    assert max(map(len, plain[0].splitlines())) > 80
    monkeypatch.setattr(sys, "stdout", Terminal())
    for width in (60, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        for result, text in zip(results, plain, strict=True):
            assert max(map(text_width, str(result).splitlines())) <= width
            if not isinstance(result, type(results[7])):
                assert sorted(str(result).split()) == sorted(text.split())
        metrics = str(results[0]).split("baseline")[0].splitlines()
        assert all(line.endswith(",") or line == metrics[-1] for line in metrics)  # no name without its value
