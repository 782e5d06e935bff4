"""Statistics: frozen counts that add up over rows, one type per file, without smoothing, priors or floors."""

from deciban.statistics.base import Combined, Statistic
from deciban.statistics.bins import Bins
from deciban.statistics.levels import Levels
from deciban.statistics.moments import Moments
from deciban.statistics.scatter import Scatter
from deciban.statistics.totals import Totals
from deciban.statistics.tuples import Tuples
from deciban.statistics.vocabulary import Vocabulary
from deciban.statistics.words import Words

# The statistics that a model file can contain.
STATISTICS = (Bins, Combined, Levels, Moments, Scatter, Totals, Tuples, Words)

__all__ = [
    "STATISTICS",
    "Bins",
    "Combined",
    "Levels",
    "Moments",
    "Scatter",
    "Statistic",
    "Totals",
    "Tuples",
    "Vocabulary",
    "Words",
]
