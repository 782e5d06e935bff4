"""Texts: speed, memory, growth and quality of Text(), against scikit-learn's vectorizers and classifiers.

    python bench/text.py [SECTION ...] [--data ../shared/data] [--quick] [--write]

The folder has 20news.parquet (part, group, text) and sms_spam.parquet (label, text); without them texts of about the
same size are drawn. Everything is measured in processes of its own, contenders in turns. --quick takes a third of the
documents, fewer turns, smaller corpora and no tuned peers; --write puts the results into bench/SPEED.md, with a plot,
and bench/ACCURACY.md.
"""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from reports import write_part

# Nothing heavy is imported here: a process starts with the peak memory of the one that made it.
HERE = Path(__file__).parent
FIT, PREDICT, HASHING, FROM_ARROW, FROM_FILES = 30.0, 20.0, 20.0, 40.0, 15.0
LOSS = 1.10  # of logistic regression
ALPHAS, STRENGTHS = (1.0, 0.3, 0.1, 0.03, 0.01), (1.0, 3.0, 10.0, 30.0, 100.0)
WORDS_A_TEXT = 200
MAX_PEER_LENGTH = 60.0
Found = dict[str, Any]


# the texts


def prepare(data: str, folder: str, part: int) -> Found:
    """Write the corpora to a folder as the sections read them, every part-th document, and say where they are from."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    out = Path(folder)
    found: Found = {}
    for name, file, label, shape in (
        ("news", "20news", "group", (18_846, 20, 1900)),
        ("sms", "sms_spam", "label", (5_574, 2, 82)),
    ):
        path = Path(data) / f"{file}.parquet"
        drawn = not path.exists()
        table = drawn_texts(*shape) if drawn else pq.read_table(path)
        if name == "news":
            table = table.take(np.arange(0, table.num_rows, part))
        if "part" not in table.column_names:
            order = np.random.default_rng(0).permutation(table.num_rows)
            table = table.append_column("part", pa.array(np.where(order % 5 < 3, "train", "test")))
        if drawn:
            table = table.rename_columns({"label": label})
        table = table.select(["text", label, "part"])
        pq.write_table(table, out / f"{name}.parquet")
        texts = table["text"].to_pylist()
        size = sum(len(text.encode()) for text in texts)
        found[name] = {"rows": len(texts), "bytes": size, "drawn": drawn, "label": label}
        if name == "news":
            plain = table.select(["text", label])
            pq.write_table(plain, out / "texts.parquet")
            pyarrow.csv.write_csv(plain, out / "texts.csv")
            with (out / "texts.jsonl").open("w") as lines:
                for row in plain.to_pylist():
                    lines.write(json.dumps(row) + "\n")
    return found


def drawn_texts(rows: int, classes: int, size: int) -> Any:
    """Texts about so many bytes long, of Zipf-like words, some of which are those of their class."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, rows)
    words = np.maximum(rng.lognormal(np.log(size / 8.5), 0.6, rows).astype(np.int64), 3)
    owner = np.repeat(labels, words)
    rank = (170_000 ** rng.random(owner.size)).astype(np.int64) - 1
    own = rng.random(owner.size) < 0.03
    rank[own] = (rank[own] + 7919 * (owner[own] + 1)) % 170_000
    texts = pa.array(joined(spelled(170_000).take(pa.array(rank)), np.concatenate([[0], np.cumsum(words)])))
    return pa.table({"text": texts, "label": pa.array([f"class {k}" for k in labels.tolist()])})


def spelled(words: int) -> Any:
    """So many different words of 6 to 9 letters."""
    import numpy as np
    import pyarrow as pa

    number = np.arange(words, dtype=np.int64)
    scrambled = number * 104_395_301 % 26**6  # no two are the same: the factor is not a multiple of 2 or 13
    letters = np.empty((words, 9), dtype=np.uint8)
    for place in range(6):
        letters[:, place] = 97 + scrambled // 26**place % 26
    letters[:, 6:] = 97 + (number[:, None] + np.arange(3)) % 26
    sizes = 6 + number % 4
    kept = np.arange(9) < sizes[:, None]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(letters[kept])]
    return pa.Array.from_buffers(pa.large_string(), words, buffers)


