"""The figures of evaluate, compared with scikit-learn and with models of the other rows."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss

from deciban import BayesClassifier, load
from tests.support.command import COSTS, HEADER, Deciban, rows, table


def test_new_rows_are_judged_as_scikit_learn_does(deciban: Deciban, model: str) -> None:
    Path("new.csv").write_text(table(300, seed=9))
    Path("costs.csv").write_text(COSTS)
    found = json.loads(deciban("evaluate", model, "new.csv", "--costs", "costs.csv", "--json").out)
    clf, truth = load(model), [line.split(",")[2] for line in rows(300, seed=9)]
    posterior, best = clf.predict_proba("new.csv"), clf.predict("new.csv")
    assert found["accuracy"] == accuracy_score(truth, best)
    assert found["log_loss"] == pytest.approx(log_loss(truth, posterior))
    assert found["confusion"] == confusion_matrix(truth, best).tolist()
    decided = np.column_stack([10 * posterior[:, 1], posterior[:, 0]]).argmin(axis=1)
    matrix = np.array([[0.0, 10.0], [1.0, 0.0]])
    assert found["mean_cost"] == pytest.approx(np.mean(matrix[decided, [("no", "yes").index(one) for one in truth]]))


def test_leave_one_out_is_what_models_of_the_other_rows_say(deciban: Deciban) -> None:
    lines = rows(40)
    Path("a.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    assert deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").code == 0
    found = json.loads(deciban("evaluate", "m.dcb", "a.csv", "--leave-one-out", "--json").out)
    posterior = []
    for i in range(len(lines)):
        others = [line.split(",") for j, line in enumerate(lines) if j != i]
        data = {"age": [float(one[0]) for one in others], "town": [one[1] for one in others]}
        clf = BayesClassifier(tune=None).fit(data, [one[2] for one in others])
        age, town, _ = lines[i].split(",")
        posterior.append(clf.predict_proba([{"age": float(age), "town": town}])[0])
    truth = [line.split(",")[2] for line in lines]
    assert found["log_loss"] == pytest.approx(log_loss(truth, posterior))


def test_folds_judge_every_row_once_and_hold_out_a_share(deciban: Deciban, model: str) -> None:
    """Each row by a model of the others: about as good as leave-one-out, and worse than rows judging themselves."""
    folds = json.loads(deciban("evaluate", "base.csv", "-t", "kind", "--folds", "4", "--tune", "none", "--json").out)
    assert (folds["rows"], np.sum(folds["confusion"])) == (200, 200)
    one = json.loads(deciban("evaluate", model, "base.csv", "--leave-one-out", "--json").out)
    itself = json.loads(deciban("evaluate", model, "base.csv", "--json").out)
    assert folds["log_loss"] == pytest.approx(one["log_loss"], abs=0.05)
    assert folds["log_loss"] > itself["not_left_out"]["log_loss"]
    part = json.loads(
        deciban("evaluate", "base.csv", "-t", "kind", "--hold-out", "0.25", "--tune", "none", "--json").out
    )
    assert part["rows"] == pytest.approx(50, abs=2)
    assert deciban("evaluate", "base.csv", "-t", "kind", "--leave-one-out").code == 2
    assert deciban("evaluate", model).code == 2
    assert deciban("evaluate", "base.csv").code == 2


def test_a_table_may_come_by_a_pipe(deciban: Deciban, model: str) -> None:
    """Of which nothing is lost by looking whether it is a model."""
    reads, writes = os.pipe()
    os.write(writes, table().encode())
    os.close(writes)
    command = ("--target", "kind", "--folds", 2, "--tune", "none", "--json")
    assert deciban("evaluate", f"/dev/fd/{reads}", *command).out == deciban("evaluate", "base.csv", *command).out
    os.close(reads)
