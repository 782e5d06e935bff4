"""How the time of fit and predict_proba grows with rows, columns, classes and levels, each over three decades.

python bench/growth.py        (draws bench/growth.png; needs matplotlib)
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot

from compare import seconds
from deciban import dropin

RNG = np.random.default_rng(0)
SWEEPS = {
    "rows": ([1_000, 10_000, 100_000, 1_000_000], lambda size: (size, 20, 5, 8)),
    "columns": ([1, 10, 100, 1_000], lambda size: (20_000, size, 5, 8)),
    "classes": ([2, 20, 200, 2_000], lambda size: (50_000, 20, size, 8)),
    "levels": ([2, 20, 200, 2_000], lambda size: (50_000, 20, 5, size)),
}


def times(kind: str, rows: int, columns: int, classes: int, levels: int) -> tuple[float, float]:
    """Seconds of fit and of predict_proba."""
    labels = np.arange(rows) % classes
    if kind == "GaussianNB":
        table = RNG.normal(size=(rows, columns)) + labels[:, None]
    else:
        table = RNG.integers(0, levels, (rows, columns))
    clf = getattr(dropin, kind)().fit(table, labels)
    return seconds(lambda: clf.fit(table, labels), 3), seconds(lambda: clf.predict_proba(table), 3)


def main() -> None:
    figure, axes = pyplot.subplots(1, 4, figsize=(17, 4.2), sharey=True, layout="constrained")
    for axis, (what, (sizes, shape)) in zip(axes, SWEEPS.items(), strict=True):
        for kind, colour in (("GaussianNB", "tab:blue"), ("CategoricalNB", "tab:orange")):
            if what == "levels" and kind == "GaussianNB":
                continue
            found = np.array([times(kind, *shape(size)) for size in sizes])
            for column, (verb, style) in enumerate((("fit", "o-"), ("predict_proba", "s:"))):
                axis.loglog(sizes, found[:, column], style, color=colour, label=f"{kind} {verb}")
            print(what, kind, found.round(5).tolist(), flush=True)
            axis.loglog(sizes, found[-1].max() * np.array(sizes) / sizes[-1], "--", color=colour, alpha=0.3)
        axis.set_xlabel(what)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds")
    axes[0].legend()
    figure.savefig(Path(__file__).parent / "growth.png", dpi=80)


if __name__ == "__main__":
    main()