def joined(words: Any, firsts: Any) -> Any:
    """Texts of the words from each first one on."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = pa.LargeListArray.from_arrays(pa.array(firsts), words)
    return pc.binary_join(lists, pa.scalar(" ", pa.large_string()))


def zipf_file(path: str, megabytes: float, words: int) -> Found:
    """Write a Parquet file of drawn texts, about 10 MB a row group: text, and label of two classes.

    The first tokens are every word once; the r-th word has about 1/r of all others.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    vocabulary = spelled(words)
    texts = max(2, round(megabytes * 1e6 / 8.5 / WORDS_A_TEXT))
    once = rng.permutation(words)[: texts * WORDS_A_TEXT]
    schema = pa.schema({"text": pa.large_string(), "label": pa.string()})
    size = 0
    with pq.ParquetWriter(path, schema, compression="snappy", use_dictionary=["label"]) as writer:
        for first in range(0, texts, 6_000):
            rows = min(6_000, texts - first)
            labels = rng.integers(0, 2, rows)
            tokens = rows * WORDS_A_TEXT
            power = np.repeat(np.where(labels == 1, 1.1, 1.0), WORDS_A_TEXT)
            rank = (words ** rng.random(tokens) ** power).astype(np.int64) - 1
            every = once[first * WORDS_A_TEXT :: 1][:tokens]
            rank[: every.size] = every
            column = joined(vocabulary.take(pa.array(rank)), np.arange(rows + 1) * WORDS_A_TEXT)
            size += int(pa.compute.sum(pa.compute.binary_length(column)).as_py())
            names = pa.array(["one", "two"]).take(pa.array(labels))
            writer.write_table(pa.table({"text": column, "label": names}, schema=schema))
    return {"bytes": size, "rows": texts}


# what runs in processes of its own


def strings(folder: str, name: str, label: str) -> tuple[list[str], Any]:
    """The texts of a corpus as Python strings, and their labels."""
    import numpy as np
    import pyarrow.parquet as pq

    table = pq.read_table(Path(folder) / f"{name}.parquet")
    return table["text"].to_pylist(), np.array(table[label].to_pylist())


def deciban_fit(X: Any, y: Any, threads: int | None = None, tune: str | None = None) -> Any:
    """A classifier, with all that is only made when it is asked for."""
    from deciban import BayesClassifier, Text

    clf = BayesClassifier(Text(), tune=tune, threads=threads).fit(X, y)  # type: ignore[arg-type]
    column = clf.model_.likelihoods[0].columns[0]
    assert column.kind.slope.size
    assert column.words.index.known
    return clf


def sklearn_fit(texts: list[str], y: Any, hashing: bool = False) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
    from sklearn.naive_bayes import MultinomialNB

    vectorizer = HashingVectorizer(alternate_sign=False) if hashing else CountVectorizer()
    return vectorizer, MultinomialNB().fit(vectorizer.fit_transform(texts), y)


def in_turns(actions: dict[str, Callable[[], Any]], turns: int) -> dict[str, list[float]]:
    """The times of all turns of each action: A B A B."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(turns):
        for name, action in actions.items():
            start = time.perf_counter()
            kept = action()
            times[name].append(time.perf_counter() - start)
            del kept
    return times


def speed(folder: str, label: str, turns: int) -> Found:
    """deciban and both vectorizers on the same Python strings, after a check that they learn and say the same."""
    import numpy as np

    texts, y = strings(folder, "news", label)
    ours = deciban_fit(texts, y)
    vectorizer, theirs = sklearn_fit(texts, y)
    hasher, hashed = sklearn_fit(texts, y, hashing=True)
    counted = ours.counts_.statistics[0].in_order
    assert counted.vocabularies[0].array.to_pylist() == vectorizer.get_feature_names_out().tolist()
    np.testing.assert_array_equal(counted.tables[0].T, theirs.feature_count_)
    np.testing.assert_array_equal(ours.predict(texts), theirs.predict(vectorizer.transform(texts)))
    ours.predict_proba(texts)
    times = in_turns(
        {
            "fit": lambda: deciban_fit(texts, y),
            "fit count": lambda: sklearn_fit(texts, y),
            "predict": lambda: ours.predict(texts),
            "predict count": lambda: theirs.predict(vectorizer.transform(texts)),
            "predict_proba": lambda: ours.predict_proba(texts),
            "predict_proba count": lambda: theirs.predict_proba(vectorizer.transform(texts)),
            "fit hashing": lambda: sklearn_fit(texts, y, hashing=True),
            "predict hashing": lambda: hashed.predict(hasher.transform(texts)),
        },
        turns,
    )
    return {"times": times, "words": len(counted.vocabularies[0])}


def starts(folder: str, label: str, turns: int) -> Found:
    """Learning from an Arrow table and from files, and what pandas and scikit-learn take."""
    import pandas
    import pyarrow.parquet as pq

    from deciban.errors import DataError

    table = pq.read_table(Path(folder) / "texts.parquet")
    actions: dict[str, Callable[[], Any]] = {
        "Arrow": lambda: deciban_fit(table, label),
        "Arrow peer": lambda: sklearn_fit(table["text"].to_pylist(), table[label].to_pylist()),
    }
    readers = {"parquet": pandas.read_parquet, "csv": pandas.read_csv,
               "jsonl": lambda path: pandas.read_json(path, lines=True)}  # fmt: skip
    for ending, read in readers.items():
        path = str(Path(folder) / f"texts.{ending}")

        def peer(read: Callable[[str], Any] = read, path: str = path) -> Any:
            frame = read(path)
            return sklearn_fit(frame["text"].fillna("").tolist(), frame[label].to_numpy())

        actions[ending] = lambda path=path: deciban_fit(path, label)
        actions[f"{ending} peer"] = peer
    failed, learned = {}, set()
    for name in ("Arrow", *readers):
        try:
            learned.add(len(actions[name]().model_.likelihoods[0].columns[0].words))
        except DataError as failure:
            failed[name] = str(failure).replace(folder + os.sep, "").replace("|", " ")
            del actions[name]
    assert len(learned) == 1, learned
    return {"times": in_turns(actions, turns), "failed here": failed}


def peak() -> float:
    """The highest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def lines_of(path: Path, label: str) -> tuple[list[str], list[str]]:
    """Texts and labels of a file with a JSON object a line, as Python has them, one at a time."""
    texts, labels = [], []
    with path.open() as file:
        for line in file:
            row = json.loads(line)
            texts.append(row["text"])
            labels.append(row[label])
    return texts, labels


