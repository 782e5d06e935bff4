"""The command warmup, which compiles all kernels. Each job runs code that needs some of them."""

import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deciban.cli.options import command, common_options
from deciban.cli.output import echo, echo_json
from deciban.errors import DecibanError


@command(short_help="Compile the numeric code now, to speed up first runs", epilog="""\b
Examples:
  deciban warmup
  NUMBA_CACHE_DIR=/opt/kernels deciban warmup    # in a container image
""")  # fmt: skip
@common_options
def warmup(as_json: bool) -> None:
    """Compile deciban's numeric code for this machine now, so that first runs are fast.

    Without it, Numba compiles each function on first use.
    """
    from deciban.kernels.compiled import cache_folder
    from deciban.util.progress import progress

    start = time.monotonic()
    with progress("compiling", "jobs", len(JOBS)) as advance:
        for done in compile_all():
            advance(done)
    seconds, folder = time.monotonic() - start, str(cache_folder())
    if as_json:
        echo_json({"seconds": seconds, "folder": folder})
    else:
        echo(f"compiled in {seconds:.0f} s; cached in {folder}")


def _make_numbers(rows: int = 120) -> tuple[Any, list[str]]:
    import numpy as np

    rng = np.random.default_rng(0)
    place = np.arange(rows) % 3
    numbers = rng.normal(size=(rows, 6)) + place[:, None]
    numbers[:, 1] = np.exp(numbers[:, 1])
    numbers[:, 2] = numbers[:, 0] + 0.1 * numbers[:, 2]
    return numbers, [("a", "b", "c")[k] for k in place]


def run_numbers() -> None:
    """Fit and score numbers: tuned and plain models, decisions, missing cells."""
    import numpy as np

    from deciban.estimators.classifier import BayesClassifier
    from deciban.families import Binned, Gaussian, JointGaussian, LogNormal, Pooled

    numbers, labels = _make_numbers()
    BayesClassifier().fit(numbers, [label == "a" for label in labels])  # two classes have kernels of their own
    clf = BayesClassifier().fit(numbers, labels)
    str(clf.explain(numbers[:2]))
    clf.decide(numbers, np.ones((3, 3)) - np.eye(3), reject=0.4)
    clf.leave_one_out()
    numbers[::7, 0] = np.nan
    for family in (JointGaussian(), JointGaussian(Pooled(0.1)), Gaussian(), Binned(), LogNormal(outside="ignore")):
        columns = {(0, 1, 2): family} if family.joint else family
        plain = BayesClassifier(columns, tune=None).fit(numbers, labels)
        plain.predict(numbers)
        plain.leave_one_out(numbers, labels)


def run_mixed_table() -> None:
    """Fit and score a table of numbers, categories, flags, counts and missing cells."""
    import numpy as np
    import pyarrow as pa

    from deciban.estimators.classifier import BayesClassifier

    numbers, labels = _make_numbers(240)
    level = np.array(["x", "y", "z"])[(np.abs(numbers[:, 3]) * 2).astype(int) % 3]
    columns = {
        "number": pa.array(numbers[:, 0], mask=np.arange(240) % 9 == 0),
        "amount": pa.array(numbers[:, 1]),
        "level": pa.array(level, mask=np.arange(240) % 11 == 0),
        "count": pa.array(np.abs(numbers[:, 4] * 3).astype(np.int64)),
        "flag": pa.array(numbers[:, 5] > 1.0),
    }
    table = pa.table(columns)
    clf = BayesClassifier().fit(table, labels)
    str(clf.explain(table.slice(0, 2)))
    clf.leave_one_out()
    (clf + clf.shard(table.slice(0, 40), labels[:40])).predict(table)


def run_texts() -> None:
    """Fit and score texts with every kind of model."""
    from deciban.datasets import messages
    from deciban.estimators.classifier import BayesClassifier
    from deciban.families import Text

    table = messages().slice(0, 60)
    clf = BayesClassifier().fit(table, "label")
    str(clf.explain(table.slice(0, 2)))
    (clf + clf.shard(table.slice(0, 30), "label")).predict(table)
    for kind in ("multinomial", "bernoulli", "complement"):
        plain = BayesClassifier({"text": Text(kind=kind)}, tune=None).fit(table, "label")
        plain.predict(table)
        plain.leave_one_out(table, "label")


