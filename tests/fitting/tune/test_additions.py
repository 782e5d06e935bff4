"""Further blocks of columns that tuning adds: parts of dates, and parts and words of texts."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import log_loss

from deciban import BayesClassifier, Categorical, Text, UsageError
from deciban.plot import ColumnDisplay
from deciban.statistics import Levels

ROWS = 900
RNG = np.random.default_rng(0)
MOMENTS = RNG.integers(0, 50 * 365 * 86_400, ROWS) * 1_000_000
LATE = (MOMENTS // 3_600_000_000) % 24 >= 18
LABELS = np.where(LATE ^ (RNG.random(ROWS) < 0.1), "late", "early")
MAKERS, MODELS = np.array(["ford", "toyota", "fiat", "renault"]), np.array(["rapid", "slow", "wide", "small", "red"])


def _families(clf: BayesClassifier, column: str) -> str:
    return str(clf.schema_.to_dict()[column]["family"])


def _dates(labels: Any = LABELS) -> BayesClassifier:
    return BayesClassifier().fit({"when": pa.array(MOMENTS[:600], pa.timestamp("us"))}, labels[:600])


def test_the_hour_of_a_date_is_evidence_of_its_own() -> None:
    clf, rest = _dates(), {"when": pa.array(MOMENTS[600:], pa.timestamp("us"))}
    assert "Categorical(part='hour')" in _families(clf, "when")
    assert "hour added: 0." in clf.schema_.to_dict()["when"]["why"]
    assert "hour of when" in clf.model_.schema.block_names
    without = BayesClassifier({"when": clf.schema_.groups[0].family}).fit(
        {"when": pa.array(MOMENTS[:600], pa.timestamp("us"))}, LABELS[:600]
    )
    losses = [log_loss(LABELS[600:], one.predict_proba(rest)) for one in (clf, without)]
    assert losses[0] < 0.5 < 0.6 < losses[1]  # the noise alone costs 0.33, the class shares 0.61


def test_a_column_is_selected_for_the_evidence_of_its_part() -> None:
    """The date itself has none."""
    noise = np.random.default_rng(1).normal(size=600)
    rows = {"noise": noise, "when": pa.array(MOMENTS[:600], pa.timestamp("us"))}
    assert BayesClassifier(tune="weights").fit(rows, LABELS[:600]).select_columns() == ["when"]


def test_explanations_name_the_part_and_stay_exact() -> None:
    clf, row = _dates(), {"when": pa.array(MOMENTS[700:701], pa.timestamp("us"))}
    hour = (MOMENTS[700] // 3_600_000_000) % 24
    found = clf.explain(row)
    line = next(line for line in str(found).splitlines() if line.startswith("when alone "))
    assert re.fullmatch(rf"when alone \S+: (as \w+ \S+, )?hour = {hour} \S+(, .*)?", line)
    assert line in found._repr_html_()
    assert [line.split()[:2] for line in str(clf.schema_).splitlines() if "hour" in line] == [
        ["+", "Categorical(part='hour')"]
    ]
    assert f"hour of when = {hour}" in clf.explain(row, by="block").calculation(0)
    total = found.to_dict(0)["sum"] / (10.0 / np.log(10.0))
    joint = np.sort(clf.log_joint(row)[0])
    assert total == pytest.approx(joint[-1] - joint[-2], abs=1e-12)


def test_dates_with_parts_are_plotted_and_reported(tmp_path: Path) -> None:
    clf = _dates()
    ColumnDisplay.from_estimator(clf, "when")
    clf.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert re.search(r"; hour: Categorical, weight [\d.]+<", page)
    assert re.search(r"<li>Added the hour of when with weight [\d.]+\.</li>", page)


def test_dates_are_sampled_from_their_own_distribution() -> None:
    years = _dates().sample(200, random_state=0).rows.column("when").to_pylist()
    assert max(years).year > 1990  # a month or an hour alone would be drawn in 1970


def test_noise_adds_nothing() -> None:
    names = np.char.add(np.char.add(MAKERS[RNG.integers(0, 4, ROWS)], " "), RNG.integers(0, 500, ROWS).astype(str))
    clf = BayesClassifier().fit({"when": pa.array(MOMENTS, pa.timestamp("us")), "name": names}, RNG.permutation(LABELS))
    assert " + " not in _families(clf, "when") + _families(clf, "name")


def _names(start: str) -> tuple[pa.Table, Any]:
    """Names of two words, one of which tells the class, and a number that hardly occurs twice."""
    maker, model, number = RNG.integers(0, 4, ROWS), RNG.integers(0, 5, ROWS), RNG.integers(0, 400, ROWS)
    first, second = (MAKERS[maker], MODELS[model]) if start == "maker" else (number.astype(str), MAKERS[maker])
    last = number.astype(str) if start == "maker" else MODELS[model]
    names = [" ".join(words) for words in zip(first, second, last, strict=True)]
    return pa.table({"name": names}), np.where(maker < 2, "a", "b")


def test_the_first_word_of_names_is_tried_and_exported() -> None:
    table, labels = _names("maker")
    names = [f"{name.split()[0]} {name.split()[2]}" for name in table["name"].to_pylist()]
    clf = BayesClassifier().fit({"name": names}, labels)
    assert "Categorical(part='first" in _families(clf, "name")
    assert clf.tuning_.log_loss < 0.1
    assert "split_part" in clf.to_sql("cars") or "left(" in clf.to_sql("cars")
    with pytest.raises(UsageError, match=r"column 'name'.*first.*families=\{'name': Categorical\(\)\}"):
        clf.to_onnx()


def test_words_are_added_where_no_part_suffices() -> None:
    table, labels = _names("number")
    names = [" ".join(name.split()[:2]) for name in table["name"].to_pylist()]
    clf = BayesClassifier().fit({"name": names}, labels)
    assert "Text(kind='lift'" in _families(clf, "name")
    assert clf.tuning_.log_loss < 0.1
    assert clf.predict([{"name": "9999 fiat"}, {"name": "9999 ford"}]).tolist() == ["b", "a"]
    with pytest.raises(UsageError, match=r"column 'name'.*families=\{'name': Categorical\(\)\}"):
        clf.to_sql("cars")
    given = BayesClassifier({"name": Categorical()}).fit({"name": names}, labels)
    assert "cars" in given.to_sql("cars")
    assert given.tuning_.log_loss > 0.3


def test_parts_of_codes_are_characters() -> None:
    decks, numbers = np.array(list("ABCDEF"))[RNG.integers(0, 6, ROWS)], RNG.integers(0, 300, ROWS)
    cabins = np.char.add(decks, numbers.astype(str))
    clf = BayesClassifier().fit({"cabin": cabins}, np.where(decks < "D", "up", "down"))
    assert "Categorical(part='first character')" in _families(clf, "cabin")
    assert clf.predict([{"cabin": "A9999"}, {"cabin": "F9999"}]).tolist() == ["up", "down"]


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_string(),
        pa.string_view(),
        *(pa.dictionary(pa.int32(), kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    ],
    ids=str,
)
def test_texts_may_be_stored_in_any_way(kind: Any) -> None:
    table, labels = _names("maker")
    names = pa.array([name.replace(" ", "-", 1) for name in table["name"].to_pylist()], pa.string())
    if pa.types.is_dictionary(kind):
        codes = names.dictionary_encode()
        names = pa.DictionaryArray.from_arrays(codes.indices, codes.dictionary.cast(kind.value_type))
    else:
        names = names.cast(kind)
    clf = BayesClassifier().fit(pa.table({"name": names}), labels)
    assert "Categorical(part='first" in _families(clf, "name")
    assert clf.predict_proba(pa.table({"name": names.slice(0, 3)})).shape == (3, 2)


def test_added_blocks_are_counted_like_others() -> None:
    clf = _dates()
    before = clf.counts_
    more = {"when": pa.array(MOMENTS[600:], pa.timestamp("us"))}
    clf.partial_fit(more, LABELS[600:])
    place = next(p for p, group in enumerate(clf.counts_.schema.groups) if group.family.part == "hour")
    hours = clf.counts_.statistics[place]
    assert isinstance(hours, Levels)
    for c, label in enumerate(clf.classes_):
        own = np.bincount((MOMENTS[label == LABELS] // 3_600_000_000) % 24, minlength=24)
        assert hours.tables[0][c].tolist() == own.tolist()
    assert (clf.counts_ - before).statistics[place].tables[0].sum() == ROWS - 600


def test_a_given_family_gets_no_additions() -> None:
    table, labels = _names("maker")
    names = {"name": [name.rpartition(" ")[0] for name in table["name"].to_pylist()]}
    clf = BayesClassifier({"name": Categorical()}).fit(names, labels)
    assert _families(clf, "name") == "Categorical()"
    assert _families(BayesClassifier({"name": Text()}).fit(names, labels), "name").startswith("Text(")


def test_rows_of_weight_2_are_the_rows_twice() -> None:
    rng = np.random.default_rng(1)
    moments, makers = rng.integers(0, 20 * 365 * 86_400, 700) * 1_000_000, rng.integers(0, 4, 700)
    hours, months = (moments // 3_600_000_000) % 24, (moments // 86_400_000_000 // 30) % 12
    score = 1.2 * (hours >= 15) + 1.0 * (months >= 6) + 1.0 * (makers < 2) + rng.normal(size=700) * 1.5
    labels = np.where(score > np.median(score), "a", "b")
    names = np.char.add(np.char.add(MAKERS[makers], " "), rng.integers(0, 400, 700).astype(str))
    table = pa.table({"when": pa.array(moments, pa.timestamp("us")), "name": names})
    twice = BayesClassifier().fit(pa.concat_tables([table, table]), np.concatenate([labels, labels]))
    weighted = BayesClassifier().fit(table, labels, sample_weight=np.full(700, 2.0))
    assert " + " in _families(twice, "when")
    assert twice.schema_.groups == weighted.schema_.groups
    np.testing.assert_allclose(twice.predict_proba(table), weighted.predict_proba(table), rtol=1e-9)
