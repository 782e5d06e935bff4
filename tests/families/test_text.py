"""Texts: against scikit-learn and brute force, with bad input, and through everything a classifier can do."""

import pickle
import subprocess
import sys
from pathlib import Path

from deciban import BayesClassifier, Text

MAILS = ["win money now", "cheap money", "lunch at noon", "see you at lunch"] * 5
KINDS = ["spam", "spam", "ham", "ham"] * 5


def test_a_pickled_model_knows_its_words_in_another_process(tmp_path: Path) -> None:
    """Processes hash words by different seeds: neither the vocabulary nor the stop words may bring theirs along."""
    clf = BayesClassifier(Text(stop_words=["win"]), tune=None).fit(MAILS, KINDS)
    expected = clf.predict_proba(MAILS[:4])
    (tmp_path / "model").write_bytes(pickle.dumps(clf))
    code = (
        "import pickle, sys; clf = pickle.load(open(sys.argv[1], 'rb'));"
        f"print(clf.predict_proba({MAILS[:4]!r}).tolist(), clf.columns.tokens.words('win money'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == f"{expected.tolist()} ['money']"
