"""Drop-in classifiers against scikit-learn's and oneDAL's, and the default model against boosted trees.

    bench/.venv/bin/python bench/compare.py [scale] [--onedal] [--write]
    python bench/compare.py --growth     (draws bench/growth.png; needs matplotlib)

Medians of several runs, both sides warm, results checked to agree before anything is timed. `scale` shrinks the number
of rows (0.1: a tenth); --write puts the tables into bench/SPEED.md. oneDAL needs older packages, in the environment
bench/.onedal, which --onedal creates; it reads the same arrays from a file. Boosted trees need the environment of
bench/accuracy.py. What is not installed is skipped. --growth measures how the time of fit and predict_proba grows with
rows, columns, classes and levels, each over three decades.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import sklearn
from scipy import sparse
from sklearn import discriminant_analysis, naive_bayes

from deciban import BayesClassifier, Categorical, Gaussian, dropin
from reports import write_part

SEED = 0
HERE = Path(__file__).parent
ONEDAL = HERE / ".onedal"
ONEDAL_PACKAGES = ("daal4py==2024.7.0", "numpy<2", "scikit-learn<1.6", "packaging")
PEERS = ("deciban", "LightGBM", "CatBoost", "EBM")
MAX_SECONDS = 10.0  # a fit is not repeated after this time


def seconds(action: Callable[[], Any], runs: int) -> float:
    """The median time of `runs` runs after one that does not count."""
    action()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def tables(scale: float) -> Iterator[tuple[str, str, Any, Any, int]]:
    """(classifier, description, table, labels, runs of the peer) of each comparison."""
    rng = np.random.default_rng(SEED)
    rows = int(1_000_000 * scale)
    labels = rng.integers(0, 10, rows)
    numbers = rng.normal(size=(rows, 50)) + rng.normal(size=(10, 50))[labels]
    yield "GaussianNB", f"{rows:,} x 50, 10 classes", numbers, labels, 3
    few = slice(0, rows // 5)
    yield "LinearDiscriminantAnalysis", f"{rows // 5:,} x 50, 10 classes", numbers[few].copy(), labels[few], 3
    yield "QuadraticDiscriminantAnalysis", f"{rows // 5:,} x 50, 10 classes", numbers[few].copy(), labels[few], 3
    del numbers
    codes = (rng.integers(0, 8, (rows, 20)) + labels[:, None]) % 8
    yield "CategoricalNB", f"{rows:,} x 20, 8 levels, 10 classes", codes, labels, 3
    del codes
    rows = int(200_000 * scale)
    labels = rng.integers(0, 10, rows)
    flags = (rng.random((rows, 200)) < rng.random((10, 200))[labels]).astype(np.float64)
    yield "BernoulliNB", f"{rows:,} x 200 dense, 10 classes", flags, labels, 3
    del flags
    counts = rng.poisson(4.0 * rng.random((10, 200))[labels]).astype(np.float64)
    yield "MultinomialNB", f"{rows:,} x 200 dense, 10 classes", counts, labels, 3
    del counts
    indices = np.sort((rng.zipf(1.3, (rows, 100)) + 37 * labels[:, None]) % 50_000, axis=1).astype(np.int32).ravel()
    pointers = np.arange(0, rows * 100 + 1, 100, dtype=np.int32)
    words = sparse.csr_array((np.ones(rows * 100), indices, pointers), shape=(rows, 50_000))
    words.sum_duplicates()
    for name in ("MultinomialNB", "ComplementNB", "BernoulliNB"):
        yield name, f"{rows:,} x 50,000 CSR, 100 a row, 10 classes", words, labels, 3


def compare(name: str, table: Any, labels: Any, runs: int) -> Iterator[tuple[str, float, float]]:
    """(what, our seconds, their seconds), after a check that both give the same; what may name another classifier."""
    peer = getattr(naive_bayes, name, None) or getattr(discriminant_analysis, name)
    ours, theirs = getattr(dropin, name)().fit(table, labels), peer().fit(table, labels)
    sample = table[:2000]
    np.testing.assert_allclose(ours.predict_proba(sample), theirs.predict_proba(sample), rtol=1e-4, atol=1e-7)
    for what in ("fit", "predict", "predict_proba"):
        arguments = (table, labels) if what == "fit" else (table,)
        mine = seconds(lambda what=what, arguments=arguments: getattr(ours, what)(*arguments), 7)
        peer_seconds = seconds(lambda what=what, arguments=arguments: getattr(theirs, what)(*arguments), runs)
        yield what, mine, peer_seconds
        if name == "GaussianNB" and what == "fit":
            mine = seconds(lambda: BayesClassifier(tune=None).fit(table, labels), 7)
            yield "fit of BayesClassifier(tune=None)", mine, peer_seconds
    if not sparse.issparse(table):
        one = table[:1]
        each = [
            seconds(lambda clf=clf: [clf.predict_proba(one) for _ in range(200)], 9) / 200 for clf in (ours, theirs)
        ]
        yield "predict_proba of one row", each[0], each[1]


def one_mixed_row() -> tuple[float, float]:
    """Seconds for the posterior of one row of numbers and codes: ours, and scikit-learn's two classifiers together."""
    rng = np.random.default_rng(SEED)
    labels = rng.integers(0, 3, 20_000)
    table = np.column_stack([rng.normal(size=(20_000, 5)) + labels[:, None], rng.integers(0, 8, (20_000, 5))])
    spec = {column: Gaussian() if column < 5 else Categorical() for column in range(10)}
    ours = BayesClassifier(spec, tune=None).fit(table, labels)
    numbers = naive_bayes.GaussianNB().fit(table[:, :5], labels)
    codes = naive_bayes.CategoricalNB(fit_prior=False).fit(table[:, 5:], labels)

    def theirs(rows: np.ndarray) -> np.ndarray:
        joint = numbers.predict_log_proba(rows[:, :5]) + codes.predict_joint_log_proba(rows[:, 5:])
        odds = np.exp(joint - joint.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    np.testing.assert_allclose(ours.predict_proba(table[:2000]), theirs(table[:2000]), rtol=1e-4, atol=1e-7)
    one = table[:1]
    mine, peer = (
        seconds(lambda rows=rows: [rows(one) for _ in range(200)], 9) / 200 for rows in (ours.predict_proba, theirs)
    )
    return mine, peer


def read_pass(table: Any) -> float:
    """The time to read the same bytes once: no program that reads all cells is faster on one thread."""
    if sparse.issparse(table):
        return seconds(table.data.sum, 7) + seconds(table.indices.view(np.float32).sum, 7)
    return seconds(table.sum, 7)


FROM_ONEDAL = """
import json, statistics, sys, time
import daal4py, numpy as np
from scipy import sparse
found = np.load(sys.argv[1])
csr = "indptr" in found
table = sparse.csr_matrix((found["data"], found["indices"], found["indptr"])) if csr else found["table"]
labels, how = found["labels"].reshape(-1, 1).astype(float), "fastCSR" if csr else "defaultDense"
daal4py.daalinit(nthreads=int(sys.argv[2]))
learner = daal4py.multinomial_naive_bayes_training(10, method=how)
predictor = daal4py.multinomial_naive_bayes_prediction(10, method=how)
model = learner.compute(table, labels).model
def seconds(action):
    times = []
    for _ in range(8):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])
hits = float((predictor.compute(table, model).prediction == labels).mean())
print(json.dumps({"fit": seconds(lambda: learner.compute(table, labels)),
                  "predict": seconds(lambda: predictor.compute(table, model)), "hits": hits}))
"""


def install_onedal() -> None:
    """Create the environment of oneDAL, which needs older packages."""
    venv.create(ONEDAL, with_pip=True)
    subprocess.run([ONEDAL / "bin" / "python", "-m", "pip", "install", "-q", *ONEDAL_PACKAGES], check=True)


def measure_onedal(table: Any, labels: Any) -> dict[str, float]:
    """Seconds of oneDAL's multinomial classifier for these arrays, in a process of its own, and its share of hits."""
    with tempfile.TemporaryDirectory() as folder:
        arrays = {"table": table}
        if sparse.issparse(table):
            arrays = {"data": table.data, "indices": table.indices, "indptr": table.indptr}
        np.savez(file := Path(folder) / "arrays.npz", labels=labels, **arrays)
        command = [ONEDAL / "bin" / "python", "-W", "ignore", "-c", FROM_ONEDAL, file, str(os.cpu_count())]
        return dict(json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout))


