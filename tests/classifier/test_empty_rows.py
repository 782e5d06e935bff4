"""A row of which nothing is known is answered everywhere: all its cells are missing."""

import json

import numpy as np
import pytest

from deciban import BayesClassifier, DataError, SchemaError
from deciban.datasets import weather
from tests import textbook

PRIOR = [5 / 14, 9 / 14]


def test_rows_without_columns_have_the_prior() -> None:
    clf = textbook().fit(weather(), "play")
    for rows in (1, 3):
        X = [{}] * rows
        np.testing.assert_allclose(clf.predict_proba(X), [PRIOR] * rows)
        assert clf.predict(X).tolist() == ["yes"] * rows
        np.testing.assert_allclose(clf.log_joint(X), np.log([PRIOR] * rows))
        np.testing.assert_array_equal(clf.evidence(X).values, 0.0)
        np.testing.assert_array_equal(clf.evidence(X, by="column").values, 0.0)
        assert "P(yes) = 0.642857" in str(clf.explain(X))
        assert clf.decide(X).decision.tolist() == ["yes"] * rows
        np.testing.assert_allclose(clf.log_density(X), 0.0, atol=1e-12)
        assert [piece.column_names for piece in clf.predict_batches(X)] == [["predicted", "probability"]]
        assert clf.predict_interval(X)[0].shape == (rows, 2)


def test_a_model_without_names_answers_too() -> None:
    clf = textbook().fit(np.arange(12.0).reshape(6, 2), [0, 0, 1, 1, 1, 1])
    np.testing.assert_allclose(clf.predict_proba([{}]), [[1 / 3, 2 / 3]])


def test_other_tables_without_known_columns_are_refused() -> None:
    clf = textbook().fit(weather(), "play")
    for X in ([{"moon": "full"}], [{"moon": None}], {}):
        with pytest.raises(SchemaError, match="none of the model's columns"):
            clf.predict(X)
    with pytest.raises(DataError, match="nothing to learn from"):
        BayesClassifier().fit([{}, {}], [0, 1])


@pytest.mark.parametrize("text", ["{}\n{}\n", "[{}, {}]", "{}\r\n\n{}"])
def test_files_of_empty_objects(tmp_path, text: str) -> None:
    clf = textbook().fit(weather(), "play")
    file = tmp_path / "rows.json"
    file.write_text(text)
    np.testing.assert_allclose(clf.predict_proba(str(file)), [PRIOR] * 2)
    (tmp_path / "other.json").write_text('{"json": "x"}')
    with pytest.raises(SchemaError, match="its columns are 'json'"):
        clf.predict(str(tmp_path / "other.json"))
    assert clf.predict_to(tmp_path / "out.jsonl", str(file)) == 2
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [list(row) for row in written] == [["predicted", "probability"]] * 2