def memory(folder: str, label: str, who: str, start: str, threads: int | None) -> Found:
    """The peak of fit and predict, and what was there before the first text."""
    import pandas
    import sklearn.feature_extraction.text
    import sklearn.naive_bayes  # noqa: F401 - for both: deciban has scikit-learn's conventions

    few, some = ["one word", "two words"] * 10, ["a", "b"] * 10
    if who == "deciban":
        deciban_fit(few, some).predict(few)
    else:
        sklearn_fit(few, some)
    before = peak()
    path = Path(folder) / "texts.parquet"
    if start == "strings":
        texts, y = lines_of(Path(folder) / "texts.jsonl", label)
    elif who == "scikit-learn":
        frame = pandas.read_parquet(path)
        texts, y = frame["text"].tolist(), frame[label].to_numpy()
    loaded = peak()
    if who == "scikit-learn":
        vectorizer, clf = sklearn_fit(texts, y)
        fitted = peak()
        clf.predict(vectorizer.transform(texts))
    else:
        ours = deciban_fit(texts, y, threads) if start == "strings" else deciban_fit(str(path), label, threads)
        fitted = peak()
        ours.predict(texts if start == "strings" else str(path))
    return {"before": before, "loaded": loaded, "fitted": fitted, "peak": peak()}


def threads(folder: str, label: str, turns: int, counts: list[int]) -> Found:
    """Fit and predict with some numbers of threads, from Python strings and from Arrow, each document three times."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts, y = strings(folder, "news", label)
    texts, y = texts * 3, np.tile(y, 3)
    table = pa.concat_tables([pq.read_table(Path(folder) / "texts.parquet")] * 3).combine_chunks()
    only = table.select(["text"])
    actions: dict[str, Callable[[], Any]] = {}
    for count in counts:
        clf = deciban_fit(table, label, count)
        actions[f"strings fit {count}"] = lambda count=count: deciban_fit(texts, y, count)
        actions[f"strings predict {count}"] = lambda clf=clf: clf.predict(texts)
        actions[f"Arrow fit {count}"] = lambda count=count: deciban_fit(table, label, count)
        actions[f"Arrow predict {count}"] = lambda clf=clf: clf.predict(only)
    in_turns(actions, 1)
    return {"times": in_turns(actions, turns)}


def table_once(path: str, who: str) -> Found:
    """Fit and predict on all texts of a Parquet file, which are read before; seconds, peak in MB."""
    import pyarrow.parquet as pq

    few, some = ["one word", "two words"] * 10, ["a", "b"] * 10
    deciban_fit(few, some).predict(few)
    base = peak()
    table = pq.read_table(path, memory_map=False)
    only = table.select(["text"])
    if who == "scikit-learn":
        texts, y = table["text"].to_pylist(), table["label"].to_pylist()
        del table, only
    loaded = peak()
    fits, predictions = [], []
    for _ in range(2 if who == "deciban" else 1):  # memory that was never used before is slow
        start = time.perf_counter()
        if who == "deciban":
            clf = deciban_fit(table, "label")
            words = len(clf.model_.likelihoods[0].columns[0].words)
            middle = time.perf_counter()
            clf.predict(only)
        else:
            vectorizer, theirs = sklearn_fit(texts, y)
            words = len(vectorizer.vocabulary_)
            middle = time.perf_counter()
            if middle - start < MAX_PEER_LENGTH:
                theirs.predict(vectorizer.transform(texts))
        fits.append(middle - start)
        predictions.append(time.perf_counter() - middle)
    return {"fit": min(fits), "predict": min(predictions), "words": words, "base": base, "loaded": loaded,
            "peak": peak()}  # fmt: skip


def file_once(path: str) -> Found:
    """Fit and predict from a Parquet file that is read bit by bit."""
    few, some = ["one word", "two words"] * 10, ["a", "b"] * 10
    deciban_fit(few, some).predict(few)
    base = peak()
    start = time.perf_counter()
    clf = deciban_fit(path, "label")
    middle = time.perf_counter()
    fitted = peak()
    clf.predict(path)
    return {"fit": middle - start, "predict": time.perf_counter() - middle, "base": base, "fitted": fitted,
            "peak": peak()}  # fmt: skip


def tuned(folder: str, news_label: str, sms_label: str, turns: int) -> Found:
    """Plain and tuned fits on both corpora, and what tuning chose."""
    times, chosen = {}, {}
    for name, label in (("news", news_label), ("sms", sms_label)):
        texts, y = strings(folder, name, label)
        chosen[name] = str(deciban_fit(texts, y, tune="auto").schema_)
        actions = {f"{name} plain": lambda texts=texts, y=y: deciban_fit(texts, y),
                   f"{name} tuned": lambda texts=texts, y=y: deciban_fit(texts, y, tune="auto")}  # fmt: skip
        times |= in_turns(actions, turns)
    return {"times": times, "chosen": chosen}


# quality


def judged(posterior: Any, labels: Any, classes: Any) -> dict[str, float]:
    """Accuracy, log-loss (no probability counts as less than the smallest step of a double) and calibration error."""
    import numpy as np

    from deciban.evaluation.metrics import Calibration

    posterior = np.asarray(posterior, dtype=np.float64)
    place = np.searchsorted(classes, labels)
    said = np.maximum(posterior[np.arange(place.size), place], np.finfo(np.float64).eps)
    calibration = Calibration.from_posterior(posterior, place, np.ones(place.size), 15)
    accuracy = float((posterior.argmax(axis=1) == place).mean())
    return {
        "accuracy": accuracy,
        "log-loss": float(-np.log(said).mean()),
        "calibration": calibration.expected_calibration_error,
    }


def best_by_folds(
    make: Callable[[float], Any], values: tuple[float, ...], X: Any, y: Any, folds: int, rounds: int
) -> list[float]:
    """Of some values the one with the best accuracy and the one with the best log-loss, on folds of the rows."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold

    found = np.zeros((len(values), 2))
    for train, test in islice(StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y), rounds):
        clf = None
        for k, value in enumerate(values):
            clf = make(value) if clf is None or not getattr(clf, "warm_start", False) else clf.set_params(C=value)
            one = judged(clf.fit(X[train], y[train]).predict_proba(X[test]), y[test], clf.classes_)
            found[k] += -one["accuracy"], one["log-loss"]
    return [values[k] for k in found.argmin(axis=0)]


