"""Counts that add: frozen values, one kind a file, with nothing of smoothing, priors or floors in them."""

from deciban.statistics.base import Several, Statistic
from deciban.statistics.cells import Cells
from deciban.statistics.levels import Levels
from deciban.statistics.moments import Moments
from deciban.statistics.scatter import Scatter
from deciban.statistics.totals import Totals
from deciban.statistics.tuples import Tuples
from deciban.statistics.words import Vocabulary, Words

__all__ = ["Cells", "Levels", "Moments", "Scatter", "Several", "Statistic", "Totals", "Tuples", "Vocabulary", "Words"]
