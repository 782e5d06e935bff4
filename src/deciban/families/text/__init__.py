"""Texts as the words in them."""

from deciban.families.text.family import Text

__all__ = ["Text"]
