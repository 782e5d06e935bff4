"""Models that were trained apart are merged: in any order, no rows twice, and named where they do not fit."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deciban as dc
from deciban.datasets import weather
from deciban.testing import assert_same_counts, take_rows
from tests.laws.cases import CASES, Case
from tests.store.models import PLAIN, features, mixed, parts_of, plain
from tests.support.model_files import content


def test_the_same_rows_are_not_merged_twice(tmp_path: Path) -> None:
    a, b, c = (plain().fit(part, "kind") for part in parts_of(mixed(90), [30, 60]))
    for name, model in (("a", a), ("b", b), ("c", c)):
        model.save(tmp_path / f"{name}.dcb")
    with pytest.raises(dc.DataError, match="model 1 and model 3 were trained on the same rows"):
        dc.merge([a, b, a])
    with pytest.raises(dc.DataError, match="model 1 and model 2 were trained on the same rows"):
        dc.merge([dc.merge([a, b]), b])
    both = dc.merge([a, b])
    both.save(tmp_path / "both.dcb")
    with pytest.raises(dc.DataError, match=r"both\.dcb and .*a\.dcb were trained on the same rows"):
        dc.merge([tmp_path / "both.dcb", tmp_path / "c.dcb", tmp_path / "a.dcb"])
    with pytest.raises(dc.DataError, match="north and south were trained on the same rows"):
        dc.merge([c, both, b], names=["east", "north", "south"])
    assert dc.merge([a, a], force=True).counts_.rows == 60
    assert dc.merge([a, a], force=True).shards_ == a.shards_
    assert dc.merge([tmp_path / "both.dcb", c]).shards_ == tuple(sorted((*a.shards_, *b.shards_, *c.shards_)))
    assert dc.merge([both]).shards_ == both.shards_
    for nothing in ([], "a.dcb"):
        with pytest.raises(dc.UsageError):
            dc.merge(nothing)


def test_models_that_do_not_fit_together_are_named() -> None:
    table = mixed(60)
    a, b = (plain().fit(part, "kind") for part in parts_of(table, [30]))
    before = content(a), content(b)
    other = dc.BayesClassifier({**PLAIN, "height": dc.Categorical()}, tune=None).fit(mixed(20, seed=9), "kind")
    with pytest.raises(dc.SchemaError, match=r"^model 1 and model 3 cannot be merged: column 'height' is Gaussian"):
        dc.merge([a, b, other])
    numbers = plain().fit(features(mixed(20, seed=9)), [0, 1] * 10)
    with pytest.raises(dc.DataError, match=r"^x and z cannot be merged: the labels 'a' and 0 are of different types"):
        dc.merge([a, b, numbers], names=["x", "y", "z"])
    with pytest.raises(dc.SchemaError, match=r"^model 1 and model 2 cannot be merged: .*columns"):
        dc.merge([a, dc.BayesClassifier(tune=None).fit([[1.0], [2.0]], ["a", "b"])])
    declared = plain(classes=["a", "b"]).fit(features(table.slice(0, 4)), ["a", "b", "a", "b"])
    with pytest.raises(dc.DataError, match=r"^model 1 and model 2 cannot be merged: the label 'c'"):
        dc.merge([declared, b])
    with_prior = plain(prior={"a": 0.5, "b": 0.5}).fit(features(table.slice(0, 4)), ["a", "b", "a", "b"])
    with pytest.raises(dc.UsageError, match=r"^model 1 and model 2 cannot be merged: the prior"):
        dc.merge([with_prior, b])
    assert (content(a), content(b)) == before
    with pytest.raises(dc.UsageError, match="names"):
        dc.merge([a, b], names=["one"])


def test_a_merged_model_of_one_is_no_other_name_for_it() -> None:
    a = plain().fit(mixed(30), "kind")
    dc.merge([a]).decay(0.5)
    assert a.counts_.class_weight.sum() == 30.0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_models_merged_in_any_order_are_the_model_of_all_rows(case: Case) -> None:
    rng = np.random.default_rng(8)
    X, y = case.draw(rng, 60), np.arange(60) % 3
    whole = dc.BayesClassifier(case.spec, tune=None).fit(X, y)
    some = [slice(0, 11), slice(11, 40), slice(40, 60)]
    models = [dc.BayesClassifier(case.spec, tune=None).fit(take_rows(X, part), y[part]) for part in some]
    for order in itertools.permutations(models):
        merged = dc.merge(order)
        assert_same_counts(merged.counts_, whole.counts_, case.exact)
        assert merged.shards_ == tuple(sorted(name for model in models for name in model.shards_))
        np.testing.assert_allclose(merged.predict_proba(X), whole.predict_proba(X), rtol=0.0, atol=1e-9)
    first = dc.BayesClassifier(case.spec, tune=None).fit(take_rows(X, some[0]), y[some[0]])
    added = first + first.shard(take_rows(X, some[1]), y[some[1]])
    assert_same_counts(added.counts_, first.partial_fit(take_rows(X, some[1]), y[some[1]]).counts_, exact=True)


def test_weather_in_two_halves() -> None:
    halves = [dc.BayesClassifier(tune=None).fit(part, "play") for part in parts_of(weather(), [7])]
    assert_same_counts(
        dc.merge(halves).counts_, dc.BayesClassifier(tune=None).fit(weather(), "play").counts_, exact=True
    )


def of_rows(names: str, target: str | None, classes: str = "ab") -> dc.BayesClassifier:
    """A model of a few made rows, with these columns; without a target its labels are an array."""
    rng = np.random.default_rng(len(names))
    rows: dict[str, Any] = {name: rng.normal(size=20) for name in names}
    labels = np.array(list(classes))[np.arange(20) % len(classes)]
    if target is None:
        return dc.BayesClassifier(tune=None).fit(rows, labels)
    return dc.BayesClassifier(tune=None).fit({**rows, target: labels}, target)


def test_models_of_different_targets_are_not_merged(tmp_path: Path) -> None:
    cut, card = of_rows("xyz", "cut"), of_rows("yz", "card")
    before = content(cut), content(card)
    said = r"they predict different columns, 'cut' and 'card'; merge models with the same target, or pass force=True"
    with pytest.raises(dc.SchemaError, match=f"^{said}"):
        cut + card
    with pytest.raises(dc.SchemaError, match=f"^{said}"):
        sum([cut, card])
    with pytest.raises(dc.SchemaError, match=f"^model 1 and model 2 cannot be merged: {said}"):
        dc.merge([cut, card])
    assert (content(cut), content(card)) == before
    assert dc.merge([cut, card], force=True).counts_.rows == 40
    for k, model in enumerate((cut, card)):
        model.save(tmp_path / f"{k}.dcb")
    with pytest.raises(dc.SchemaError, match=f"0.dcb and .*1.dcb cannot be merged: {said}"):
        dc.merge([tmp_path / "0.dcb", tmp_path / "1.dcb"])


def test_models_without_a_common_column_are_not_merged() -> None:
    said = "they have no column in common \\('a', 'b', 'c', … \\(1 more\\); 'x', 'y'\\); merge models with the same"
    for target in ("kind", None):
        one, other = of_rows("abcd", target), of_rows("xy", target)
        with pytest.raises(dc.SchemaError, match=said):
            one + other
        with pytest.raises(dc.SchemaError, match=f"^north and south cannot be merged: {said}"):
            dc.merge([one, other], names=["north", "south"])
        merged = dc.merge([one, other], force=True)
        assert merged.feature_names_in_.tolist() == list("abcdxy")
    assert (of_rows("xy", "kind") + of_rows("yz", "kind")).counts_.rows == 40


def test_a_target_without_a_name_fits_any_but_named_ones_are_not_confused() -> None:
    unnamed, cut, card = of_rows("x", None), of_rows("xy", "cut"), of_rows("xyz", "card")
    assert (unnamed + cut).counts_.rows == (cut + unnamed).counts_.rows == 40
    for order in itertools.permutations([unnamed, cut, card]):
        with pytest.raises(dc.SchemaError, match="they predict different columns"):
            dc.merge(order)
    arrays = [dc.BayesClassifier(tune=None).fit(rows, [0, 1]) for rows in ([[1.0], [2.0]], [[3.0], [5.0]])]
    assert dc.merge(arrays).counts_.rows == 4


def test_shards_of_a_model_are_added_whatever_their_labels_are_called() -> None:
    clf = of_rows("xy", "cut")
    rows = {"x": [1.0, 2.0], "y": [0.0, 1.0]}
    for shard in (clf.shard(rows, ["a", "b"]), clf.shard({**rows, "other": ["a", "b"]}, "other")):
        assert (clf + shard).counts_.rows == 22
        assert dc.merge([clf, shard]).counts_.rows == 22
    assert clf.partial_fit(rows, ["a", "b"]).counts_.rows == 22
