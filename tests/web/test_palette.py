"""The colors of pages and pictures: told apart from each other and from their paper."""

import pytest

from deciban.web.palette import AGAINST_COLOR, CLASS_COLORS, FOR_COLOR


def luminance(color: str) -> float:
    """The relative luminance of a color (WCAG 2)."""
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_for_and_against_are_no_colors_of_classes() -> None:
    assert not {FOR_COLOR, AGAINST_COLOR} & set(CLASS_COLORS)


@pytest.mark.parametrize("color", [FOR_COLOR, AGAINST_COLOR])
@pytest.mark.parametrize("paper", ["#ffffff", "#f5f5f3", "#16181a", "#22262a"])
def test_they_stand_out_from_light_and_dark_paper(color: str, paper: str) -> None:
    assert contrast(color, paper) >= 3.0
