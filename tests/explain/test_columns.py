"""The evidence of columns adds up to the log joint and to what is told, for every family, plain and tuned."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer

from deciban import BayesClassifier, JointGaussian, JointTable, Multinomial, Pooled, UsageError
from deciban.explain.calculation import roll_up
from deciban.explain.columns import compute_column_evidence
from deciban.explain.explanation import Explanation
from deciban.scoring.predict import align_rows
from deciban.testing import take_rows
from tests import textbook
from tests.laws.cases import CASES, Case

LABELS = np.array(["one", "two", "three"])


def check_sums(clf: BayesClassifier, X: Any) -> None:
    """Columns add up to blocks, blocks to the log joint, that to the posterior."""
    columns, blocks = clf.evidence(X, by="column"), clf.evidence(X)
    joint = clf.log_joint(X)
    size = np.maximum(1.0, np.abs(np.where(np.isfinite(joint), joint, 0.0)))
    assert (np.isnan(columns.values)).sum() == 0
    here = np.isfinite(joint)
    for found in (columns.log_joint, blocks.log_joint):
        np.testing.assert_array_equal(np.isfinite(found), here)
        assert (np.abs(found - joint)[here] <= 1e-12 * size[here]).all()
    own = (blocks.weighted.sum(axis=1) + blocks.bias)[here]
    assert (np.abs(columns.values.sum(axis=1)[here] - own) <= 1e-12 * size[here]).all()
    said = clf.predict_log_proba(X)
    np.testing.assert_allclose(np.exp(columns.log_posterior), np.exp(said), atol=1e-11)
    for by in ("column", "block"):
        check_printed_sums(clf, take_rows(X, slice(0, 4)), joint, by)


def check_printed_sums(clf: BayesClassifier, X: Any, joint: Any, by: str) -> None:
    """Prior, columns (or blocks) and limit are all that there is, in this order, and their sum is the log-odds."""
    explained = clf.explain(X, by=by)
    for row in range(explained.table.rows):
        reasons = explained.to_dict(row)
        if reasons["against"] is None:
            continue
        best, other = np.sort(joint[row])[::-1][:2]
        expected = 10 / np.log(10) * (best - other)
        assert reasons["sum"] == pytest.approx(expected, rel=1e-11, abs=1e-9 * max(1.0, abs(best)))
        terms = [term["term" if by == "column" else "block"] for term in reasons["evidence"]]
        assert terms[0] == "prior"
        assert "limit" not in terms[:-1]
        assert "bias" not in terms


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("tune", [None, "weights", "auto"])
def test_columns_add_up_for_every_family(case: Case, tune: Any) -> None:
    rng = np.random.default_rng(17)
    X = case.draw(rng, 120)
    clf = BayesClassifier(case.spec, tune=tune).fit(X, LABELS[rng.integers(0, 3, 120)])
    check_sums(clf, take_rows(X, slice(0, 25)))
    check_sums(clf, case.draw(np.random.default_rng(99), 25))  # with unseen values and words


def test_columns_add_up_in_a_mixed_table_with_overlapping_blocks() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 600)
    kind = np.array(["x", "y", "z", None], dtype=object)[(y + rng.integers(0, 2, 600)) % 4]
    table = pd.DataFrame({
        "a": rng.normal(size=600), "b": rng.normal(y), "c": rng.normal(size=600), "kind": kind,
        "note": np.where(rng.random(600) < 0.3, "good news today", "bad news"), "constant": 1.0,
    })  # fmt: skip
    table["c"] = table["a"] + 0.3 * y + 0.1 * table["c"]
    table.loc[::7, "b"] = np.nan
    clf = BayesClassifier().fit(table, LABELS[y])
    check_sums(clf, table[:60])
    found = clf.evidence(table[:60], by="column")
    assert found.columns == tuple(table.columns)
    assert (found.values[:, 5] == 0.0).all()  # a column that does not vary says nothing
    assert found.joint.any()
    far = pa.table({"a": [1e9, None], "b": [-1e9, None], "c": [0.0, None], "kind": ["new", None], "note": ["", None]})
    check_sums(clf, far)


def test_a_column_that_the_model_ignores_has_no_share() -> None:
    rng = np.random.default_rng(6)
    y = np.arange(4_000) % 2
    a, b = rng.normal(y, 1.0), rng.normal(-y, 1.0)
    noise = np.tile([-1.0, 1.0, 1.0, -1.0], 1_000) * np.repeat(rng.normal(size=2_000), 2)
    X = np.column_stack([a, b, noise])
    clf = textbook(JointGaussian(Pooled())).fit(X, y)
    said = clf.evidence(X[:50], by="column").joint
    odds = said[:, :, 1] - said[:, :, 0]
    assert np.abs(odds[:, 2]).max() < 0.2 < np.abs(odds[:, :2]).max()
    words = {"a": np.where(y > 0, "u", "v"), "b": np.tile(["p", "p", "q", "q"], 1_000)}
    table = textbook({("a", "b"): JointTable(alpha=0.5)}).fit(words, y).evidence(words, by="column").joint
    np.testing.assert_allclose(table[:, 1, 0], table[:, 1, 1], atol=1e-12)


def test_what_is_printed_names_columns_and_adds_up() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    clf = BayesClassifier().fit(X, y.map({0: "malignant", 1: "benign"}))
    found = clf.explain(X[:3])
    odds = np.sort(clf.log_joint(X[:3]), axis=1)
    for row in range(3):
        reasons = found.to_dict(row)
        assert reasons["sum"] == pytest.approx(10 / np.log(10) * (odds[row, 1] - odds[row, 0]), abs=1e-9)
        for term in reasons["evidence"]:
            if term["term"] == "column":
                parts = term["own"] + term["joint"] + term["correction"]
                assert term["decibans"] == pytest.approx(parts, abs=1e-12)
                assert term["decibans"] == pytest.approx(10 / np.log(10) * term["nats"], abs=1e-12)
                assert term["value"] == X.iloc[row][term["column"]]
        lines = found.summary(row).splitlines()
        assert "columns as JointGaussian" not in found.summary(row)
        assert lines[2].split() == ["total", "own", "joint", "correction"]
        label = next(term["column"] for term in reasons["evidence"] if term["column"])
        assert any(line.startswith(f"{label} = ") for line in lines)
    frame = found.to_frame()
    assert set(frame["row"]) == {0, 1, 2}
    assert frame.groupby("row")["decibans"].sum().tolist() == pytest.approx([found.to_dict(r)["sum"] for r in range(3)])
    by_block = clf.explain(X[:3], by="block")
    assert "columns as JointGaussian" in str(by_block)
    assert set(by_block.to_frame()["block"]) >= {"prior", "worst area"}
    for row in range(3):
        assert by_block.to_dict(row)["sum"] == pytest.approx(found.to_dict(row)["sum"], abs=1e-9)


def test_word_counts_of_0_are_one_term() -> None:
    """In a tuned model they have offsets."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    counts = rng.poisson(np.where(y[:, None] == 1, [2.0, 0.5, 1.0, 1.0], [0.5, 2.0, 1.0, 0.3]))
    table = pd.DataFrame(counts, columns=list("abcd")).assign(z=rng.normal(y))
    clf = BayesClassifier({("a", "b", "c", "d"): Multinomial()}).fit(table, y)
    assert clf.model_.partial is not None
    assert clf.model_.partial.offsets.any()
    check_printed_sums(clf, table[:40], clf.log_joint(table[:40]), "column")
    row = {"a": 0, "b": 0, "c": 3, "d": 0, "z": 0.5}
    reasons = clf.explain([row]).to_dict(0)
    assert sorted(term["column"] for term in reasons["evidence"] if term["term"] == "column") == ["c", "z"]
    (rest,) = [term for term in reasons["evidence"] if term["term"] == "counts of 0"]
    values = clf.evidence([row], by="column").values[0, [0, 1, 3]].sum(axis=0)
    assert abs(rest["nats"]) == pytest.approx(abs(values[1] - values[0]), abs=1e-12)
    assert "3 counts of 0" in str(clf.explain([row]))


