"""Threads that read see one model, the old or the new, while another thread learns."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from deciban import BayesClassifier
from tests import textbook


def read_while_learning(read: Callable[[], None], learn: Callable[[], None]) -> None:
    """Three threads read over and over from the first row on, and once more when all is learned."""
    learned, started = threading.Event(), threading.Barrier(4)

    def read_on() -> None:
        started.wait()
        while not learned.is_set():
            read()
        read()

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read_on) for _ in range(3)]
        try:
            started.wait()
            learn()
        finally:
            learned.set()
        for reader in readers:
            reader.result()


def assert_one_generation(clf: BayesClassifier, x: float) -> None:
    evidence = clf.evidence([[x]])
    assert evidence.values.shape[2] == evidence.classes.size


def test_readers_see_one_model_while_classes_come_in_front() -> None:
    """New classes sort first, so a label read with another generation's places would be wrong."""
    clf = textbook().fit([[1000.0], [1001.0]], [1000, 1000])

    def read() -> None:
        assert clf.predict([[1000.5]])[0] == 1000
        assert_one_generation(clf, 1000.5)

    def learn() -> None:
        for label in range(999, 900, -1):
            clf.partial_fit([[float(label) - 500.0], [float(label) - 501.0]], [label, label])

    read_while_learning(read, learn)
    assert clf.classes_.size == 100


def test_readers_never_see_half_a_model() -> None:
    """While one thread keeps learning, readers must see the sum of probabilities and one generation of classes."""
    clf = textbook().fit([[0.0], [1.0]], [0, 1])

    def read() -> None:
        fitted = clf.fitted_
        assert fitted.log_prior.size == fitted.counts.classes.size
        assert_one_generation(clf, 0.5)
        assert abs(clf.predict_proba([[0.5]]).sum() - 1.0) <= 1e-12
        assert clf.predict([[0.5]])[0] in range(60)

    def learn() -> None:
        for label in range(60):
            clf.partial_fit([[float(label)]], [label])

    read_while_learning(read, learn)
    assert clf.classes_.size == 60
