"""A loss whose right decisions cost more than wrong ones is warned of when it is made, and not again."""

import warnings

import pytest

from deciban import Loss


def test_a_loss_is_warned_of_once_however_it_is_used_later() -> None:
    with pytest.warns(UserWarning, match="decision first, truth second"):
        loss = Loss([[5, 0], [0, 5]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        used = loss.for_classes(["a", "b"]).with_reject(1.0).for_classes(["a", "b"])
    assert used.decisions == ("a", "b", "reject")
    assert used.matrix.tolist() == [[5.0, 0.0], [0.0, 5.0], [1.0, 1.0]]