def test_a_block_is_its_likelihood_and_the_offsets_of_its_columns() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    clf = BayesClassifier().fit(X, y)
    row = X[19:20].copy()
    row["mean area"] = np.nan
    by_block, by_column = clf.explain(row, by="block"), clf.explain(row)
    blocks = {term["block"]: term for term in by_block.to_dict(0)["evidence"]}
    for term in by_column.to_dict(0)["evidence"]:
        if term["column"]:
            alone = blocks[term["column"]]
            assert alone["likelihood"] + alone["offset"] == pytest.approx(term["own"], abs=1e-9)
            assert alone["decibans"] == pytest.approx(term["own"], abs=1e-9)
    assert blocks["mean area"]["offset"] == 0.0 != blocks["worst area"]["offset"]
    steps = by_block.steps(0)
    for label in "01":
        assert sum(block["log_offset"][label] for block in steps["blocks"]) == pytest.approx(steps["log_offset"][label])
        found = sum(block["log_correction"][label] for block in steps["blocks"])
        assert found == pytest.approx(steps["log_correction"][label], abs=1e-12)
    assert "(joint = prior × each likelihood to the power of its weight × offsets × corrections)" in str(by_block)


def test_the_limit_is_the_last_term_and_is_explained() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    clf = BayesClassifier().fit(X, y)
    row = int((clf.model_.limit - np.ptp(clf.log_joint(X) - clf.model_.log_prior, axis=1)).argmin())
    for by in ("column", "block"):
        explained = clf.explain(X[row : row + 1], by=by)
        assert explained.terms(0)[-1].label == "limit"
        text = explained.summary(0)
        most = 10 / np.log(10) * clf.model_.limit
        assert f"(limit: the training rows support at most {most:.0f} decibans of total evidence)" in text
        assert text.index("\nlimit ") < text.index("\nsum ")
        assert [name for name, _ in roll_up(explained.terms(0), 3)][-2:] == [
            f"{len(explained.terms(0)) - 5} others",
            "limit",
        ]


