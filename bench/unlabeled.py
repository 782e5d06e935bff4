"""Rows without a label: `BayesClassifier(unlabeled="em")` against ignoring them.

    pip install -r bench/requirements.txt
    python bench/unlabeled.py [--seeds N] [--news 20news.parquet] [--write]

Tables: of each table at most 4,000 rows; a third is the test part, and 5 % of the others (at least 20) keep their
label. All settings but `unlabeled` are defaults, and the classes are declared. "change" is the mean over seeds of the
log-loss with `unlabeled="em"` less that without, and its standard error; "used" is the number of seeds in which the
rows without a label are used.

Texts, one draw: 3,000 documents of the training part of 20 Newsgroups (columns part, group and text), of which a few
keep their label, and 1,500 of the test part. Peers: Nigam's EM of multinomial naive Bayes (10 rounds, alpha 0.1;
weight 1, and weight 0.1), scikit-learn's SelfTrainingClassifier(MultinomialNB) with its defaults, and LabelSpreading on
TF-IDF with 10 neighbors. Words of at least 2 texts, without stop words, are those of the peers.

Run it with OMP_NUM_THREADS=1; --write writes bench/UNLABELED.md. Results are kept in bench/.unlabeled.
"""

import argparse
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import sklearn
from scipy.special import logsumexp
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

import tables
from deciban import BayesClassifier

HERE = Path(__file__).parent
CACHE = HERE / ".unlabeled"
MAX_ROWS = 4_000
SHARE, FEWEST = 0.05, 20
NAMES = [
    "splice",
    "mushroom",
    "chess",
    "german",
    "contraceptive",
    "spambase",
    "segment",
    "penbased",
    "satimage",
    "vehicle",
]
NAMES += ["phoneme", "magic", "digits", "hpc", "churn", "attrition", "credit", "hawks", "titanic", "email"]
LABELED = (20, 60, 200, 600, 2_000)
DOCUMENTS, TESTED = 3_000, 1_500
TINY = 1e-9
METHODS = ("deciban, ignored", "deciban, em", "naive Bayes, ignored", "Nigam's EM", "Nigam's EM, weight 0.1",
           "self-training", "label spreading")  # fmt: skip


