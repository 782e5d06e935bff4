"""Hyper-parameters of tuning, one documented field each.

Values that affect accuracy were compared on the development tables of bench/accuracy.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class SamplingSettings:
    """Rows that tuning uses.

    min_rows: with fewer rows, the model stays plain Bayes; weights of so few rows would be noise.
    max_rows: rows in the sample that families and weights are chosen on; more change little and cost time.
    max_evidence: numbers of evidence (row by block by class) held at once: 64 MB.
    chunk_rows: rows per thread; fewer are not worth the start of a thread, and estimating in each.
    first_rows: rows of the first run within a time budget, which shows how many there is time for.
    budget_share: share of the budget for choosing families and weights; weights are learned again after counting.
    """

    min_rows: int = 20
    max_rows: int = 6_000
    max_evidence: int = 1 << 23
    chunk_rows: int = 8_000
    first_rows: int = 500
    budget_share: float = 0.4


@dataclass(frozen=True)
class CopySettings:
    """Detection of copied rows.

    max_by_chance: equal rows count as evidence of copying if fewer than this many of them are expected by chance.
    few_distinct: a table with fewer distinct rows than this may be a table of few cases instead of copies.
    max_repetitions: such a table is one of few cases if its distinct rows occur more often than this on average.
    """

    max_by_chance: float = 0.5
    few_distinct: int = 200
    max_repetitions: float = 50.0


@dataclass(frozen=True)
class WeightSettings:
    """Penalized likelihood of the evidence weights. Strengths of penalties are in rows.

    max_blocks: with more blocks, all share one weight: a weight each would take too long.
    max_newton_work: multiplications of a Newton step; beyond, L-BFGS is used, which is less exact.
    max_newton_steps: Newton steps; convex losses take about five.
    min_newton_gain: the search ends with a step that is expected to reduce the loss by less; the error is then squared.
    min_fold_gain: the same without one fold; the weights of a fold only score its rows before corrections.
    max_bound_rounds: rounds to find the weights that are 0 in a step.
    max_log_odds: evidence beyond this counts as this; exp(700) is close to the largest double.
    group_rows: strength that draws the weight of a group of blocks to its start.
    block_rows: strength that draws the weight of a block to that of its group.
    bias_rows: strength that draws the bias of a class to 0.
    limit_factor: the total evidence against a class is at most the log of this many times the rows learned. With fewer,
    rows of easy tables that are rightly certain lose more than rare mistakes gain.
    """

    max_blocks: int = 500
    max_newton_work: float = 2e8
    max_newton_steps: int = 50
    min_newton_gain: float = 1e-9
    min_fold_gain: float = 1e-3
    max_bound_rounds: int = 20
    max_log_odds: float = 700.0
    group_rows: float = 1.0
    block_rows: float = 10.0
    bias_rows: float = 1.0
    limit_factor: float = 100.0


@dataclass(frozen=True)
class CandidateSettings:
    """Families and joint blocks that compete on left-out rows.

    min_gain: log-likelihood, in nats, that another family must gain to replace the inferred one.
    min_spread: a class does not vary in a column if its variance is below this share of the variance of the column.
    few_rows: classes with fewer rows must vary in a column for it to join a joint Gaussian.
    min_addition_gain: log-likelihood, in nats, that a further block of a column must gain: a part of a date or of a
        text, or its words. A block of noise seldom gains more than 2.
    min_addition_errors: the same gain in standard errors of its sum over rows.
    min_text_share: share of the log-loss that a further block of texts must gain: not all exports support it.
    min_values: texts with fewer distinct values have no further blocks.
    max_rows_per_value: texts whose values have more rows on average have none either: counts of values suffice.
    lift: scores of texts that compete with plain counts: normalized lifts of root counts, so that long texts and
        repeated words do not outweigh the others.
    lift_weights: expected weights of log lifts and of lifts.
    tempering: powers that temper the evidence of long texts, if the user chose the kind of counts.
    max_joint_columns: columns of a joint Gaussian; beyond, the scatter matrix is too expensive.
    max_missing: share of missing cells in a column of a joint Gaussian, which uses only complete rows.
    max_shrinkage_work: multiplications for the choice of the shrinkage.
    max_shrinkage_rows: rows for that choice; few candidates are compared, which differ much.
    pooled_shrinkages: shrinkages of the covariance shared by all classes (linear discriminant).
    class_shrinkages: (share of the pooled covariance, shrinkage) of the covariance of each class (quadratic
        discriminant).
    """

    min_gain: float = 1.0
    min_spread: float = 1e-3
    few_rows: float = 30.0
    min_addition_gain: float = 3.0
    min_addition_errors: float = 2.0
    min_text_share: float = 0.02
    min_values: int = 30
    max_rows_per_value: float = 20.0
    lift: Mapping[str, Any] = field(
        default_factory=lambda: MappingProxyType(
            {"kind": "lift", "alpha": 1.0, "term_counts": "root", "normalize": True, "min_count": 0.0}
        )
    )
    lift_weights: tuple[float, float] = (0.6, 0.5)
    tempering: tuple[float, ...] = (0.25, 0.5)
    max_joint_columns: int = 128
    max_missing: float = 0.1
    max_shrinkage_work: float = 2e7
    max_shrinkage_rows: int = 2_000
    pooled_shrinkages: tuple[float, ...] = (0.002, 0.02, 0.2)
    class_shrinkages: tuple[tuple[float, float], ...] = ((0.02, 0.005), (0.1, 0.02), (0.1, 0.1), (0.5, 0.5))


@dataclass(frozen=True)
class BinningSettings:
    """Bins of columns for corrections and for the diagnosis.

    few_levels: categories of a column that is cut into few levels; columns with more are not.
    max_own_bins: categories of a column that each have a bin in corrections; of more, similar ones share bins.
    min_level_rows: rows of a category that has a bin of its own; rarer ones would be ordered by noise.
    max_shared_bins: bins of a column with more categories.
    min_placed_rows: rows of a category there that has a bin; rarer ones are treated like unknown ones.
    max_levels: categories there that have bins, the most frequent ones: this bounds the size of the model.
    frequent_rows: rows of a category there that is placed by all folds instead of the other folds.
    prior_rows: rows with the overall class shares that are added to each category before categories are ordered.
    columns_at_once: columns read at once, which bounds memory.
    min_bins: bins of a number in a small table.
    max_bins: bins of a number in a large table; the codes of bins are bytes.
    rows_per_bin: rows behind each bin of a number, between these bounds.
    """

    few_levels: int = 16
    max_own_bins: int = 16
    min_level_rows: float = 10.0
    max_shared_bins: int = 40
    min_placed_rows: float = 2.0
    max_levels: int = 10_000
    frequent_rows: float = 200.0
    prior_rows: float = 10.0
    columns_at_once: int = 256
    min_bins: int = 16
    max_bins: int = 126
    rows_per_bin: float = 16.0


@dataclass(frozen=True)
class CorrectionSettings:
    """Gradient boosting of correction tables (oblivious trees) on left-out rows.

    min_rows: with fewer rows, nothing is corrected.
    max_classes: with more classes, nothing is corrected.
    folds: cross-fitting folds; tables are grown once without each of them.
    depth: tests per table.
    ridge: added to the curvature of each cell of a table, in rows.
    learning_rate: share of the optimal step that a table takes.
    max_learning_rate: upper bound if fewer tables are grown than `max_tables`.
    max_tables: tables grown without a fold.
    min_tables: the same for a large table, whatever the work.
    tables_per_round: tables grown between two looks at the held-out loss.
    patience: further tables within which the loss must fall, or growing stops.
    min_improvement: share by which it must fall.
    max_columns: columns that corrections may use, those most associated with the class.
    column_share: share of these columns that each table may use.
    min_table_columns: columns that each table may use at least.
    max_work: approximate nanoseconds for growing; this bounds the time.
    max_spread_rows: rows on which the gain of averaging is measured while tables are grown.
    max_scale_rows: rows on which the scales are learned.
    scale_rows: strength, in rows, that draws the scale of the evidence to 1 and that of the second series to 0.
    max_evidence: numbers of evidence held at once: 16 MB; with less, estimating for each piece takes too long.
    max_numbers: numbers held for all rows together: 512 MB.
    min_log_prior: log prior of a class without rows.
    first_rows: rows of the first run within a time budget, which shows how many there is time for.
    weighing_times: the first run takes about this many times as long as learning weights from as many rows.
    budget_share: share of the time left in which tables may grow; scales and rows with missing cells follow.
    """

    min_rows: int = 100
    max_classes: int = 50
    folds: int = 5
    depth: int = 6
    ridge: float = 1.0
    learning_rate: float = 0.4
    max_learning_rate: float = 0.5
    max_tables: int = 250
    min_tables: int = 150
    tables_per_round: int = 5
    patience: int = 20
    min_improvement: float = 0.001
    max_columns: int = 128
    column_share: float = 0.5
    min_table_columns: int = 8
    max_work: float = 4e9
    max_spread_rows: int = 8_000
    max_scale_rows: int = 5_000
    scale_rows: float = 10.0
    max_evidence: int = 1 << 21
    max_numbers: int = 1 << 26
    min_log_prior: float = -50.0
    first_rows: int = 1_000
    weighing_times: float = 4.0
    budget_share: float = 0.85


@dataclass(frozen=True)
class PartialRowSettings:
    """Offsets and scales of rows with missing cells.

    max_rows: rows that are copied and masked; each is scored once per mask.
    masked_shares: share of the columns that each mask hides. A mask is the same for all rows, so that a row of weight 2
        counts as two rows.
    scale_rows: strength, in rows, that draws each scale to 1.
    min_scale: lower bound of a scale: an impossible class stays impossible.
    min_missing: missing cells that a column needs for them to be evidence.
    min_gain: gain of left-out rows by that, in standard errors.
    rare_rows: the least complete rows, which do not count when "as complete as the training rows" is measured.
    min_share: lower bound of the share of the evidence that complete rows have.
    max_shared_rows: rows on which the evidence of joint blocks is shared among their columns.
    max_shared_cells: cells of these rows, each scored with and without the others; wide blocks use fewer rows.
    min_shared_rows: rows of the widest blocks.
    min_weight: weights below this are rounding errors.
    """

    max_rows: int = 500
    masked_shares: tuple[float, ...] = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9) * 2
    scale_rows: float = 2.0
    min_scale: float = 1e-3
    min_missing: float = 20.0
    min_gain: float = 2.0
    rare_rows: float = 5.0
    min_share: float = 0.01
    max_shared_rows: int = 400
    max_shared_cells: int = 1 << 15
    min_shared_rows: int = 30
    min_weight: float = 1e-6


@dataclass(frozen=True)
class UnlabeledSettings:
    """Expectation-maximization over rows without a label.

    folds: of the labeled rows, each scored by models without its fold.
    weights: of a row without a label, of which the best is chosen.
    max_rounds: rounds of expectation and maximization.
    patience: further rounds within which the loss must fall.
    max_rows: rows without a label on which weight and rounds are chosen, with the weight of all.
    min_gain: gain of the labeled rows, also over the class shares, in standard errors, that rows without a label need.
    min_share: shares of a row below this are not counted; rounding errors are smaller.
    """

    folds: int = 5
    weights: tuple[float, ...] = (1.0, 0.1)
    max_rounds: int = 5
    patience: int = 2
    max_rows: int = 2_000
    min_gain: float = 1.0
    min_share: float = 1e-9


SAMPLING = SamplingSettings()
COPIES = CopySettings()
WEIGHTS = WeightSettings()
CANDIDATES = CandidateSettings()
BINNING = BinningSettings()
CORRECTIONS = CorrectionSettings()
PARTIAL_ROWS = PartialRowSettings()
UNLABELED = UnlabeledSettings()