def run_text_options() -> None:
    """Fit and score texts with n-grams, stop words and a limited vocabulary."""
    from deciban.datasets import messages
    from deciban.estimators.classifier import BayesClassifier
    from deciban.families import Text

    table = messages().slice(0, 60)
    for family in (
        Text(ngram_range=(1, 2), stop_words=("the", "a")),
        Text(analyzer="char_wb", ngram_range=(2, 3)),
        Text(max_features=50),
    ):
        BayesClassifier({"text": family}, tune=None).fit(table, "label").predict(table)


def run_dropins() -> None:
    """Fit and score the drop-in classifiers on dense and sparse rows, in both precisions."""
    import numpy as np
    from scipy import sparse

    from deciban import dropin

    numbers, labels = _make_numbers()
    counts = np.abs(numbers * 2).astype(np.int64)
    for kind in (np.float64, np.float32):
        dropin.GaussianNB().fit(numbers.astype(kind), labels).predict(numbers.astype(kind))
        dropin.LinearDiscriminantAnalysis().fit(numbers.astype(kind), labels).predict(numbers.astype(kind))
        dropin.QuadraticDiscriminantAnalysis().fit(numbers.astype(kind), labels).predict(numbers.astype(kind))
    dropin.CategoricalNB().fit(counts, labels).predict(np.tile(counts, (100, 1)))  # a kernel finds the best of many
    wide = np.tile(counts, (1, 4))
    for table in (wide, wide.astype(np.float64), sparse.csr_array(wide), sparse.csr_array(wide.astype(np.float64))):
        for classifier in (dropin.MultinomialNB, dropin.ComplementNB, dropin.BernoulliNB):
            classifier().fit(table, labels).predict(table)


def run_files() -> None:
    """Fit and score files with texts."""
    from deciban.datasets import messages
    from deciban.estimators.classifier import BayesClassifier

    table = messages().slice(0, 40).to_pylist()
    with TemporaryDirectory() as folder:
        import json

        lines, cells = Path(folder) / "texts.jsonl", Path(folder) / "texts.csv"
        lines.write_text("".join(json.dumps(row) + "\n" for row in table))
        quoted = ('"' + '","'.join(str(cell).replace('"', "'") for cell in row.values()) + '"\n' for row in table)
        cells.write_text(",".join(table[0]) + "\n" + "".join(quoted))
        for path in (lines, cells):
            BayesClassifier(tune=None).fit(str(path), "label").predict(str(path))


def run_samples() -> None:
    """Draw samples of rows."""
    from deciban.tables.convert import as_table
    from deciban.tables.examples import LabeledTable

    numbers, labels = _make_numbers(5_000)
    LabeledTable.of(as_table({"number": numbers[:, 0], "text": labels}), labels).sample(20)


JOBS: tuple[Callable[[], None], ...] = (
    run_texts,
    run_mixed_table,
    run_dropins,
    run_numbers,
    run_text_options,
    run_files,
    run_samples,
)


# File in the kernel cache that exists if all kernels are compiled.
MARKER_FILE = "warm"


def _run_job(place: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        JOBS[place]()


def compile_all(processes: int | None = None) -> Iterator[int]:
    """Run all jobs in parallel processes that fill one cache. Yield 1 for each finished job."""
    from concurrent.futures import ProcessPoolExecutor, as_completed

    from deciban.kernels.compiled import cache_folder
    from deciban.util.arrays import CORES

    folder = cache_folder()
    if folder is None:
        raise DecibanError("no writable folder for the kernel cache", remedy="set NUMBA_CACHE_DIR to a writable folder")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes or CORES, mp_context=context, max_tasks_per_child=1) as pool:
        for done in as_completed([pool.submit(_run_job, place) for place in range(len(JOBS))]):
            done.result()
            yield 1
    (folder / MARKER_FILE).touch()
