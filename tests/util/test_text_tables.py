"""Tables and numbers as people read them."""

import pytest

from deciban.util.text_tables import aligned, amount, counted, digits, shortened, width_of


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
    assert width_of(text) == places


def test_every_column_of_a_table_begins_at_one_place_of_the_terminal() -> None:
    table = aligned([("town", "rows"), ("東京都", "1"), ("Ulm", "12"), ("Cafe\u0301", "345")], right=[1])
    assert {width_of(line) for line in table.splitlines()} == {12}
    assert table.splitlines()[1] == "東京都     1"


def test_a_short_text_is_whole_and_a_long_one_fits() -> None:
    assert shortened("Ulm", 3) == "Ulm"
    assert shortened("東京都庁", 6) == "東京…"
    assert width_of(shortened("x" * 50, 32)) == 32


def test_one_is_singular_and_large_numbers_have_commas() -> None:
    assert counted(1, "class") == "1 class"
    assert counted(1.0, "row") == "1 row"
    assert counted(12_345, "row") == "12,345 rows"
    assert amount(1_234_567.0) == "1,234,567"
    assert amount(0.30000000000000004) == "0.3"
    assert digits(0.12345678901) == "0.123457"