def compare_with_onedal(scale: float) -> Iterator[str]:
    yield "| table | what | deciban | oneDAL | ratio | one pass |"
    yield "|---|---|---|---|---|---|"
    for name, description, table, labels, _ in tables(scale):
        if name != "MultinomialNB":
            continue
        ours, theirs, read = dropin.MultinomialNB().fit(table, labels), measure_onedal(table, labels), read_pass(table)
        np.testing.assert_allclose(theirs["hits"], (ours.predict(table) == labels).mean(), atol=0.01)
        mine = {
            "fit": seconds(lambda table=table, labels=labels, ours=ours: ours.fit(table, labels), 7),
            "predict": seconds(lambda table=table, ours=ours: ours.predict(table), 7),
        }
        for what, own in mine.items():
            yield (
                f"| {description} | {what} | {own * 1e3:.1f} ms | {theirs[what] * 1e3:.1f} ms | "
                f"{theirs[what] / own:.1f} | {read * 1e3:.1f} ms |"
            )


def compare_default_model() -> Iterator[str]:
    """Lines of processor seconds of the default model and of boosted trees, on one synthetic and one real table."""
    try:
        import accuracy
        from tables import load
    except ImportError as error:
        yield f"Skipped: {error}. See bench/accuracy.py for the environment."
        return
    import pandas as pd

    rng = np.random.default_rng(SEED)
    labels = rng.integers(0, 2, 20_000)
    numbers = rng.normal(size=(labels.size, 20)) + 0.3 * labels[:, None] * rng.normal(size=20)
    codes = (rng.integers(0, 6, (labels.size, 10)) + labels[:, None] * (rng.random((labels.size, 10)) < 0.2)) % 6
    synthetic = pd.DataFrame(numbers).add_prefix("x").join(pd.DataFrame(np.array(list("abcdef"), object)[codes]))
    synthetic.columns = synthetic.columns.map(str)
    yield "| table | method | fit | ratio | predict_proba | ratio |"
    yield "|---|---|---|---|---|---|"
    for name, (frame, target) in {"synthetic": (synthetic, labels.astype(str)), "adult": load("adult")}.items():
        own: tuple[float, float] | None = None
        for method in PEERS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                accuracy.warm(method)
                fits, start, began = [], time.process_time(), time.perf_counter()
                while len(fits) < 3 and time.perf_counter() - began < MAX_SECONDS:
                    model = accuracy.METHODS[method]().fit(frame, target)
                    fits.append(time.process_time() - start)
                    start = time.process_time()
                model.predict_proba(frame)
                start = time.process_time()
                model.predict_proba(frame)
                took = min(fits), time.process_time() - start
            own = took if own is None else own
            size = f"{name}, {len(frame):,} x {frame.shape[1]}"
            yield (
                f"| {size} | {method} | {took[0]:.2f} s | {took[0] / own[0]:.1f} | {took[1] * 1e3:.0f} ms | "
                f"{took[1] / own[1]:.1f} |"
            )


