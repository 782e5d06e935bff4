"""`DecisionDisplay`: prior times density of each class, the boundaries, and the areas of each error."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deciban.decisions.bayes_error import BayesError
from deciban.decisions.decide import risks
from deciban.decisions.loss import Loss
from deciban.decisions.regions import Interval, areas_of, decision_at
from deciban.errors import UsageError
from deciban.explain.decision_curves import curves_of_column, curves_of_result, places_of_columns
from deciban.plot.decision_map import DecisionMapDisplay
from deciban.plot.display import Display, fitted_of, frame_of
from deciban.plot.figures import Axes, axes_for
from deciban.plot.style import QUIET_COLOUR, class_styles, legend, quiet, shown_name
from deciban.scoring.scoring import loss_for
from deciban.util.arrays import Flags, Floats
from deciban.util.text_tables import digits

# The share of the highest curve that is seen at the ends of the axis, and the classes whose errors are told one by one.
LEAST_SEEN = 2e-3
MOST_TOLD_APART = 3


class DecisionDisplay(Display):
    """Prior times density of each class along one column, where each decision is taken, and the area of each error.

    Under the curve of a class, the part where another class is decided is shaded: its area is the probability of that
    error. Where the boundaries are not the best ones (moved by hand, or best under other priors or losses), the part of
    the risk that could be avoided is hatched apart.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        The values along the axis, rising.
    joint : ndarray of shape (n_points, n_classes)
        Prior times density of each class at each value.
    loss : Loss
        What each decision costs under each truth, with labels.
    rule : sequence of (low, high, decision)
        The intervals of the rule that is drawn, from the left; a decision is its place in ``loss.decisions``.
    best : sequence of (low, high, decision), default=None
        Those of the best rule. None: the rule is the best one.
    name : str, default="x"
        What the axis is called.
    discrete : bool, default=False
        Whether the values are single ones, each drawn as a bar.

    Attributes
    ----------
    boundaries : list of float
        The points at which the decision changes.
    areas : ndarray of shape (n_decisions, n_classes)
        The probability of each decision with each truth.
    risk, least, avoidable : float
        The expected loss of the rule, that of the best one, and their difference.
    ax_, figure_ : Axes, Figure
        Where it was drawn.

    See Also
    --------
    deciban.bayes_error : The figures of known distributions.
    DecisionMapDisplay : The same for two columns.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from deciban import bayes_error
    >>> from deciban.plot import DecisionDisplay
    >>> letters = bayes_error([norm(15, 4), norm(25, 4)], [0.75, 0.25], classes=["a", "b"])
    >>> shown = DecisionDisplay.from_bayes_error(letters)
    >>> [round(edge, 4) for edge in shown.boundaries], shown.areas.round(6).tolist()
    ([21.7578], [[0.715825, 0.052203], [0.034175, 0.197797]])
    """

    def __init__(
        self,
        x: Floats,
        joint: Floats,
        loss: Loss,
        rule: Sequence[Interval],
        best: Sequence[Interval] | None = None,
        name: str = "x",
        discrete: bool = False,
    ) -> None:
        self.x = x
        self.joint = joint
        self.loss = loss
        self.rule = list(rule)
        self.best = list(rule if best is None else best)
        self.name = name
        self.discrete = discrete
        self.areas = areas_of(self.rule, joint, x, len(loss.matrix))
        least = areas_of(self.best, joint, x, len(loss.matrix))
        self.risk, self.least = (float((loss.matrix * area).sum()) for area in (self.areas, least))

    @property
    def boundaries(self) -> list[float]:
        """The points at which the decision changes."""
        return [one.low for one in self.rule[1:]]

    @property
    def avoidable(self) -> float:
        """The risk of the rule less that of the best one."""
        return max(self.risk - self.least, 0.0)

    @classmethod
    def from_bayes_error(
        cls, result: BayesError, *, name: str = "x", ax: Axes | None = None
    ) -> "DecisionDisplay | DecisionMapDisplay":
        """Draw what `deciban.bayes_error` has found.

        Parameters
        ----------
        result : BayesError
            The risk of known distributions, of one or two dimensions.
        name : str, default="x"
            What the axis is called.
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        DecisionDisplay or DecisionMapDisplay
        """
        if result.prior is None:
            raise UsageError("this result has no distributions; give what deciban.bayes_error returns")
        if not result.regions:
            return DecisionMapDisplay.from_bayes_error(result, ax=ax)
        curves = curves_of_result(result)
        shown = cls(curves.x, curves.joint, result.loss, curves.rule, curves.best, name, curves.discrete)
        shown.areas, shown.risk, shown.least = result.areas, result.risk, result.least  # to the last digit
        return shown.plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        columns: Any = None,
        *,
        priors: Any = None,
        loss: Any = None,
        boundaries: Sequence[float] | None = None,
        decisions: Sequence[Any] | None = None,
        ax: Axes | None = None,
    ) -> "DecisionDisplay | DecisionMapDisplay":
        """Draw a fitted classifier along one column, or over two, where all others are missing.

        The curves are prior times density, each column by the family that the model uses for it (of a column in a joint
        block only, its marginal); of a tuned classifier that has just these columns, its posterior times that density.
        Areas are exact for families with a cumulative distribution and for bins.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        columns : str, int, or two of them, default=None
            The column, or the two columns. None: those of a classifier that has one or two.
        priors : str, mapping or sequence, default=None
            Other priors, as `BayesClassifier.with_prior` takes them. None: those of the classifier.
        loss : Loss, matrix, mapping, table or path, default=None
            What each decision costs, as for `BayesClassifier.decide`. None is zero-one loss.
        boundaries : sequence of float, default=None
            A rule to draw instead of the best one: the points at which its decision changes.
        decisions : sequence of labels, default=None
            The decision between the boundaries, from the left. None: the best in each interval.
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        DecisionDisplay or DecisionMapDisplay
        """
        fitted = fitted_of(estimator if priors is None else estimator.with_prior(priors))
        wanted = places_of_columns(fitted, columns)
        costs = loss_for(fitted, loss)
        if wanted.size == 2:
            if boundaries is not None:
                raise UsageError("boundaries= is for one column; leave it out, or give one column")
            return DecisionMapDisplay.from_fitted(fitted, wanted, costs, ax=ax)
        curves = curves_of_column(fitted, int(wanted[0]), costs, boundaries, decisions)
        name = fitted.counts.schema.column_name(int(wanted[0]))
        shown = cls(curves.x, curves.joint, costs, curves.rule, curves.best, name, curves.discrete)
        if curves.areas is not None:  # to the last digit
            shown.areas = curves.areas[0]
            shown.risk, shown.least = (float((costs.matrix * area).sum()) for area in curves.areas)
        return shown.plot(ax)

    def plot(self, ax: Axes | None = None) -> "DecisionDisplay":
        """Draw the curves, the boundaries and the areas.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        DecisionDisplay
        """
        own, ax = ax is None, axes_for(ax, (7.5, 4.2))
        self._draw_curves(ax)
        self._draw_errors(ax)
        self._draw_avoidable(ax)
        seen = self.x[self.joint.max(axis=1) > LEAST_SEEN * self.joint.max()]
        low, high = float(seen.min()), float(seen.max())
        within = [edge for edge in self.boundaries if low <= edge <= high]
        for edge in within:
            told = len(within) <= MOST_TOLD_APART
            ax.axvline(edge, color="black", linewidth=1.0, label=f"boundary {edge:.6g}" if told else None)
        for edge in {one.low for one in self.best[1:]} - set(self.boundaries):
            ax.axvline(edge, color=QUIET_COLOUR, linewidth=1.0, linestyle=":")
        ax.set_xlim(low, high)
        ax.set_ylim(bottom=0.0)
        what = "error" if self.loss.is_zero_one else "risk"
        avoidable = f", of which {digits(self.avoidable)} avoidable" if self._moved().any() else ""
        quiet(ax, f"{what} {digits(self.risk)}{avoidable}", shown_name(self.name), "prior × density")
        legend(ax, outside=True, own=own)
        self._drawn(ax)
        return self

    def _draw_curves(self, ax: Axes) -> None:
        for c, style in enumerate(class_styles(self._classes)):
            label = shown_name(self._classes[c])
            ax.plot(self.x, self.joint[:, c], color=style.colour, linestyle=style.line, linewidth=1.6, label=label)

    def _draw_errors(self, ax: Axes) -> None:
        """The part of each class where something else is decided, shaded; of few classes, one decision at a time."""
        styles = class_styles(self._classes)
        names = [shown_name(label) for label in self._classes]
        decisions = list(self.loss.decisions or ())
        apart = len(names) <= MOST_TOLD_APART
        for c, style in enumerate(styles):
            for d, decision in enumerate(decisions):
                if decision == self._classes[c] or not self.areas[d, c] > 0.0:
                    continue
                what = "taken for " if decision in self._classes else "and "
                said = f"{names[c]} {what}{shown_name(decision)} {self.areas[d, c]:.5g}" if apart else None
                for one in (one for one in self.rule if one.decision == d):
                    inside = (self.x >= one.low) & (self.x <= one.high)
                    hatched = apart and c % 2 == 1
                    hatch = {"hatch": style.hatch, "edgecolor": style.colour} if hatched else {"edgecolor": "none"}
                    ax.fill_between(self.x[inside], self.joint[inside, c], facecolor=style.colour, label=said,
                                    alpha=0.35 if apart else 0.12, linewidth=0.0, **hatch)  # fmt: skip
                    said = None

    def _draw_avoidable(self, ax: Axes) -> None:
        """What the rule costs beyond the best one, where they differ: between the curves of the two classes, or, where
        mistakes have costs, the cost itself."""
        moved = self._moved()
        label: str | None = f"avoidable {self.avoidable:.4g}"
        for part in _runs(moved):
            x, joint = self.x[part], self.joint[part]
            middle = np.array([0.5 * (x[0] + x[-1])])
            d, best = (int(decision_at(rule, middle)[0]) for rule in (self.rule, self.best))
            cost = risks(joint, self.loss)
            low, high = np.zeros(x.size), cost[:, d] - cost[:, best]
            if self.loss.is_zero_one:
                low, high = joint[:, d], joint[:, best]
            ax.fill_between(x, low, high, facecolor="none", edgecolor="black", hatch="xxxx", linewidth=0.0, label=label)
            label = None

    def _moved(self) -> Flags:
        """The points between which the rule differs from the best one."""
        middle = 0.5 * (self.x[1:] + self.x[:-1])
        return np.asarray(decision_at(self.rule, middle) != decision_at(self.best, middle))

    @property
    def _classes(self) -> list[Any]:
        return list(self.loss.classes or ())

    def frame(self) -> Any:
        """What is drawn, as a table.

        Returns
        -------
        DataFrame
            A line for each value: prior times density of each class, the decision, and the best one.
        """
        decisions = list(self.loss.decisions or ())
        columns: dict[str, Any] = {"x": self.x}
        columns |= {f"joint of {label}": self.joint[:, c] for c, label in enumerate(self._classes)}
        for name, rule in (("decision", self.rule), ("best", self.best)):
            columns[name] = [decisions[place] for place in decision_at(rule, self.x)]
        return frame_of(columns)


def _runs(moved: Flags) -> list[slice]:
    """The stretches of points between which something holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], moved, [False]]).astype(np.int8)))
    return [slice(int(a), int(b) + 1) for a, b in edges.reshape(-1, 2)]
