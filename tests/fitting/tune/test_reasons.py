"""Why a column has its family, as people are told it."""

from deciban import Binned, Gamma, Gaussian, LogNormal, Pooled
from deciban.model.tuning import Choice


def test_a_reason_says_how_many_were_tried_and_which_came_next() -> None:
    others = ((LogNormal(variance=Pooled(), outside="ignore"), 0.63), (Gaussian(), 0.7), (Binned(bins=8), 0.8))
    choice = Choice("age", Gamma(outside="ignore"), 0.62471, others)
    assert str(choice.reason) == "log-loss 0.6247, best of 4 (next: LogNormal(variance=Pooled()) 0.6300)"
    choice = Choice("age", Gaussian(), 0.6, ((Gamma(outside="ignore"), 0.61),))
    assert str(choice.reason) == "log-loss 0.6000, best of 2 (next: Gamma 0.6100)"


def test_what_is_kept_though_another_is_a_little_better_is_not_called_the_best() -> None:
    choice = Choice("age", Gaussian(), 0.69, ((Binned(bins=8), 0.6887), (Gamma(), 0.7)))
    assert str(choice.reason) == "kept (log-loss 0.6900); Binned(bins=8) is hardly better (0.6887)"


def test_a_single_candidate_has_a_reason_too() -> None:
    assert str(Choice("age", Gaussian(), 0.6, ()).reason) == "the only suitable family"
