"""How texts are tuned."""

import numpy as np

from deciban import BayesClassifier, Text


def test_least_counts_do_not_cut_lifts() -> None:
    """Whose amounts are a fraction of one for each word."""
    rng = np.random.default_rng(0)
    said = [" ".join(f"w{k}" for k in rng.zipf(1.3, 60) % 500) + f" class{c}" for c in np.arange(200) % 2]
    clf = BayesClassifier(Text(min_count=5.0)).fit(said, np.arange(200) % 2)
    for choice in clf.tuning_.choices:
        lifts = [family for family, _ in ((choice.family, 0.0), *choice.others) if family.kind == "lift"]
        assert [family.min_count for family in lifts] == [0.0]