def contest(
    train: list[str], y: Any, test: list[str], truth: Any, peers: bool, folds: int, quickly: bool = False
) -> dict[str, Found]:
    """What every contender makes of the held-out texts; `quickly`, C is chosen by the first fold alone."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import ComplementNB, MultinomialNB

    from deciban import BayesClassifier, Text

    found: dict[str, Found] = {}

    def keep(name: str, run: Callable[[], tuple[Any, Any]]) -> None:
        start = time.perf_counter()
        posterior, classes = run()
        found[name] = {**judged(posterior, truth, classes), "seconds": time.perf_counter() - start}
        print(f"    {name}: {found[name]}", file=sys.stderr, flush=True)

    def ours(**how: Any) -> tuple[Any, Any]:
        clf = BayesClassifier(Text(kind=how.pop("kind", "multinomial")), **how).fit(train, y)
        return clf.predict_proba(test), clf.classes_

    keep("deciban, default", lambda: ours())
    for kind in ("multinomial", "bernoulli", "complement"):
        keep(f"deciban, plain, {kind}", lambda kind=kind: ours(kind=kind, tune=None))
    for vectorizer, title, make, plain, values in (
        (CountVectorizer(), "MultinomialNB", lambda value: MultinomialNB(alpha=value), 1.0, ALPHAS),
        (CountVectorizer(), "ComplementNB", lambda value: ComplementNB(alpha=value), 1.0, ALPHAS),
        (TfidfVectorizer(), "tf-idf, MultinomialNB", lambda value: MultinomialNB(alpha=value), 1.0, ALPHAS),
        (TfidfVectorizer(), "tf-idf, ComplementNB", lambda value: ComplementNB(alpha=value), 1.0, ALPHAS),
        (TfidfVectorizer(), "tf-idf, logistic regression",
         lambda value: LogisticRegression(C=value, max_iter=1000, tol=1e-3, warm_start=True), 1.0, STRENGTHS),
    ):  # fmt: skip

        def fitted(value: float, vectorizer: Any = vectorizer, make: Any = make) -> tuple[Any, Any]:
            clf = make(value).fit(vectorizer.fit_transform(train), y)
            return clf.predict_proba(vectorizer.transform(test)), clf.classes_

        def chosen(vectorizer: Any = vectorizer, make: Any = make, values: Any = values, fitted: Any = fitted) -> Found:
            rounds = 1 if values is STRENGTHS and quickly else folds
            best = best_by_folds(make, values, vectorizer.fit_transform(train), y, folds, rounds)
            each = {}
            for value in set(best):
                posterior, classes = fitted(value)
                each[value] = judged(posterior, truth, classes)
            return {**each[best[1]], "accuracy": each[best[0]]["accuracy"], "chosen": best}

        keep(title, lambda fitted=fitted, plain=plain: fitted(plain))
        if peers:
            start = time.perf_counter()
            found[f"{title}, tuned"] = {**chosen(), "seconds": time.perf_counter() - start}
            print(f"    {title}, tuned: {found[f'{title}, tuned']}", file=sys.stderr, flush=True)
    np.testing.assert_allclose(found["deciban, plain, multinomial"]["log-loss"], found["MultinomialNB"]["log-loss"],
                               rtol=1e-6)  # fmt: skip
    return found


def quality_news(folder: str, label: str, peers: bool) -> Found:
    import numpy as np
    import pyarrow.parquet as pq

    table = pq.read_table(Path(folder) / "news.parquet")
    train = np.array(table["part"].to_pylist()) == "train"
    y = np.array(table[label].to_pylist())
    texts = table["text"].to_pylist()
    parts = [[text for text, there in zip(texts, which, strict=True) if there] for which in (train, ~train)]
    return {"one": contest(parts[0], y[train], parts[1], y[~train], peers, 3, True), "train": int(train.sum()),
            "test": int((~train).sum())}  # fmt: skip


def quality_sms(folder: str, label: str, peers: bool, splits: int) -> Found:
    import numpy as np
    from sklearn.model_selection import train_test_split

    texts, y = strings(folder, "sms", label)
    runs = []
    for seed in range(splits):
        train, test = train_test_split(np.arange(y.size), test_size=0.3, random_state=seed)
        runs.append(contest([texts[k] for k in train], y[train], [texts[k] for k in test], y[test], peers, 5))
    return {"runs": runs}


TASKS = {run.__name__: run for run in (prepare, zipf_file, speed, starts, memory, threads, table_once, file_once,
                                       tuned, quality_news, quality_sms)}  # fmt: skip


def child(task: str, **arguments: Any) -> Found:
    """What a task finds in a process of its own."""
    print(f"  {task} {arguments}", file=sys.stderr, flush=True)
    command = [sys.executable, __file__, "--task", task, json.dumps(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return {"failed": f"exit code {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


# the page


def aim(text: str, wanted: str, met: bool) -> str:
    return f"{text} (target {wanted}: {'met' if met else '**missed**'})"


def ratio(times: dict[str, list[float]], peer: str, mine: str) -> float:
    """The median of how many times as long a peer took in the same turn."""
    return statistics.median(theirs / ours for theirs, ours in zip(times[peer], times[mine], strict=True))


class Page:
    """The sections, each of which gives its lines."""

    def __init__(self, folder: str, data: str, quick: bool) -> None:
        self.folder, self.quick = folder, quick
        self.turns = 2 if quick else 7
        self.corpora = child("prepare", data=data, folder=folder, part=3 if quick else 1)
        if "failed" in self.corpora:
            raise SystemExit("the texts could not be prepared")
        self.news, self.sms = self.corpora["news"], self.corpora["sms"]
        self.label, self.megabytes = self.news["label"], self.news["bytes"] / 1e6
        self.curves: dict[str, list[tuple[float, ...]]] = {}

    def head(self) -> list[str]:
        packages = ("deciban", "pyarrow", "duckdb", "numpy", "numba", "pandas", "scikit-learn")
        gigabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        where = "drawn, Zipf-like (20 Newsgroups was not there)" if self.news["drawn"] else "20 Newsgroups"
        also = "drawn, Zipf-like (SMS Spam was not there)" if self.sms["drawn"] else "SMS Spam Collection"
        every = ", every third document" if self.quick else ""
        return [
            "# Texts",
            "",
            f"Written by `python bench/text.py {'--quick ' if self.quick else ''}--write`. Methods alternate "
            "(A B A B), both sides warm; a ratio is the",
            "median of those of each turn, a time the best (where growth is measured, of two runs of deciban and one",
            "of others). It was checked first that both learn the same words and counts and predict the same",
            "classes. Memory is the peak resident set of a separate process.",
            "",
            f"- machine: {platform.machine()}, {os.cpu_count()} cores, {gigabytes:.0f} GB, "
            f"Python {platform.python_version()}",
            f"- versions: {', '.join(f'{name} {version(name)}' for name in packages)}",
            f"- news: {where}{every}: {self.news['rows']:,} documents, {self.megabytes:.1f} MB; "
            f"messages: {also}: {self.sms['rows']:,}, {self.sms['bytes'] / 1e6:.2f} MB",
        ]

    def speed(self) -> Iterator[str]:
        """Speed on the same Python strings"""
        found = child("speed", folder=self.folder, label=self.label, turns=self.turns)
        times = found["times"]
        yield (f"The news as a list of `str`, {found['words']:,} words, "
               f"{self.turns} turns; fit includes all that the first prediction needs.")  # fmt: skip
        yield ""
        yield "Both vectorizers are followed by MultinomialNB; HashingVectorizer has `alternate_sign=False`."
        yield ""
        yield "| what | deciban | | CountVectorizer | ratio | HashingVectorizer | ratio |"
        yield "|---|---|---|---|---|---|---|"
        for what in ("fit", "predict", "predict_proba"):
            mine, count, hashing = (min(times.get(f"{what}{peer}", [0.0])) for peer in ("", " count", " hashing"))
            line = f"| {what} | {mine:.3f} s | {self.megabytes / mine:.0f} MB/s | {count:.2f} s | "
            line += f"{ratio(times, f'{what} count', what):.1f} | "
            yield line + (f"{hashing:.2f} s | {ratio(times, f'{what} hashing', what):.1f} |" if hashing else " | |")
        yield ""
        for what, peer, wanted in (("fit", "count", FIT), ("predict", "count", PREDICT), ("fit", "hashing", HASHING),
                                   ("predict", "hashing", HASHING)):  # fmt: skip
            times_as = ratio(times, f"{what} {peer}", what)
            name = f"{peer.capitalize()}Vectorizer"
            yield "- " + aim(f"{what}: {times_as:.1f} times as fast as {name}", f">= {wanted:g}", times_as >= wanted)

    def starts(self) -> Iterator[str]:
        """Starting from Arrow and from files"""
        found = child("starts", folder=self.folder, label=self.label, turns=2 if self.quick else 11)
        times = found["times"]
        yield "Reading included; the peer is pandas' reader (of Arrow: `to_pylist`), CountVectorizer and MultinomialNB."
        yield ""
        yield "| from | on disk | deciban fit | | pandas + scikit-learn | ratio | |"
        yield "|---|---|---|---|---|---|---|"
        for start in ("Arrow", "parquet", "csv", "jsonl"):
            path = Path(self.folder) / f"texts.{start}"
            size = f"{path.stat().st_size / 1e6:.1f} MB" if path.exists() else ""
            if start in found["failed here"]:
                peer = min(times[f"{start} peer"])
                yield f"| {start} | {size} | **failed** | | {peer:.2f} s | | {found['failed here'][start]} |"
                continue
            mine, peer, times_as = min(times[start]), min(times[f"{start} peer"]), ratio(times, f"{start} peer", start)
            least = FROM_ARROW if start == "Arrow" else FROM_FILES
            yield (f"| {start} | {size} | {mine:.3f} s | {self.megabytes / mine:.0f} MB/s | {peer:.2f} s | "
                   f"{times_as:.1f} | {aim('', f'>= {least:g}', times_as >= least).strip()} |")  # fmt: skip

    def memory(self) -> Iterator[str]:
        """Peak memory"""
        yield f"For a process that fits and predicts the news ({self.megabytes:.0f} MB), in MB. Imports: after a fit of"
        yield "twenty tiny texts. Strings are read line by line from JSON; of Parquet, scikit-learn has pandas read it."
        yield ""
        yield "| from | method | imports | texts loaded | fit | fit and predict | beyond the imports |"
        yield "|---|---|---|---|---|---|---|"
        for start in ("strings", "parquet"):
            peaks = {}
            for who, count in (("deciban", None), ("deciban, 1 thread", 1), ("scikit-learn", None)):
                if count and self.quick:  # there is one batch only
                    continue
                one = child("memory", folder=self.folder, label=self.label, who=who.split(",")[0], start=start,
                            threads=count)  # fmt: skip
                peaks[who] = one["peak"] - one["before"]
                loaded = f"{one['loaded']:.0f}" if one["loaded"] > one["before"] else ""
                yield (f"| {start} | {who} | {one['before']:.0f} | {loaded} | {one['fitted']:.0f} | {one['peak']:.0f} "
                       f"| {peaks[who]:.0f} |")  # fmt: skip
            share = peaks["deciban"] / peaks["scikit-learn"]
            yield f"| {start} | | | | | | {aim(f'{share:.2f} of scikit-learn', '< 1', share < 1)} |"

    def threads(self) -> Iterator[str]:
        """Threads"""
        counts = sorted({1, 2, os.cpu_count() or 1})
        found = child("threads", folder=self.folder, label=self.label, turns=self.turns, counts=counts)
        yield "Megabytes of text per second, in brackets per thread; the news repeated three times, so that"
        yield "there are several batches. Strings are first made Arrow, by one thread."
        yield ""
        yield "| from | what | " + " | ".join(f"{count} thread{'s' * (count > 1)}" for count in counts) + " |"
        yield "|---|---|" + "---|" * len(counts)
        for start in ("strings", "Arrow"):
            for what in ("fit", "predict"):
                speeds = [3 * self.megabytes / min(found["times"][f"{start} {what} {count}"]) for count in counts]
                cells = [f"{speed:.0f} ({speed / count:.0f})" for speed, count in zip(speeds, counts, strict=True)]
                yield f"| {start} | {what} | " + " | ".join(cells) + " |"

    def vocabulary(self) -> Iterator[str]:
        """Growth with the vocabulary"""
        size = 10 if self.quick else 100
        yield f"Drawn texts of {WORDS_A_TEXT} words, about {size} MB, 2 classes; every word is there, the r-th has"
        yield "about 1/r of the others. deciban starts from Arrow, scikit-learn from Python strings, both in memory"
        yield "already; memory is beyond the imports, including the texts. Each runs in a separate process."
        yield ""
        yield "| words | deciban fit | predict | peak | scikit-learn fit | predict | peak | ratios |"
        yield "|---|---|---|---|---|---|---|---|"
        path = str(Path(self.folder) / "words.parquet")
        slow = False
        for power in (3, 5, 6) if self.quick else (3, 4, 5, 6, 7):
            made = child("zipf_file", path=path, megabytes=size, words=10**power)
            size_here = made["bytes"] / 1e6
            mine = child("table_once", path=path, who="deciban")
            if "failed" in mine:
                yield f"| 10^{power} | {mine['failed']} | | | | | | |"
                continue
            point: tuple[float, ...] = (mine["words"], size_here / mine["fit"], size_here / mine["predict"])
            line = (f"| {mine['words']:,} | {point[1]:.0f} MB/s | {point[2]:.0f} MB/s "
                    f"| {mine['peak'] - mine['base']:.0f} MB | ")  # fmt: skip
            if power > 6 or slow:
                yield line + "not run | | | |"
            else:
                peer = child("table_once", path=path, who="scikit-learn")
                slow = "failed" in peer or peer["fit"] > MAX_PEER_LENGTH
                yield line + (f"{size_here / peer['fit']:.1f} MB/s | {size_here / peer['predict']:.1f} MB/s | "
                    f"{peer['peak'] - peer['base']:.0f} MB | {peer['fit'] / mine['fit']:.1f}, "
                    f"{peer['predict'] / mine['predict']:.1f} |")  # fmt: skip
                point = (*point, size_here / peer["fit"], size_here / peer["predict"])
            self.curves.setdefault("words", []).append(point)
        Path(path).unlink(missing_ok=True)

    def size(self) -> Iterator[str]:
        """Growth with the size"""
        yield "Parquet files of drawn texts, 100,000 words, 2 classes, row groups of 10 MB; each once, in a process of"
        yield "its own. Memory is beyond the imports."
        yield ""
        yield "| text | on disk | fit | | predict | | peak of fit | of both |"
        yield "|---|---|---|---|---|---|---|---|"
        peaks = []
        for size in (1, 10, 100) if self.quick else (1, 10, 100, 1000):
            path = Path(self.folder) / f"size{size}.parquet"
            made = child("zipf_file", path=str(path), megabytes=size, words=100_000)
            one = child("file_once", path=str(path))
            size_here = made["bytes"] / 1e6
            both = one["peak"] - one["base"]
            peaks.append(one["fitted"] - one["base"])
            yield (f"| {size_here:.0f} MB | {path.stat().st_size / 1e6:.1f} MB | {one['fit']:.2f} s | "
                   f"{size_here / one['fit']:.0f} MB/s | {one['predict']:.2f} s | "
                   f"{size_here / one['predict']:.0f} MB/s | {peaks[-1]:.0f} MB | {both:.0f} MB |")  # fmt: skip
            self.curves.setdefault("size", []).append((size_here, peaks[-1], both))
            path.unlink()
        if not self.quick:
            grown = peaks[-1] / peaks[-2]
            yield ""
            yield "- " + aim(f"ten times the text takes {grown:.2f} times the memory", "< 1.5", grown < 1.5)

    def tuned(self) -> Iterator[str]:
        """Tuned fit"""
        labels = {"news_label": self.label, "sms_label": self.sms["label"]}
        found = child("tuned", folder=self.folder, **labels, turns=2 if self.quick else 3)
        yield "`BayesClassifier(Text())` chooses how texts are scored; plain is `tune=None`."
        yield ""
        yield "| corpus | plain | tuned | times as long |"
        yield "|---|---|---|---|"
        for name, title in (("news", "news"), ("sms", "messages")):
            times = found["times"]
            yield (f"| {title} | {min(times[f'{name} plain']):.3f} s | {min(times[f'{name} tuned']):.2f} s | "
                   f"{ratio(times, f'{name} tuned', f'{name} plain'):.1f} |")  # fmt: skip
        for name, title in (("news", "news"), ("sms", "messages")):
            yield from ["", f"Choice of tuning for the {title}:", "", "```", found["chosen"][name], "```"]

    def quality(self) -> Iterator[str]:
        """Quality on held-out documents"""
        peers = not self.quick
        yield "Log-loss in nats, probabilities clipped at 2e-16; calibration error in 15 bins. Peers choose alpha from"
        yield f"{', '.join(f'{value:g}' for value in ALPHAS)} or C from {', '.join(f'{v:g}' for v in STRENGTHS)} by"
        yield "cross-validation (3 folds for the news, 5 for messages) on the training texts: for their accuracy the"
        yield "value best by accuracy, for the rest that best by log-loss. Seconds include fit, choice and prediction."
        yield "For the news, C is chosen on the first fold alone, because it takes minutes."
        yield "scikit-learn's ComplementNB omits the class prior; deciban's kind includes it."
        if self.quick:
            yield "Here the tuned peers were left out (`--quick`), which makes the aims easy."
        news = child("quality_news", folder=self.folder, label=self.label, peers=peers)
        given = "a random split" if self.news["drawn"] else "the given split"
        yield from ["", f"### News, {given}: {news['train']:,} training documents, {news['test']:,} test documents", ""]
        yield from quality_lines({name: [one] for name, one in news["one"].items()})
        splits = 3 if self.quick else 10
        sms = child("quality_sms", folder=self.folder, label=self.sms["label"], peers=peers, splits=splits)
        yield from ["", f"### Messages, {splits} random splits, 70% training: means", ""]
        yield from quality_lines({name: [run[name] for run in sms["runs"]] for name in sms["runs"][0]})


def quality_lines(found: dict[str, list[Found]]) -> Iterator[str]:
    measures = ("accuracy", "log-loss", "calibration", "seconds")
    mean = {name: {m: statistics.mean(run[m] for run in runs) for m in measures} for name, runs in found.items()}
    yield "| method | accuracy | log-loss | calibration error | seconds | chosen |"
    yield "|---|---|---|---|---|---|"
    for name, one in mean.items():
        runs = found[name]
        chosen = ", ".join(f"{value:g}" for value in runs[0].get("chosen", [])) if len(runs) == 1 else ""
        yield (f"| {name} | {one['accuracy']:.4f} | {one['log-loss']:.4f} | {one['calibration']:.4f} | "
               f"{one['seconds']:.2f} | {chosen} |")  # fmt: skip
    mine = mean["deciban, default"]
    bayes = {name: one["accuracy"] for name, one in mean.items() if "NB" in name or "plain" in name}
    best = max(bayes, key=lambda name: bayes[name])
    losses = {name: one["log-loss"] for name, one in mean.items() if "logistic" in name}
    rival = min(losses, key=lambda name: losses[name])
    share = mine["log-loss"] / losses[rival]
    yield ""
    yield "- " + aim(f"accuracy {mine['accuracy']:.4f}, the best naive Bayes ({best}) {bayes[best]:.4f}", "not below",
                     mine["accuracy"] >= bayes[best])  # fmt: skip
    yield "- " + aim(f"log-loss {share:.2f} times that of the best {rival}", f"<= {LOSS:g}", share <= LOSS)


SECTIONS = ("speed", "starts", "memory", "threads", "vocabulary", "size", "tuned", "quality")


def draw(curves: dict[str, list[tuple[float, ...]]]) -> list[str]:
    """The plot of both growths, where matplotlib is there; the lines that show it."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for k, (title, style) in enumerate((("deciban fit", "o-"), ("deciban predict", "s-"), ("scikit-learn fit", "o:"),
                                        ("scikit-learn predict", "s:")), 1):  # fmt: skip
        points = [(point[0], point[k]) for point in curves["words"] if len(point) > k]
        left.loglog(*zip(*points, strict=True), style, color="tab:blue" if k < 3 else "tab:orange", label=title)
    left.set(xlabel="words", ylabel="MB/s")
    for k, (title, style) in enumerate((("fit", "o-"), ("fit and predict", "s:")), 1):
        points = [(point[0], point[k]) for point in curves["size"]]
        right.semilogx(*zip(*points, strict=True), style, label=title)
    right.set(xlabel="MB of text in a Parquet file", ylabel="peak beyond the imports, MB", ylim=(0, None))
    for axis in (left, right):
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(HERE / "text.png", dpi=80)
    return ["", "![Speed by number of words, memory by size of the file](text.png)"]


