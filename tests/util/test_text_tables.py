"""Tables and numbers as people read them."""

import pytest

from deciban.util.text_tables import align_table, count_noun, format_amount, format_digits, shorten, text_width


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
