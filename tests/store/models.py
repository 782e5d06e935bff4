"""Models that tests of the model file share."""

import itertools
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import deciban as dc
from deciban.datasets import weather


def small() -> dc.BayesClassifier:
    return dc.BayesClassifier(tune=None).fit(weather().select(["outlook", "wind", "play"]), "play")


def every_family(tune: Any = None, n: int = 40) -> tuple[dc.BayesClassifier, pa.Table]:
    """A model with every kind of statistic, and its rows."""
    rng = np.random.default_rng(0)
    kind = np.arange(n) % 2
    spec = {
        "gauss": dc.Gaussian(),
        "gamma": dc.Gamma(),
        "log": dc.LogNormal(),
        "bins": dc.Binned(),
        "count": dc.Poisson(1.0),
        "flag": dc.Bernoulli(),
        "text": dc.Categorical(),
        "day": dc.Categorical(),
        ("u", "v"): dc.JointGaussian(),
        ("p", "q"): dc.JointTable(cuts=(None, (0.0, 1.0))),
        ("m", "n"): dc.Multinomial(),
    }
    rows = {
        "p": np.array(["s", "t"])[rng.integers(0, 2, n)],
        **{name: rng.normal(kind, 1.0) for name in ("gauss", "bins", "u", "v", "q")},
        **{name: rng.gamma(2.0, 1.0 + kind) for name in ("gamma", "log")},
        **{name: rng.poisson(2.0 + kind) for name in ("count", "m", "n")},
        "flag": rng.random(n) < 0.3 + 0.4 * kind,
        "text": np.array(["x", "y", "z"])[rng.integers(0, 3, n)],
        "day": np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")[rng.integers(0, 2, n)],
    }
    X = pa.table(rows)
    return dc.BayesClassifier(spec, tune=tune, prior={"no": 0.5, "yes": 0.5}).fit(X, np.array(["no", "yes"])[kind]), X


def mixed(n: int = 60, seed: int = 0) -> pa.Table:
    """Columns of every kind, all of which tell something of the class, with cells missing."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)

    def holes(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    return pa.table(
        {
            "height": pa.array(holes((170.0 + 5.0 * kind + rng.normal(0.0, 4.0, n)).tolist())),
            "income": pa.array(holes(rng.lognormal(3.0 + 0.3 * kind, 0.5).tolist())),
            "visits": pa.array(holes(rng.poisson(2.0 + 3.0 * kind).tolist()), pa.int64()),
            "member": pa.array(holes((rng.random(n) < 0.2 + 0.3 * kind).tolist()), pa.bool_()),
            "town": pa.array(holes([["Köln", "Ulm", "Hof", "🏙 „x\"\n'y\0z"][k] for k in rng.integers(0, 4, n)])),
            "since": pa.array(holes([date(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 900, n)])),
            "seen": pa.array(holes([datetime(2024, 1, 1, int(h)) for h in rng.integers(0, 24, n)])),
            "nothing": pa.nulls(n),
            "void": pa.nulls(n, pa.float64()),
            "kind": pa.array([["a", "b", "c"][k] for k in kind]),
        }
    )


def features(table: pa.Table) -> pa.Table:
    return table.drop_columns(["kind"])


def parts_of(table: pa.Table, cuts: list[int]) -> list[pa.Table]:
    edges = [0, *cuts, table.num_rows]
    return [table.slice(a, b - a) for a, b in itertools.pairwise(edges)]


PLAIN = {
    "height": dc.Gaussian(),
    "income": dc.Gamma(outside="ignore"),
    "visits": dc.Poisson(1.0),
    "member": dc.Bernoulli(),
    "town": dc.Categorical(),
    "since": dc.Categorical(),
    "seen": dc.Binned(),
    "nothing": dc.Categorical(),
    "void": dc.LogNormal(),
}


def plain(**parameters: Any) -> dc.BayesClassifier:
    return dc.BayesClassifier(PLAIN, **{"tune": None, **parameters})
