"""One small random table for each family, in the form people have it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse, stats

from deciban import (
    Bernoulli,
    Binned,
    Categorical,
    Complement,
    Gamma,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Multinomial,
    PerClass,
    Poisson,
    Pooled,
    Shrunk,
    Text,
)
from deciban.families.binned import BinnedLikelihood
from deciban.model.counts import Counts
from deciban.model.model import Model, estimate
from deciban.testing import Refit, Rng, Trial

# Scores, which are not distributions: no samples can be drawn.
SCORES = ("complement", "text-complement", "text-lift")


@dataclass(frozen=True)
class Case:
    """A named trial of a family: how to draw cells for it, and whether its counts are exact to the bit.

    Counts are, but for amounts of words that are roots or logarithms: these are added up in doubles.

    oracle: SciPy's distribution of the cells of one class and column, if it has one. refit: the model that a row is
    scored by when it is left out, if a part of the whole model is held fixed there.
    """

    name: str
    spec: Any
    draw: Callable[[Rng, int], Any]
    exact: bool
    oracle: Callable[[np.ndarray], Any] | None = None
    refit: Refit | None = None

    @property
    def trial(self) -> Trial:
        """What the laws of `deciban.testing` are tried on."""
        return Trial(self.spec, self.draw, self.exact, self.oracle, self.name not in SCORES, self.refit)

    @property
    def family(self) -> Any:
        return self.trial.family


def _holes(rng: Rng, x: np.ndarray) -> np.ndarray:
    """Some cells missing."""
    x = x.astype(np.float64)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


def draw_words(rng: Rng, n: int) -> pa.Table:
    words = np.array(["red", "green", "blue", "gray", None], dtype=object)
    return pa.table({name: pa.array(words[rng.integers(0, 5, n)], pa.string()) for name in "abc"})


def _texts(rng: Rng, n: int) -> pa.Table:
    """Short texts in several languages, some empty, some missing, with words that are there only once."""
    words = np.array(["red", "Grün", "ΟΔΟΣ", "İzmir", "ein_Wort", "x", "слово", "extraordinarily-long-words", "日本語"])

    def text() -> str | None:
        some = [
            *words[rng.integers(0, words.size, rng.integers(0, 7))],
            *[f"w{rng.integers(0, 200)}"][: rng.integers(0, 2)],
        ]
        return None if rng.random() < 0.1 else " ".join(some)

    return pa.table({name: pa.array([text() for _ in range(n)], pa.string()) for name in "abc"})


def _phrases(rng: Rng, n: int) -> pa.Table:
    """Texts of one to three words, in several scripts, some of them missing."""
    first, more = np.array(["red", "Grün", "日本語", "𝒳", ""]), np.array(["", " a", " ein Wort", "-x"])
    found = np.char.add(first[rng.integers(0, 5, (3, n))], more[rng.integers(0, 4, (3, n))])
    return pa.table(
        {name: pa.array(x, pa.string(), mask=rng.random(n) < 0.1) for name, x in zip("abc", found, strict=True)}
    )


def draw_moments(rng: Rng, n: int) -> pa.Table:
    """Timestamps before and after 1970, some of them missing."""
    moments = rng.integers(-(10**15), 2 * 10**15, (3, n))
    return pa.table(
        {
            name: pa.array(x, pa.timestamp("us"), mask=rng.random(n) < 0.1)
            for name, x in zip("abc", moments, strict=True)
        }
    )


def draw_positive(rng: Rng, n: int) -> np.ndarray:
    return _holes(rng, rng.gamma(2.0, 3.0, (n, 3)) + 1e-6)


def draw_counts(rng: Rng, n: int) -> np.ndarray:
    return rng.poisson([0.5, 2.0, 5.0, 1.0], (n, 4)).astype(np.float64)


def draw_normal(rng: Rng, n: int) -> np.ndarray:
    return _holes(rng, rng.normal([0.0, 5.0, -3.0], [1.0, 10.0, 0.1], (n, 3)))


def with_edges_of(whole: Model, rest: Counts) -> Model:
    """Binned densities of the rest in the bins of the whole: edges are held fixed."""
    bins, cells = whole.likelihoods[0].bins, rest.statistics[0].parts[1].columns
    columns = [column.coarsen(wide.exponent) for column, wide in zip(cells, bins, strict=True)]
    binned = BinnedLikelihood.of(columns, np.ones(len(columns), dtype=bool), 1.0, "ignore")
    return estimate(rest, np.zeros(rest.classes.size), (binned,))


def _columns(family: Any) -> dict[Any, Any]:
    return dict.fromkeys("abc", family)


CASES = [
    Case("categorical", _columns(Categorical()), draw_words, True),
    Case("categorical-numbers", Categorical(), lambda rng, n: rng.integers(-3, 4, (n, 3)), True),
    Case("categorical-halves", Categorical(), lambda rng, n: _holes(rng, rng.integers(-3, 4, (n, 3)) / 2), True),
    Case("categorical-proportional", _columns(Categorical(alpha=5.0, proportional=True)), draw_words, True),
    Case(
        "categorical-proportional-smooth",
        _columns(Categorical(alpha=0.3, proportional=True, unseen="smooth")),
        draw_words,
        True,
    ),
    Case("categorical-month", _columns(Categorical(part="month")), draw_moments, True),
    Case("categorical-weekday", _columns(Categorical(alpha=0.5, part="weekday", unseen="smooth")), draw_moments, True),
    Case("categorical-hour", _columns(Categorical(part="hour", proportional=True)), draw_moments, True),
    Case("categorical-first-word", _columns(Categorical(part="first word")), _phrases, True),
    Case("categorical-beginning", _columns(Categorical(part="first 2 characters")), _phrases, True),
    Case("categorical-smooth", _columns(Categorical(alpha=0.3, unseen="smooth")), draw_words, True),
    Case(
        "bernoulli", Bernoulli(), lambda rng, n: _holes(rng, rng.integers(0, 2, (n, 3))), True,
        lambda x: stats.bernoulli((x.sum() + 1.0) / (x.size + 2.0)),
    ),
    Case("bernoulli-sparse", Bernoulli(), lambda rng, n: sparse.csr_array(rng.integers(0, 2, (n, 3))), True),
    Case("multinomial", Multinomial(), draw_counts, True),
    Case("multinomial-sparse", Multinomial(), lambda rng, n: sparse.csr_array(draw_counts(rng, n)), True),
    Case("complement", Complement(), draw_counts, True),
    Case("poisson", Poisson(alpha=1.0), draw_counts, True),
    Case("poisson-plain", Poisson(), draw_counts, True, lambda x: stats.poisson(x.mean())),
    Case("gaussian", Gaussian(), draw_normal, True, lambda x: stats.norm(x.mean(), x.std())),
    Case("gaussian-float32", Gaussian(), lambda rng, n: draw_normal(rng, n).astype(np.float32), True),
    Case("gaussian-pooled", Gaussian(variance=Pooled()), draw_normal, True),
    Case("gaussian-shrunk", Gaussian(variance=Shrunk(0.3)), draw_normal, True),
    Case("log-normal", LogNormal(), draw_positive, True,
         lambda x: stats.lognorm(np.log(x).std(), scale=stats.gmean(x))),
    Case("gamma", Gamma(), draw_positive, True, lambda x: stats.gamma(*stats.gamma.fit(x, floc=0))),
    Case("binned", Binned(), draw_normal, True, refit=with_edges_of),
    Case("joint-gaussian", JointGaussian(PerClass(shrinkage=0.1)), draw_normal, True),
    Case("joint-gaussian-pooled", JointGaussian(Pooled()), draw_normal, True),
    Case("joint-table", {("a", "b", "c"): JointTable()}, draw_words, True),
    Case("text", _columns(Text()), _texts, True),
    Case("text-bernoulli", _columns(Text("bernoulli", alpha=0.5, min_count=2.0)), _texts, True),
    Case("text-complement", _columns(Text("complement", ngram_range=(1, 2), stop_words=("red",))), _texts, True),
    Case("text-characters", _columns(Text(analyzer="char_wb", ngram_range=(2, 3), tempering=0.5)), _texts, True),
    Case("text-lift", _columns(Text("lift", term_counts="root", normalize=True, linear=0.4)), _texts, False),
    Case(
        "text-log",
        _columns(Text(term_counts="log", normalize=True, strip_accents=True, min_count=1.5)),
        _texts,
        False,
    ),
]  # fmt: skip
