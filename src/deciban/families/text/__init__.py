"""Family of texts."""

from deciban.families.text.family import Text

__all__ = ["Text"]