def metrics(posterior: np.ndarray, classes: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    """Log-loss and accuracy."""
    place = np.searchsorted(classes, true.astype(classes.dtype))
    own = posterior[np.arange(len(true)), place]
    return float(-np.log(np.maximum(own, TINY)).mean()), float((posterior.argmax(axis=1) == place).mean())


def measure_table(name: str, seeds: int) -> list[list[float]]:
    """For each seed: log-loss and accuracy without and with the rows, whether they are used, and the CPU seconds."""
    X, y = tables.load(name, MAX_ROWS)
    found = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = order[: len(y) // 3], order[len(y) // 3 :]
        given = np.full(len(y), None, dtype=object)
        known = train[: max(round(SHARE * train.size), FEWEST)]
        given[known] = y[known]
        one: list[float] = []
        for unlabeled in (None, "em"):
            start = time.process_time()
            clf = BayesClassifier(classes=np.unique(y), unlabeled=unlabeled).fit(X.iloc[train], given[train])
            seconds = time.process_time() - start
            one += metrics(clf.predict_proba(X.iloc[test]), clf.classes_, y[test])
        expected = clf.tuning_ and clf.tuning_.unlabeled
        found.append([*one, float(bool(expected and expected.counts)), seconds, known.size])
    return found


def nigam(X: Any, codes: np.ndarray, classes: int, weight: float, rounds: int = 10, alpha: float = 0.1) -> Any:
    """Multinomial naive Bayes by EM; codes: -1 without a label."""
    known = codes >= 0
    shares = np.zeros((codes.size, classes))
    shares[np.flatnonzero(known), codes[known]] = 1.0
    for _ in range(rounds + 1):
        words = X.T @ shares
        log_words = np.log((words + alpha) / (words.sum(axis=0) + alpha * X.shape[1]))
        log_prior = np.log((shares.sum(axis=0) + alpha) / (shares.sum() + alpha * classes))
        joint = X @ log_words + log_prior
        shares[~known] = weight * np.exp(joint - logsumexp(joint, axis=1, keepdims=True))[~known]
    return lambda Z: np.exp((joint := Z @ log_words + log_prior) - logsumexp(joint, axis=1, keepdims=True))


def measure_texts(path: Path) -> Iterator[tuple[int, str, tuple[float, float], float]]:
    """For each number of labels and method: log-loss and accuracy, and CPU seconds."""
    read = pq.read_table(path)
    part, group = (np.array(read[name].to_pylist()) for name in ("part", "group"))
    texts = np.array(read["text"].to_pylist(), dtype=object)
    random = np.random.default_rng(0)
    train = random.permutation(np.flatnonzero(part == "train"))[:DOCUMENTS]
    test = random.permutation(np.flatnonzero(part == "test"))[:TESTED]
    classes, codes = np.unique(group, return_inverse=True)
    first = [np.flatnonzero(codes[train] == c) for c in range(classes.size)]  # as many of each class
    turns = np.array([one[k] for k in range(min(map(len, first))) for one in first])
    train = train[np.concatenate([turns, np.setdiff1d(np.arange(train.size), turns)])]
    words = CountVectorizer(min_df=2, stop_words="english").fit(texts[train])
    X, Z = words.transform(texts[train]), words.transform(texts[test])
    for size in LABELED:
        given = np.where(np.arange(train.size) < size, codes[train], -1)
        methods = list_methods(texts[train], texts[test], X, Z, given)
        for name, method in zip(METHODS, methods, strict=True):
            start = time.process_time()
            posterior = np.nan_to_num(method(), nan=1.0 / classes.size)
            yield size, name, metrics(posterior, np.arange(classes.size), codes[test]), time.process_time() - start


def list_methods(texts: np.ndarray, tested: np.ndarray, X: Any, Z: Any, given: np.ndarray) -> list[Callable[[], Any]]:
    """Return functions that return the posteriors of the tested texts, in the order of METHODS."""
    classes, known = int(given.max()) + 1, given >= 0
    tf_idf = TfidfTransformer(sublinear_tf=True).fit(X)

    def own(unlabeled: str | None) -> Any:
        labels = np.where(known, given.astype(object), None)
        clf = BayesClassifier(unlabeled=unlabeled).fit({"text": texts.tolist()}, labels)
        return clf.predict_proba({"text": tested.tolist()})

    def spread() -> Any:
        rows, others = (tf_idf.transform(part).toarray().astype(np.float32) for part in (X, Z))
        return LabelSpreading(kernel="knn", n_neighbors=10).fit(rows, given).predict_proba(others)

    return [
        lambda: own(None),
        lambda: own("em"),
        lambda: MultinomialNB(alpha=0.1).fit(X[known], given[known]).predict_proba(Z),
        lambda: nigam(X, given, classes, 1.0)(Z),
        lambda: nigam(X, given, classes, 0.1)(Z),
        lambda: SelfTrainingClassifier(MultinomialNB(alpha=0.1)).fit(X, given).predict_proba(Z),
        spread,
    ]


def cached(name: str, measure: Callable[[], Any]) -> Any:
    file = CACHE / f"{name}.json"
    if not file.is_file():
        found = measure()
        CACHE.mkdir(exist_ok=True)
        file.write_text(json.dumps(found))
        print(name, found, flush=True)
    return json.loads(file.read_text())


def report(results: dict[str, list[list[float]]], news: list[list[Any]]) -> list[str]:
    lines = [
        "# Rows without a label",
        "",
        f"`python bench/unlabeled.py --write`; scikit-learn {sklearn.__version__}, Python {platform.python_version()}.",
        "",
        *(__doc__ or "").split("\n\n", 2)[2].strip().splitlines(),
        "",
        f"## {len(results)} tables",
        "",
        "| table | labels | log-loss, ignored | em | change | accuracy, ignored | em | used | CPU seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    changes = []
    for name, seeds in results.items():
        array = np.array(seeds)
        loss, right, em_loss, em_right, _, seconds, labels = array.mean(axis=0)
        change = array[:, 2] - array[:, 0]
        error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.nan
        changes.append((float(change.mean()), float(em_right - right)))
        lines.append(
            f"| {name} | {labels:.0f} | {loss:.4f} | {em_loss:.4f} | {change.mean():+.4f} ± {error:.4f} | "
            f"{right:.4f} | {em_right:.4f} | {array[:, 4].sum():.0f} of {len(array)} | {seconds:.1f} |"
        )
    each, every = np.array(changes), np.array([one for seeds in results.values() for one in seeds])
    runs = every[:, 2] - every[:, 0]
    lines += [
        "",
        f"Mean change of the log-loss {each[:, 0].mean():+.4f}, of the accuracy {each[:, 1].mean():+.4f}; in "
        f"{int((runs < 0).sum())} of {runs.size} runs the log-loss falls, in {int((runs > 0).sum())} it rises, at most "
        f"by {runs.max():.4f}.",
    ]
    if not news:
        return lines
    sizes = sorted({size for size, *_ in news})
    for title, place in (("accuracy", 1), ("log-loss", 0)):
        lines += ["", f"## 20 Newsgroups: {title} by number of labels", ""]
        lines += [f"| method | {' | '.join(map(str, sizes))} |", "|---" * (len(sizes) + 1) + "|"]
        for method in METHODS:
            cells = [np.mean([one[2][place] for one in news if one[:2] == [size, method]]) for size in sizes]
            lines.append(f"| {method} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")
    lines += ["", "CPU seconds for 200 labels, prediction included: " + ", ".join(
        f"{method} {np.mean([one[3] for one in news if one[:2] == [200, method]]):.1f}" for method in METHODS
    ) + "."]  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--news", type=Path, help="the parquet file of 20 Newsgroups")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    news: list[list[Any]] = []
    if options.news is not None:
        news = cached("news", lambda: [list(one) for one in measure_texts(options.news)])
    results = {name: cached(name, lambda name=name: measure_table(name, options.seeds)) for name in NAMES}
    lines = report(results, news)
    print("\n".join(lines))
    if options.write:
        (HERE / "UNLABELED.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