def main(options: Namespace) -> None:
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        page = Page(folder, options.data, options.quick)
        lines = page.head()
        quality = [
            "# Texts",
            "",
            "Written by `python bench/text.py --write`; [SPEED.md](SPEED.md) describes the texts.",
        ]
        print("\n".join(lines), flush=True)
        for name in options.sections or SECTIONS:
            section = getattr(page, name)
            start = time.perf_counter()
            try:
                found = list(section())
            except (KeyError, ValueError) as failure:  # its process has said why
                found = [f"This section failed: {failure!r}"]
            part = ["", f"## {section.__doc__}", "", *found]
            print("\n".join(part), flush=True)
            print(f"  {name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
            (quality if name == "quality" else lines).extend(part)
    if options.write:
        lines += draw(page.curves)
        lines += ["", f"The whole run took {(time.perf_counter() - begun) / 60:.1f} minutes."]
        write_part("SPEED.md", "text.py", lines)
        write_part("ACCURACY.md", "text.py", quality)


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--data", default=str(HERE.parent.parent / "shared" / "data"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--task", nargs=2, metavar=("NAME", "ARGUMENTS"))
    given = parser.parse_args()
    if given.task:
        print(json.dumps(TASKS[given.task[0]](**json.loads(given.task[1]))))
    elif unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(unknown)}; choose among {', '.join(SECTIONS)}")
    elif given.write and given.sections:
        parser.error("--write needs all sections: a page is of one run")
    else:
        main(given)
