"""A model file of a stranger with a right checksum is refused or works: no petabytes, no endless loops, no faults."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Categorical, Complement, JointGaussian, Pooled, Shrunk, Text
from tests.store.models import every_family
from tests.store.mutations import swept
from tests.support.model_files import content


def of_texts() -> tuple[BayesClassifier, pa.Table]:
    """A model of texts, with buckets of rare words."""
    words = ["the cat sat", "a dog barked at the moon", "cats sit here", "the moon is out"] * 5
    rows = pa.table({"t": [f"{text} {k}x" for k, text in enumerate(words)], "u": words})
    spec: Any = {"t": Text(max_features=16), "u": Text(kind="bernoulli")}
    return BayesClassifier(spec, tune=None).fit(rows, [k % 2 == 0 for k in range(len(words))]), rows.slice(0, 4)


def of_other_families() -> tuple[BayesClassifier, pa.Table]:
    """What the others lack: levels that are integers, given or dates, scores, pooled variances, words in pairs."""
    n = np.arange(24)
    rows = pa.table(
        {
            "kind": n % 5,
            "given": [["x", "y"][k % 2] for k in n],
            "time": pa.array(n * 10**9, pa.timestamp("us")),
            "clock": pa.array(n * 10**6, pa.time64("us")),
            **{name: (n * k % 7 + 1).astype(float) for k, name in enumerate("abcdef", 2)},
            "words": [f"one two {k % 3} three" for k in n],
            "letters": [f"abc{k % 4}" for k in n],
        }
    )
    spec: Any = {
        "kind": Categorical(unseen="smooth"),
        "given": Categorical(levels=("x", "y", "z")),
        ("a", "b"): Complement(norm=True),
        ("c", "d"): JointGaussian(Pooled()),
        ("e", "f"): JointGaussian(Shrunk(0.3)),
        ("words",): Text(kind="lift", ngram_range=(1, 2)),
        ("letters",): Text(kind="complement", analyzer="char", ngram_range=(1, 3), tempering=0.5),
    }
    return BayesClassifier(spec, tune=None, prior="smoothed").fit(rows, n % 3), rows.slice(0, 4)


def of_columns(tune: Any = None) -> tuple[BayesClassifier, pa.Table]:
    clf, rows = every_family(tune)
    return clf, rows.slice(0, 4)


MODELS: dict[str, Callable[[], tuple[BayesClassifier, pa.Table]]] = {
    "every family": of_columns,
    "tuned": lambda: of_columns("auto"),
    "texts": of_texts,
    "others": of_other_families,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", MODELS)
def test_rewritten_content_is_refused_or_works(name: str, tmp_path: Path) -> None:
    clf, rows = MODELS[name]()
    found, faults = swept(content(clf), rows, 80, 1, tmp_path)
    assert not faults, "\n".join(faults)
    assert found["refused"] > 10
    assert found["works"] + found["complains"] > 10  # of what only scores no rows can be drawn
