"""A file that an older version wrote means what it meant."""

import json

import numpy as np

import deciban as dc
from tests.store.make_golden import EXPECTED, GOLDEN
from tests.support.model_files import content, taken_apart


def test_the_golden_file_means_what_it_meant() -> None:
    golden = json.loads(EXPECTED.read_text())
    clf = dc.load(GOLDEN)
    assert clf.classes_.tolist() == golden["classes"]
    np.testing.assert_allclose(clf.predict_proba(golden["rows"]), golden["posteriors"], rtol=0.0, atol=1e-12)
    assert clf.shards_ == tuple(golden["shards"])


def test_with_nothing_known_the_golden_file_gives_the_prior() -> None:
    clf = dc.load(GOLDEN)
    found = clf.predict_proba([{"town": None}])[0]
    np.testing.assert_allclose(found, np.exp(clf.model_.log_prior), rtol=0.0, atol=1e-12)


def test_the_golden_file_is_written_back_as_it_was() -> None:
    """To the byte; a later version writes its own name into it."""
    data, again = GOLDEN.read_bytes(), content(dc.load(GOLDEN))
    header, arrays = taken_apart(data)
    assert taken_apart(again) == ({**header, "deciban": dc.__version__}, arrays)
    assert again == data or header["deciban"] != dc.__version__


def test_the_golden_file_learns_on() -> None:
    golden = json.loads(EXPECTED.read_text())
    clf = dc.load(GOLDEN)
    before = clf.counts_.rows
    clf.partial_fit(golden["rows"], [golden["classes"][0]] * len(golden["rows"]))
    assert clf.counts_.rows == before + len(golden["rows"])