MEMORY = """
import sys
import numpy as np
from deciban import dropin
kind, rows, columns, top = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = np.random.default_rng(0)
table = np.empty((rows, columns), dtype=np.float64 if kind == "GaussianNB" else np.int64)
for start in range(0, rows, 10_000):
    part = table[start : start + 10_000]
    part[:] = rng.normal(size=part.shape) if kind == "GaussianNB" else rng.integers(0, top, part.shape)
labels = rng.integers(0, 10, rows)
clf = getattr(dropin, kind)().fit(table[:5000], labels[:5000])
def kilobytes(what):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what))
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
before = kilobytes("VmRSS")
clf.fit(table, labels)
print((kilobytes("VmHWM") - before) * 1024 / table.nbytes)
"""


def extra_memory(kind: str, rows: int, columns: int, levels: int) -> float:
    """The peak memory of a fit beyond what was there before it, as a share of the table, in a process of its own."""
    command = [sys.executable, "-c", MEMORY, kind, str(rows), str(columns), str(levels)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(scale: float, write: bool) -> None:
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    versions = f"numpy {np.__version__}, numba {numba.__version__}, scikit-learn {sklearn.__version__}"
    lines = [
        "# Drop-in classifiers against scikit-learn",
        "",
        "Written by `python bench/compare.py --write`: medians, both sides warm, after checking that results agree.",
        "A pass is one `sum()` over the same bytes on one thread, which is as fast as memory allows.",
        "",
        f"- machine: {machine}, Python {platform.python_version()}",
        f"- versions: {versions}; seed {SEED}",
        "",
        "| classifier | table | what | deciban | scikit-learn | ratio | passes | one pass |",
        "|---|---|---|---|---|---|---|---|",
    ]

    def add(more: Iterable[str]) -> None:
        for line in more:
            lines.append(line)
            print(line, flush=True)

    print("\n".join(lines))
    for name, description, table, labels, runs in tables(scale):
        read = read_pass(table)
        for what, ours, theirs in compare(name, table, labels, runs):
            unit, factor = ("µs", 1e6) if "one row" in what else ("ms", 1e3)
            passes = " | " if "one row" in what else f"{ours / read:.1f} | {read * 1e3:.1f} ms"
            both = f"{ours * factor:.1f} {unit} | {theirs * factor:.1f} {unit} | {theirs / ours:.1f}"
            add([f"| {name} | {description} | {what} | {both} | {passes} |"])
    mine, peer = one_mixed_row()
    both = f"{mine * 1e6:.1f} µs | {peer * 1e6:.1f} µs | {peer / mine:.1f}"
    add([f"| BayesClassifier | 5 Gaussian and 5 categorical columns | predict_proba of one row | {both} |  |  |"])
    add(["", "## Multinomial classifier against oneDAL", "", f"{ONEDAL_PACKAGES[0]}, on as many threads.", ""])
    add(compare_with_onedal(scale) if ONEDAL.is_dir() else ["Skipped: run with --onedal to install it."])
    add(["", "## Default model against boosted trees", ""])
    add(["Processor seconds, peers on one thread and with their defaults; ratios to deciban.", ""])
    add(compare_default_model())
    more = ["", "## Memory", "", "Additional peak memory of a fit, as a share of the table:", ""]
    for kind, columns, levels in (("GaussianNB", 50, 0), ("CategoricalNB", 20, 8), ("BernoulliNB", 50, 2)):
        share = extra_memory(kind, int(1_000_000 * scale), columns, levels)
        more.append(f"- {kind}, {int(1_000_000 * scale):,} x {columns}: {100 * share:.1f}%")
    add(more)
    if write:
        write_part("SPEED.md", "compare.py", lines)


SWEEPS = {
    "rows": ([1_000, 10_000, 100_000, 1_000_000], lambda size: (size, 20, 5, 8)),
    "columns": ([1, 10, 100, 1_000], lambda size: (20_000, size, 5, 8)),
    "classes": ([2, 20, 200, 2_000], lambda size: (50_000, 20, size, 8)),
    "levels": ([2, 20, 200, 2_000], lambda size: (50_000, 20, 5, size)),
}


def times(kind: str, rows: int, columns: int, classes: int, levels: int) -> tuple[float, float]:
    """Seconds of fit and of predict_proba."""
    labels = np.arange(rows) % classes
    rng = np.random.default_rng(0)
    if kind == "GaussianNB":
        table = rng.normal(size=(rows, columns)) + labels[:, None]
    else:
        table = rng.integers(0, levels, (rows, columns))
    clf = getattr(dropin, kind)().fit(table, labels)
    return seconds(lambda: clf.fit(table, labels), 3), seconds(lambda: clf.predict_proba(table), 3)


def draw_growth() -> None:
    """A picture for each quantity that grows; dashed lines are linear growth."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 4, figsize=(17, 4.2), sharey=True, layout="constrained")
    for axis, (what, (sizes, shape)) in zip(axes, SWEEPS.items(), strict=True):
        for kind, color in (("GaussianNB", "tab:blue"), ("CategoricalNB", "tab:orange")):
            if what == "levels" and kind == "GaussianNB":
                continue
            found = np.array([times(kind, *shape(size)) for size in sizes])
            for column, (verb, style) in enumerate((("fit", "o-"), ("predict_proba", "s:"))):
                axis.loglog(sizes, found[:, column], style, color=color, label=f"{kind} {verb}")
            print(what, kind, found.round(5).tolist(), flush=True)
            axis.loglog(sizes, found[-1].max() * np.array(sizes) / sizes[-1], "--", color=color, alpha=0.3)
        axis.set_xlabel(what)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds")
    axes[0].legend()
    figure.savefig(Path(__file__).parent / "growth.png", dpi=80)


if __name__ == "__main__":
    numbers = [float(word) for word in sys.argv[1:] if not word.startswith("-")]
    if "--onedal" in sys.argv and not ONEDAL.is_dir():
        install_onedal()
    if "--growth" in sys.argv:
        draw_growth()
    else:
        main(numbers[0] if numbers else 1.0, "--write" in sys.argv)