def test_evidence_is_told_by_column_or_by_block() -> None:
    clf = textbook().fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    for call in (clf.explain, clf.evidence):
        with pytest.raises(UsageError, match="by='rows': choose 'column', or 'block'"):
            call([[1.0]], by="rows")


@pytest.mark.parametrize("columns", [
    {(0, 1, 2): JointGaussian()}, {(0, 1, 2): JointTable(alpha=0)}, {(0, 1): JointTable(alpha=0.5)}, None,
], ids=str)  # fmt: skip
def test_columns_add_up_where_each_row_is_left_out(columns: Any) -> None:
    """Also where a row was the only one of its kind, so that without it it cannot be."""
    rng = np.random.default_rng(12)
    y = np.arange(60) % 2
    X = (rng.normal(y[:, None], 1.0, (60, 3)) * 1.5).round()
    clf = BayesClassifier(columns, tune=None if columns else "auto").fit(X, y)
    found = clf.leave_one_out()
    table = align_rows(clf.fitted_, X)
    said = compute_column_evidence(clf.model_, table, found.evidence)
    np.testing.assert_array_equal(np.isfinite(said.log_joint), np.isfinite(found.log_joint))
    here = np.isfinite(found.log_joint)
    np.testing.assert_allclose(said.log_joint[here], found.log_joint[here], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.exp(said.log_posterior), found.posterior, atol=1e-12)
    told = Explanation(found.evidence, clf.model_, table)
    row = int(np.flatnonzero(here.all(axis=1))[0])
    odds = np.sort(found.log_joint[row])[::-1]
    assert told.to_dict(row)["sum"] == pytest.approx(10 / np.log(10) * (odds[0] - odds[1]), abs=1e-9)
    assert told.steps(row)["prior"] == pytest.approx(
        dict(zip("01", np.exp(found.evidence.log_prior[row]), strict=True))
    )


def test_shares_of_left_out_rows_do_not_depend_on_units() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 30)
    X = rng.normal(size=(30, 4))
    X[:, 0] += 1.5 * y
    X[:, 2] += X[:, 1]
    found = [
        BayesClassifier({(0, 1, 2, 3): JointGaussian()}, tune=None).fit(X * scale, y).importance()
        for scale in (1.0, [1.0, 1e6, 1.0, 1e-9])
    ]
    np.testing.assert_allclose(found[0].decibans, found[1].decibans, rtol=1e-6)
    np.testing.assert_allclose(found[0].bits, found[1].bits, rtol=1e-6, atol=1e-9)


def test_an_explanation_of_nothing_has_its_columns_and_rows_that_are_not_there_are_named() -> None:
    one = textbook().fit([[1.0], [2.0]], ["only", "only"])
    assert one.explain([[1.0]]).terms(0) == []
    assert list(one.explain([[1.0]]).to_frame())[:5] == ["row", "predicted", "against", "term", "column"]
    assert list(one.explain([[1.0]], by="block").to_frame())[3] == "block"
    for row in (1, -1):
        with pytest.raises(UsageError, match=f"row={row}: the table has 1 row, numbered from 0"):
            one.explain([[1.0]]).to_dict(row)
