"""Bad input gets one clear error: where, why, what to do."""

import numpy as np
import pyarrow as pa
import pytest

import deciban as dc
from deciban import BayesClassifier
from deciban.errors import Place

X, Y = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), ["a", "b", "a"]
FRAME = pa.table({"age": [1.0, 2.0, 3.0], "town": ["x", "y", "x"]})


def with_cell(value: float) -> np.ndarray:
    changed = X.copy()
    changed[1, 1] = value
    return changed


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: BayesClassifier(classes=["a", "c"]).fit(X, Y), ["'b'", "declared classes", "classes="]),
        (lambda: BayesClassifier().fit(X, Y, [1.0, -1.0, 1.0]), ["row 1", "-1.0", "not negative"]),
        (lambda: BayesClassifier().fit(X, Y, [1.0, np.nan, 1.0]), ["row 1", "nan", "finite"]),
        (lambda: BayesClassifier().fit(X, Y, [1.0, 1.0]), ["2 weights for 3 rows"]),
        (lambda: BayesClassifier(prior=[0.5, 0.6]).fit(X, Y), ["the prior probabilities sum to 1.1; they must"]),
        (lambda: BayesClassifier(prior=[1.5, -0.5]).fit(X, Y), ["the prior contains -0.5", "from 0 to 1"]),
        (lambda: BayesClassifier(prior=[1.0]).fit(X, Y), ["1 probabilities for 2 classes"]),
        (lambda: BayesClassifier(prior={"a": 0.5, "z": 0.5}).fit(X, Y), ["unknown class 'z'", "['a', 'b']"]),
        (lambda: BayesClassifier(prior={"a": 1.0}).fit(X, Y), ["no probability for the class 'b'"]),
        (lambda: BayesClassifier(prior="fair").fit(X, Y), ["'fair'", "'uniform'"]),
        (lambda: BayesClassifier().fit(with_cell(np.inf), Y), ["column 'x1', row 1", "inf", "leave the cell empty"]),
        (lambda: BayesClassifier().fit(with_cell(1e200), Y), ["column 'x1', row 1", "number up to", "smaller units"]),
        (lambda: BayesClassifier().fit(X, Y).predict(with_cell(-np.inf)), ["column 'x1', row 1", "-inf", "finite"]),
        (lambda: BayesClassifier(dc.JointGaussian()).fit(with_cell(np.inf), Y), ["column 'x1', row 1", "finite"]),
        (
            lambda: BayesClassifier().fit(FRAME, Y).predict([{"age": 1.0}, {"age": None}, {"age": "old"}]),
            ["column 'age'", "several types"],
        ),
        (
            lambda: BayesClassifier().fit(FRAME, Y).predict([{"age": None}, {"age": "old"}]),
            ["column 'age', row 1", "'old'"],
        ),
        (
            lambda: BayesClassifier().fit(FRAME, Y).predict([{"town": 7}]),
            ["column 'town': expected text", "found numbers such as 7"],
        ),
        (lambda: BayesClassifier().fit(np.zeros((0, 2)), []), ["0 sample(s)", "nothing to learn"]),
        (lambda: BayesClassifier().fit(np.zeros((3, 0)), Y), ["0 feature(s)"]),
        (lambda: BayesClassifier().fit(X, [None, None, None]), ["every label is missing", "at least one row"]),
        (lambda: BayesClassifier().fit(X, Y, [0, 0, 0]), ["every weight is zero"]),
        (lambda: BayesClassifier().fit(X, [0.5, 0.25, 0.1]), ["Unknown label type: continuous", "classes"]),
        (lambda: BayesClassifier().fit(X, np.array(["a", 1, {}], dtype=object)), ["the labels mix", "one type"]),
        (lambda: BayesClassifier().fit(X, Y[:2]), ["3 rows but 2 labels"]),
        (lambda: BayesClassifier().fit(X, "play"), ["no names", "pass an array"]),
        (lambda: BayesClassifier().fit(FRAME, "play"), ["y='play': no such column", "'age', 'town'"]),
        (lambda: BayesClassifier().fit(FRAME, None), ["y", "None"]),
        (lambda: BayesClassifier({"agee": dc.Gaussian()}).fit(FRAME, Y), ["'agee'", "'town' (only partial_fit"]),
        (lambda: BayesClassifier({"age": dc.Gaussian}).fit(FRAME, Y), ["instance: Gaussian()"]),
        (lambda: BayesClassifier({"age": "gauss"}).fit(FRAME, Y), ["family such as Gaussian()"]),
        (
            lambda: BayesClassifier({"age": dc.Gaussian(), ("age", "town"): dc.JointGaussian()}).fit(FRAME, Y),
            ["'age' twice", "one block"],
        ),
        (
            lambda: BayesClassifier({"town": dc.Gaussian()}).fit(FRAME, Y),
            ["column 'town', row 0", "'x'", "Categorical()"],
        ),
        (lambda: BayesClassifier(dc.Bernoulli()).fit(X, Y), ["column 'x1', row 0", "2.0", "0 or 1", "threshold="]),
        (lambda: BayesClassifier(dc.Poisson()).fit(X + 0.5, Y), ["row 0", "1.5", "0, 1, 2", "Gamma()"]),
        (lambda: BayesClassifier(dc.Multinomial()).fit(with_cell(-1.0), Y), ["column 'x1', row 1", "-1.0", "negative"]),
        (lambda: BayesClassifier(dc.LogNormal()).fit(with_cell(0.0), Y), ["column 'x1', row 1", "above 0", "Binned()"]),
        (lambda: BayesClassifier(dc.Gamma()).fit(with_cell(-2.0), Y), ["column 'x1', row 1", "-2.0", "above 0"]),
        (lambda: BayesClassifier(dc.Categorical(levels=(1, 2))).fit(X, Y), ["'x0'", "one of its levels", "levels="]),
        (lambda: BayesClassifier().fit(X, Y).predict(X[:, :1]), ["1 features", "expecting 2"]),
        (lambda: BayesClassifier().fit(X, Y).partial_fit(X[:, :1], Y), ["1 features", "expecting 2"]),
        (lambda: BayesClassifier().fit(FRAME, Y).predict(pa.table({"b": [1]})), ["none of the model's columns", "'b'"]),
        (lambda: BayesClassifier().fit(FRAME, Y).partial_fit(FRAME, [1, 2, 3]), ["'a' and", "different types"]),
        (lambda: BayesClassifier().fit(FRAME, Y) + BayesClassifier().fit(X, Y), ["cannot merge the tables"]),
        (
            lambda: BayesClassifier().fit(FRAME, Y) + BayesClassifier({"age": dc.Categorical()}).fit(FRAME, Y),
            ["column 'age'", "Gaussian()", "Categorical()", "families="],
        ),
        (lambda: BayesClassifier().fit([[1.0, 2.0], [3.0]], Y[:2]), ["same number of cells"]),
        (lambda: BayesClassifier().fit({"a": [1, 2], "b": [1]}, Y), ["different lengths"]),
        (lambda: BayesClassifier().fit([1.0, 2.0], Y[:2]), ["Expected 2D array"]),
        (lambda: BayesClassifier().fit(b"1,2", Y), ["b'1,2'", "file name as str"]),
        (lambda: BayesClassifier().fit(pa.table({"a": [[1], [2], [3]]}), Y), ["column 'a'", "list", "text or numbers"]),
        (lambda: dc.Categorical(alpha=-1), ["alpha=-1", "at least 0"]),
        (lambda: dc.Gaussian(var_smoothing=-1.0), ["var_smoothing=-1.0", "at least 0"]),
        (lambda: dc.Categorical(unseen="skip"), ["'skip'", "'ignore'"]),
        (lambda: dc.Gaussian(floor=np.inf), ["floor=inf"]),
        (lambda: dc.Shrunk(2.0), ["amount=2.0", "between 0 and 1"]),
        (lambda: dc.Binned(bins=0), ["bins=0"]),
        (lambda: BayesClassifier(alpha="much").fit(X, Y), ["alpha='much'"]),
    ],
)  # fmt: skip
def test_the_error_names_place_cause_and_remedy(action, words: list[str]) -> None:
    with pytest.raises(dc.DecibanError) as caught:
        action()
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_rows_are_counted_in_the_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deciban.model.batches.BATCH_ROWS", 10)
    table = np.zeros((35, 2))
    table[27, 1] = np.inf
    with pytest.raises(dc.DecibanError, match="column 'x1', row 27"):
        BayesClassifier().fit(table, np.arange(35) % 2)


def test_the_place_of_a_column_of_several_kinds_is_a_value() -> None:
    with pytest.raises(dc.DataError, match="column 'a': its cells have several types") as caught:
        BayesClassifier().fit({"a": [1, "x", 2.0]}, [0, 1, 0])
    assert caught.value.place == Place(column="a")
    assert caught.value.remedy == "use one type in the column: numbers or text"
