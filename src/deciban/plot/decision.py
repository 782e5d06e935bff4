"""Decision regions: `DecisionDisplay` along one column, `DecisionMapDisplay` over two columns."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from deciban.decisions.bayes_error import BayesError, compute_log_joint
from deciban.decisions.decide import compute_risks
from deciban.decisions.loss import Loss
from deciban.decisions.regions import Interval, compute_areas, find_decisions, find_least_risk
from deciban.errors import Argument, UsageError
from deciban.explain.column_values import ColumnValues, find_density_limit, get_column_values
from deciban.explain.decision_curves import compute_joint, find_columns, make_column_curves, make_result_curves
from deciban.explain.estimates import Estimates
from deciban.fitting.fit import open_examples
from deciban.fitting.update import find_class_places
from deciban.model.fitted import Fitted
from deciban.model.linear_forms import form_of
from deciban.model.priors import Empirical, Uniform
from deciban.plot.display import (
    QUIET_COLOR,
    SMALL_SIZE,
    Axes,
    Display,
    add_legend,
    format_name,
    get_class_styles,
    get_fitted,
    make_axes,
    mark_peaks,
    style_axes,
)
from deciban.scoring.predict import loss_for
from deciban.typing import Costs, Labels, Prior, Table
from deciban.util.arrays import Codes, Flags, Floats, Integers
from deciban.util.frames import remember_library
from deciban.util.text_tables import count_noun, format_three
from deciban.web.palette import CLASS_COLORS

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

# The axis ends where every curve is below this fraction of the top of the chart.
MIN_SEEN = 2e-3
# Up to this number of classes, each error area and boundary is listed in the legend.
MAX_LISTED = 3
# What the curves may show, and the label of their axis.
YAxis = Literal["joint", "posterior"]
Y_AXES: dict[str, str] = {"joint": "prior × density", "posterior": "P(class | x)"}
# Opacity of the error areas of a class, one for each wrong decision.
OPACITIES = (0.35, 0.7, 0.15)
# Error areas below this probability are too small to see and are not listed.
MIN_AREA_LISTED = 5e-5
# Height of the strip of region labels, as a fraction of the axes.
STRIP = 0.07
# Width of a character of a region label, as a fraction of the axes.
LETTER = 0.013

# Points along each side of the map.
SIDE_POINTS = 241
# Ellipses enclose these numbers of standard deviations.
ELLIPSES = (1.0, 2.0)
# With more classes, only one ellipse per class is drawn.
MAX_WITH_TWO_ELLIPSES = 6
# Rows drawn as points; of more rows, evenly spaced ones are drawn.
MAX_POINTS = 1500
# Risks below this count as this: the margin between decisions is a difference of logarithms.
MIN_RISK = 1e-300


class DataPoints(NamedTuple):
    """Labeled rows drawn on top of the regions: their values, and the position of the class of each."""

    values: Floats
    labels: Codes


class DecisionDisplay(Display):
    """Prior times density of each class along one column, with decision regions and error areas.

    The strip on top shows the decision in each region. Under the curve of a class, the part where another class is
    decided is shaded: its area is the probability of that error. If the boundaries are not the best ones (moved by
    hand, or best under other priors or costs), the avoidable part of the risk is cross-hatched and the best boundaries
    are dotted. With ``y_axis="posterior"``, the curves are the posteriors, P(class | x).

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        The values along the axis, in ascending order.
    joint : ndarray of shape (n_points, n_classes)
        Prior times density of each class at each value.
    loss : Loss
        The cost of each decision for each true class, with labels.
    regions : sequence of (low, high, decision)
        The decision regions, from the left. A decision is its position in ``loss.decisions``.
    best_regions : sequence of (low, high, decision), default=None
        The regions of minimum risk. None: `regions` are the best ones.
    name : str, default="x"
        The label of the axis.
    discrete : bool, default=False
        True if the values are discrete: each is drawn as a bar.
    x_min : float, default=None
        The lowest value of the axis, such as 0 for an area. None: no limit.
    points : DataPoints, default=None
        Labeled rows to mark along the axis. None: no marks.
    y_axis : {"joint", "posterior"}, default="joint"
        Draw prior times density, or their share in the sum over the classes.

    Attributes
    ----------
    posterior : ndarray of shape (n_points, n_classes)
        P(class | x) at each value; NaN where no class has a density.
    boundaries : list of float
        The values at which the decision changes.
    areas : ndarray of shape (n_decisions, n_classes)
        The probability of each pair of decision and true class.
    risk, bayes_risk, avoidable : float
        The expected loss of the regions, that of the best regions, and their difference.
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    deciban.bayes_error : Regions and error of known distributions.
    DecisionMapDisplay : Regions over two columns.

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
        regions: Sequence[Interval],
        best_regions: Sequence[Interval] | None = None,
        name: str = "x",
        discrete: bool = False,
        x_min: float | None = None,
        points: DataPoints | None = None,
        y_axis: YAxis = "joint",
    ) -> None:
        if y_axis not in Y_AXES:
            raise UsageError((Argument("y_axis"), f" is {y_axis!r}"), remedy='pass "joint" or "posterior"')
        self.y_axis = y_axis
        self.x = x
        self.joint = joint
        self.loss = loss
        self.x_min = x_min
        self.points = points
        self.regions = list(regions)
        self.best_regions = list(regions if best_regions is None else best_regions)
        self.name = name
        self.discrete = discrete
        self.areas = compute_areas(self.regions, joint, x, len(loss.matrix))
        least = compute_areas(self.best_regions, joint, x, len(loss.matrix))
        self.risk, self.bayes_risk = (float((loss.matrix * area).sum()) for area in (self.areas, least))

    @property
    def posterior(self) -> Floats:
        """P(class | x) at each value."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.joint / self.joint.sum(axis=1, keepdims=True))

    @property
    def boundaries(self) -> list[float]:
        """Values at which the decision changes."""
        return [one.low for one in self.regions[1:]]

    @property
    def avoidable(self) -> float:
        """Risk of the regions minus the risk of the best regions."""
        return max(self.risk - self.bayes_risk, 0.0)

    @classmethod
    def from_bayes_error(
        cls, result: BayesError, *, name: str = "x", y_axis: YAxis = "joint", ax: Axes | None = None
    ) -> DecisionDisplay | DecisionMapDisplay:
        """Draw the result of `deciban.bayes_error`.

        Parameters
        ----------
        result : BayesError
            The result for distributions of one or two dimensions.
        name : str, default="x"
            The label of the axis.
        y_axis : {"joint", "posterior"}, default="joint"
            Draw prior times density, or the posterior. Only in one dimension.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        DecisionDisplay or DecisionMapDisplay
        """
        if result.prior is None:
            raise UsageError("this result has no distributions", remedy="pass a result of deciban.bayes_error")
        if not result.regions:
            _check_curves(y_axis)
            return DecisionMapDisplay.from_bayes_error(result, ax=ax)
        curves = make_result_curves(result)
        shown = cls(curves.x, curves.joint, result.loss, curves.rule, curves.best, name, curves.discrete, y_axis=y_axis)
        shown.areas, shown.risk, shown.bayes_risk = result.areas, result.risk, result.bayes_risk  # to the last digit
        return shown.plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesClassifier,
        columns: Any = None,
        *,
        prior: Prior | Empirical | Uniform | None = None,
        loss: Loss | Costs | None = None,
        boundaries: Sequence[float] | None = None,
        decisions: Sequence[Any] | None = None,
        X: Table | None = None,
        y: Labels | None = None,
        y_axis: YAxis = "joint",
        ax: Axes | None = None,
    ) -> DecisionDisplay | DecisionMapDisplay:
        """Draw the decisions of a fitted classifier along one column or over two, with all other columns missing.

        The curves are prior times density, by the family that the model uses for the column (for a column that is only
        in a joint block, its marginal). For a tuned classifier of exactly these columns, they are its posterior times
        that density. Areas are exact for families with a cumulative distribution and for bins.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        columns : str, int, or two of them, default=None
            One column or two columns. None: all columns of a classifier that has at most two.
        prior : str, mapping or sequence, default=None
            Another prior, as in `BayesClassifier.with_prior`. None: the prior of the classifier.
        loss : Loss, matrix, mapping, table or path, default=None
            The cost of each decision, as in `BayesClassifier.decide`. None: zero-one loss.
        boundaries : sequence of float, default=None
            Boundaries to draw instead of the best ones. Only for one column.
        decisions : sequence of labels, default=None
            The decision between the boundaries, from the left. None: the best one in each interval.
        X : table, default=None
            Labeled rows to draw as points. None: no points.
        y : array-like or str, default=None
            Their labels, or the name of the target column.
        y_axis : {"joint", "posterior"}, default="joint"
            Draw prior times density, or the posterior. Only for one column.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        DecisionDisplay or DecisionMapDisplay
        """
        if find_columns(get_fitted(estimator), columns).size == 2:
            if boundaries is not None:
                raise UsageError(
                    (Argument("boundaries"), " needs exactly one column"), remedy="leave it out, or pass one column"
                )
            _check_curves(y_axis)
            return DecisionMapDisplay.from_estimator(estimator, columns, prior=prior, loss=loss, X=X, y=y, ax=ax)
        fitted, wanted, costs, points = _prepare(estimator, columns, prior, loss, X, y)
        curves = make_column_curves(fitted, int(wanted[0]), costs, boundaries, decisions)
        name = fitted.counts.schema.column_name(int(wanted[0]))
        numbers = get_column_values(fitted, int(wanted[0])).numbers
        lowest = np.nan if numbers is None else float(numbers[0])
        if points is not None and np.isfinite(points.values).any():
            lowest = float(np.nanmin(points.values))
        x_min = 0.0 if lowest >= 0.0 else None  # no negative values were seen
        shown = cls(
            curves.x,
            curves.joint,
            costs,
            curves.rule,
            curves.best,
            name,
            curves.discrete,
            x_min=x_min,
            points=points,
            y_axis=y_axis,
        )
        if curves.areas is not None:  # to the last digit
            shown.areas = curves.areas[0]
            shown.risk, shown.bayes_risk = (float((costs.matrix * area).sum()) for area in curves.areas)
        return remember_library(shown, X, estimator).plot(ax)

    def plot(self, ax: Axes | None = None) -> DecisionDisplay:
        """Draw the curves, the boundaries and, under curves of prior times density, the areas.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        DecisionDisplay
        """
        own, ax = ax is None, make_axes(ax, (7.5, 4.2))
        joint = self.y_axis == "joint"
        self._draw_curves(ax)
        if joint:
            self._draw_errors(ax)
            self._draw_avoidable(ax)
        top = float(self.joint.max()) if self.discrete else find_density_limit(self.x, self.joint)
        seen = self.x[self.joint.max(axis=1) > MIN_SEEN * top]
        low, high = float(seen.min()), float(seen.max())
        low = low if self.x_min is None else max(low, self.x_min)
        self._draw_boundaries(ax, low, high)
        self._draw_points(ax)
        ax.set_xlim(low, high)
        highest = top if joint else 1.0  # narrow peaks are clipped, which would flatten the other curves
        ax.set_ylim(0.0, highest * 1.06 / (1.0 - STRIP))
        self._label_regions(ax, low, high)
        if joint:
            mark_peaks(ax, self.x, self.joint, highest * 1.06, self._classes)
        what = "error" if self.loss.is_zero_one else "expected cost"
        avoidable = f", of which {self._format(self.avoidable)} avoidable" if self._find_moved().any() else ""
        title = f"Decision regions: {what} {self._format(self.risk)}{avoidable}"
        style_axes(ax, title, format_name(self.name), Y_AXES[self.y_axis])
        add_legend(ax, outside=True, own=own)
        self._remember_axes(ax)
        return self

    def _format(self, risk: float) -> str:
        """Format an error as a percentage, and a cost as a number."""
        return _format_percent(risk) if self.loss.is_zero_one else format_three(risk)

    def _draw_curves(self, ax: Axes) -> None:
        curves = self.joint if self.y_axis == "joint" else self.posterior
        for c, style in enumerate(get_class_styles(self._classes)):
            label = format_name(self._classes[c])
            ax.plot(self.x, curves[:, c], color=style.color, linestyle=style.line, linewidth=1.6, label=label)

    def _draw_errors(self, ax: Axes) -> None:
        """Shade the part of each class where a decision is made that costs more than the best one for this class."""
        styles = get_class_styles(self._classes)
        names = [format_name(label) for label in self._classes]
        decisions = list(self.loss.decisions or ())
        listed = len(names) <= MAX_LISTED
        matrix = self.loss.matrix
        for c, style in enumerate(styles):
            wrong = [
                d
                for d, decision in enumerate(decisions)
                if decision != self._classes[c] and matrix[d, c] > matrix[:, c].min() and self.areas[d, c] > 0.0
            ]
            for opacity, d in zip(cycle(OPACITIES), wrong, strict=False):
                decision = decisions[d]
                label: str | None = (
                    f"{names[c]} decided as {format_name(decision)}: {_format_percent(self.areas[d, c])}"
                )
                if not listed or self.areas[d, c] < MIN_AREA_LISTED:
                    label = None
                for region in (one for one in self.regions if one.decision == d):
                    inside = (self.x >= region.low) & (self.x <= region.high)
                    hatched = listed and c % 2 == 1
                    hatch = {"hatch": style.hatch, "edgecolor": style.color} if hatched else {"edgecolor": "none"}
                    ax.fill_between(self.x[inside], self.joint[inside, c], facecolor=style.color, label=label,
                                    alpha=opacity if listed else 0.12, linewidth=0.0, **hatch)  # fmt: skip
                    label = None

    def _draw_boundaries(self, ax: Axes, low: float, high: float) -> None:
        """Draw the boundaries on the axis, and the best ones if they differ."""
        best = [region.low for region in self.best_regions[1:] if region.low not in self.boundaries]
        for edges, name, color, line in (
            (self.boundaries, "boundary", "black", "-"),
            (best, "best boundary", QUIET_COLOR, ":"),
        ):
            drawn = [edge for edge in edges if low <= edge <= high]
            for edge in drawn:
                label = f"{name}: {format_three(edge)}" if len(drawn) <= MAX_LISTED else None
                ax.axvline(edge, ymax=1.0 - STRIP, color=color, linewidth=1.2, linestyle=line, label=label)

    def _draw_points(self, ax: Axes) -> None:
        """Mark the values of labeled rows at the bottom."""
        if self.points is None:
            return
        styles = get_class_styles(self._classes)
        for c, style in enumerate(styles):
            values = self.points.values[self.points.labels == c, 0]
            at = np.full(values.size, 0.012 + 0.022 * (len(styles) - 1 - c))
            ax.plot(values, at, transform=ax.get_xaxis_transform(), color=style.color, marker="|", markersize=5,
                    linestyle="none", alpha=0.6)  # fmt: skip

    def _label_regions(self, ax: Axes, low: float, high: float) -> None:
        """Draw a strip on top with the decision in each region."""
        decisions, classes = list(self.loss.decisions or ()), self._classes
        styles = get_class_styles(classes)
        visible = [region for region in self.regions if max(region.low, low) < min(region.high, high)]
        for region in visible:
            left, right = max(region.low, low), min(region.high, high)
            decision = decisions[region.decision]
            color = styles[classes.index(decision)].color if decision in classes else QUIET_COLOR
            ax.axvspan(left, right, 1.0 - STRIP, 1.0, facecolor="white", zorder=2.5)  # hides clipped peaks
            ax.axvspan(left, right, 1.0 - STRIP, 1.0, facecolor=color, alpha=0.3, edgecolor="white", zorder=2.6)
            text = f"decide {format_name(decision)}"
            if len(visible) == 1:
                text = f"always {text}" if len(self.regions) == 1 else f"{text} for all values shown"
            share = (right - left) / (high - low)
            if LETTER * len(text) > share:  # no room for the verb
                text = format_name(decision)
            if LETTER * len(text) <= share:
                ax.text(0.5 * (left + right), 1.0 - 0.5 * STRIP, text, transform=ax.get_xaxis_transform(),
                        ha="center", va="center_baseline", fontsize=SMALL_SIZE)  # fmt: skip

    def _draw_avoidable(self, ax: Axes) -> None:
        """Hatch the avoidable risk: the area between the curves of two classes, or the extra cost."""
        moved = self._find_moved()
        label: str | None = f"avoidable: {self._format(self.avoidable)}"
        for part in _find_runs(moved):
            x, joint = self.x[part], self.joint[part]
            middle = np.array([0.5 * (x[0] + x[-1])])
            d, best = (int(find_decisions(rule, middle)[0]) for rule in (self.regions, self.best_regions))
            cost = compute_risks(joint, self.loss)
            low, high = np.zeros(x.size), cost[:, d] - cost[:, best]
            if self.loss.is_zero_one:
                low, high = joint[:, d], joint[:, best]
            ax.fill_between(x, low, high, facecolor="none", edgecolor="black", hatch="xxxx", linewidth=0.0, label=label)
            label = None

    def _find_moved(self) -> Flags:
        """Return the steps between points at which the decision is not the best one."""
        middle = 0.5 * (self.x[1:] + self.x[:-1])
        return np.asarray(find_decisions(self.regions, middle) != find_decisions(self.best_regions, middle))

    @property
    def _classes(self) -> list[Any]:
        return list(self.loss.classes or ())

    def _columns(self) -> dict[str, Any]:
        """Return a row for each value: prior times density and posterior of each class, and the two decisions."""
        decisions = list(self.loss.decisions or ())
        columns: dict[str, Any] = {"x": self.x}
        columns |= {f"joint of {label}": self.joint[:, c] for c, label in enumerate(self._classes)}
        columns |= {f"P({label})": self.posterior[:, c] for c, label in enumerate(self._classes)}
        for name, rule in (("decision", self.regions), ("best", self.best_regions)):
            columns[name] = [decisions[place] for place in find_decisions(rule, self.x)]
        return columns


def _check_curves(y_axis: YAxis) -> None:
    """Raise an error if curves were requested where a map is drawn."""
    if y_axis != "joint":
        raise UsageError((Argument("y_axis"), " needs exactly one column"), remedy="leave it out, or pass one column")


def _find_runs(moved: Flags) -> list[slice]:
    """Return the runs of points between which a condition holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], moved, [False]]).astype(np.int8)))
    return [slice(int(a), int(b) + 1) for a, b in edges.reshape(-1, 2)]


class Ellipse(NamedTuple):
    """Mean and covariance of the class at a position."""

    label: int
    mean: Floats
    covariance: Floats


class DecisionMapDisplay(Display):
    """Decision regions over two columns, with ellipses of one and two standard deviations of each class.

    Parameters
    ----------
    x, y : ndarray of shape (n_x,), (n_y,)
        The values along both axes.
    joint : ndarray of shape (n_y, n_x, n_classes)
        Prior times density of each class.
    loss : Loss
        The cost of each decision for each true class, with labels.
    names : (str, str), default=("x", "y")
        The labels of the axes.
    ellipses : sequence of (class, mean, covariance), default=()
        The spread of the classes. A class is its position.
    boundary : {"linear", "quadratic"} or None, default=None
        The shape of the boundary between two classes. None: neither.
    points : DataPoints, default=None
        Labeled rows to draw. None: no points.

    Attributes
    ----------
    decisions : ndarray of shape (n_y, n_x)
        The position of the decision of minimum risk in ``loss.decisions``.
    margins : ndarray of shape (n_y, n_x, n_decisions)
        By how much each decision has a lower risk than all others, as a log ratio: 0 on its boundary.
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    DecisionDisplay : Regions along one column.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier, JointGaussian, Pooled
    >>> from deciban.plot import DecisionMapDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = BayesClassifier(JointGaussian(covariance=Pooled()), tune=None).fit(X[:, 2:], y)
    >>> shown = DecisionMapDisplay.from_estimator(lda)
    >>> shown.boundary, len(shown.ellipses)
    ('linear', 3)
    """

    def __init__(
        self,
        x: Floats,
        y: Floats,
        joint: Floats,
        loss: Loss,
        names: tuple[str, str] = ("x", "y"),
        ellipses: Sequence[Ellipse] = (),
        boundary: str | None = None,
        points: DataPoints | None = None,
    ) -> None:
        self.x = x
        self.y = y
        self.joint = joint
        self.loss = loss
        self.names = names
        self.ellipses = list(ellipses)
        self.boundary = boundary
        self.points = points
        flat = joint.reshape(-1, joint.shape[2])
        self.decisions = find_least_risk(flat, loss).reshape(joint.shape[:2])
        self.margins = _find_margins(flat, loss).reshape(*joint.shape[:2], -1)

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesClassifier,
        columns: Any = None,
        *,
        prior: Prior | Empirical | Uniform | None = None,
        loss: Loss | Costs | None = None,
        X: Table | None = None,
        y: Labels | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the decisions of a fitted classifier over two columns, with all other columns missing.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        columns : two of str or int, default=None
            Two columns of numbers. None: the columns of a classifier that has two.
        prior : str, mapping or sequence, default=None
            Another prior, as in `BayesClassifier.with_prior`. None: the prior of the classifier.
        loss : Loss, matrix, mapping, table or path, default=None
            The cost of each decision, as in `BayesClassifier.decide`. None: zero-one loss.
        X : table, default=None
            Labeled rows to draw as points. None: no points.
        y : array-like or str, default=None
            Their labels, or the name of the target column.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        DecisionMapDisplay
        """
        fitted, wanted, costs, points = _prepare(estimator, columns, prior, loss, X, y)
        if wanted.size != 2:
            raise UsageError(
                f"a map has two columns; {count_noun(wanted.size, 'column')} given",
                remedy="name two columns, or use DecisionDisplay for one",
            )
        values = [get_column_values(fitted, int(column), SIDE_POINTS, even=True) for column in wanted]
        for one in values:
            if one.numbers is None or one.dates:
                raise UsageError(f"column {one.name!r} is not numeric", remedy="choose two numeric columns")
        x, y = (_get_axis_points(one, None if points is None else points.values[:, k]) for k, one in enumerate(values))
        grid = np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1)
        joint = compute_joint(fitted, values, grid).reshape(y.size, x.size, -1)
        names = (values[0].name, values[1].name)
        continuous = all(one.kind == "continuous" for one in values)
        kind = _find_boundary_kind(fitted, {int(column) for column in wanted}) if continuous else None
        shown = cls(x, y, joint, costs, names, _find_ellipses(fitted, names), kind, points)
        return remember_library(shown, X, estimator).plot(ax)

    @classmethod
    def from_bayes_error(cls, result: BayesError, *, ax: Axes | None = None) -> Self:
        """Draw the result of `deciban.bayes_error` for distributions of two dimensions.

        Parameters
        ----------
        result : BayesError
            The result for known distributions.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        DecisionMapDisplay
        """
        first = result.distributions[0] if result.distributions else None
        if result.prior is None or getattr(first, "dim", 0) != 2 or not hasattr(first, "cov"):
            raise UsageError(
                "these distributions cannot be drawn", remedy="pass normal distributions of one or two dimensions"
            )
        ellipses = [Ellipse(c, np.asarray(d.mean), np.asarray(d.cov)) for c, d in enumerate(result.distributions)]
        reach = [(one.mean + side * 3.5 * np.sqrt(np.diag(one.covariance))) for one in ellipses for side in (-1.0, 1.0)]
        x, y = (
            np.linspace(*ends, SIDE_POINTS) for ends in zip(np.min(reach, axis=0), np.max(reach, axis=0), strict=True)
        )
        points = np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1)
        joint = np.exp(compute_log_joint(result.distributions, result.prior, points)).reshape(y.size, x.size, -1)
        same = all(np.allclose(one.covariance, ellipses[0].covariance) for one in ellipses)
        return cls(x, y, joint, result.loss, ("x", "y"), ellipses, "linear" if same else "quadratic").plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the regions, the boundaries and the ellipses.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        DecisionMapDisplay
        """
        own, ax = ax is None, make_axes(ax, (6.8, 5.0))
        handles = [*self._draw_regions(ax), *self._draw_points(ax), *self._draw_ellipses(ax)]
        kind = f", {self.boundary} boundaries" if self.boundary else ""
        style_axes(ax, f"Decision regions{kind}", *map(format_name, self.names))
        ax.set_xlim(self.x[0], self.x[-1])
        ax.set_ylim(self.y[0], self.y[-1])
        add_legend(ax, handles, outside=True, own=own)
        self._remember_axes(ax)
        return self

    def _draw_regions(self, ax: Axes) -> list[Any]:
        """Fill each region in the color of its decision, draw the boundaries, and return legend entries."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        labels, classes = list(self.loss.decisions or ()), list(self.loss.classes or ())
        names = [*classes, *(label for label in labels if label not in classes)]
        styles = dict(zip(names, get_class_styles(names), strict=True))
        handles: list[Any] = []
        for d, label in enumerate(labels):
            inside, margin = self.decisions == d, self.margins[:, :, d]
            color = styles[label].color
            hatch = styles[label].hatch if len(names) > len(CLASS_COLORS) else None  # two may have the same color
            look: dict[str, Any] = {"facecolor": (color, 0.35), "edgecolor": color, "linewidth": 0.0, "hatch": hatch}
            handles.append(Patch(**look, label=f"decide {format_name(label)}"))
            if inside.any():
                filled = {"levels": [0.0, np.inf], "colors": [(color, 0.25)], "hatches": [hatch]}
                ax.contourf(self.x, self.y, margin, **filled).set(edgecolor=color, linewidth=0.0)
            if inside.any() and not inside.all():
                ax.contour(self.x, self.y, margin, levels=[0.0], colors="black", linewidths=1.0)
        if self.points is None and self.ellipses and not set(classes) <= set(labels):
            for label in classes:
                style = {"color": styles[label].color, "linestyle": styles[label].line, "marker": styles[label].marker}
                handles.append(Line2D([], [], **style, label=format_name(label)))
        return handles

    def _draw_points(self, ax: Axes) -> list[Any]:
        """Draw labeled rows, and return legend entries."""
        if self.points is None:
            return []
        classes = list(self.loss.classes or ())
        handles = []
        for c, style in enumerate(get_class_styles(classes)):
            x, y = self.points.values[self.points.labels == c].T
            look = {"color": style.color, "marker": style.marker, "linestyle": "none", "markersize": 3.5}
            handles += ax.plot(x, y, alpha=0.7, markeredgewidth=0.0, label=format_name(classes[c]), **look)
        return handles

    def _draw_ellipses(self, ax: Axes) -> list[Any]:
        """Draw the ellipses of all classes, and return a legend entry."""
        styles = get_class_styles(self.loss.classes or ())
        turn = np.linspace(0.0, 2.0 * np.pi, 121)
        circle = np.stack([np.cos(turn), np.sin(turn)])
        for label, mean, covariance in self.ellipses:
            values, vectors = np.linalg.eigh(covariance)
            shape = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * circle)
            style = styles[label]
            for size in ELLIPSES[: 2 if len(self.ellipses) <= MAX_WITH_TWO_ELLIPSES else 1]:
                ax.plot(*(mean[:, None] + size * shape), color=style.color, linestyle=style.line, linewidth=1.4)
            look = {"color": style.color, "marker": style.marker, "markersize": 7, "markeredgecolor": "white"}
            ax.plot(*mean, linestyle="none", **look)
        if not self.ellipses:
            return []
        sizes = "1 and 2 std. deviations" if len(self.ellipses) <= MAX_WITH_TWO_ELLIPSES else "1 std. deviation"
        return list(ax.plot([], [], color=QUIET_COLOR, linewidth=1.4, label=f"mean, {sizes}"))

    def _columns(self) -> dict[str, Any]:
        """Return a row for each point of the grid: prior times density of each class, and the decision."""
        x, y = (part.ravel() for part in np.meshgrid(self.x, self.y))
        decisions = list(self.loss.decisions or ())
        columns: dict[str, Any] = {"x": x, "y": y}
        columns |= {f"joint of {label}": self.joint[:, :, c].ravel() for c, label in enumerate(self.loss.classes or ())}
        return {**columns, "decision": [decisions[place] for place in self.decisions.ravel()]}


def _find_margins(joint: Floats, loss: Loss) -> Floats:
    """Return the log ratio of the lowest other risk to the risk of each decision: positive where it is best.

    The zero lines of these smooth functions are the boundaries, so that contours of them are not staircases.
    """
    total = np.maximum(joint.sum(axis=1, keepdims=True), MIN_RISK)
    log_risk = np.log(np.maximum(compute_risks(joint / total, loss), MIN_RISK))
    margins = np.empty_like(log_risk)
    for d in range(log_risk.shape[1]):
        others = np.delete(log_risk, d, axis=1)
        margins[:, d] = (others.min(axis=1) if others.size else 0.0) - log_risk[:, d]
    return margins


def _prepare(
    estimator: Any, columns: Any, prior: Any, loss: Any, X: Any, y: Any
) -> tuple[Fitted, Integers, Loss, DataPoints | None]:
    """Return the fitted state under this prior, the positions of the columns, the loss, and the rows to draw."""
    fitted = get_fitted(estimator if prior is None else estimator.with_prior(prior))
    wanted = find_columns(fitted, columns)
    points = None if X is None else _read_points(fitted, wanted, X, y)
    return fitted, wanted, loss_for(fitted, loss), points


def _read_points(fitted: Fitted, columns: Integers, X: Any, y: Any) -> DataPoints:
    """Read the values of labeled rows in these columns, of many rows a part."""
    rows = open_examples(fitted, X, y).whole()
    kept = np.arange(rows.table.rows)[:: -(-rows.table.rows // MAX_POINTS) or 1]
    labels = find_class_places(fitted, rows.labels, rows.weights)[kept]
    table = fitted.counts.schema.table_as_learned(rows.table.take(kept))
    values = np.asarray(table.numbers([int(column) for column in columns]), dtype=np.float64)
    return DataPoints(values, labels)


def _format_percent(share: float) -> str:
    return f"{format_three(100.0 * share)}%"


def _get_axis_points(values: ColumnValues, shown: Floats | None) -> Floats:
    """Return the values along an axis, widened to the rows that are shown."""
    assert values.numbers is not None, "checked before"
    if values.kind != "continuous":
        return values.numbers if values.numbers.size > 1 else values.numbers[0] + np.array([-0.5, 0.5])
    if shown is None or not np.isfinite(shown).any():
        return values.numbers
    low, high = np.fmin(values.numbers[0], np.nanmin(shown)), np.fmax(values.numbers[-1], np.nanmax(shown))
    room = 0.02 * (high - low)
    low = low if 0.0 <= low <= room else low - room  # not below 0 if no value is
    return np.linspace(low, high + room, SIDE_POINTS)


def _find_ellipses(fitted: Fitted, names: tuple[str, str]) -> list[Ellipse]:
    """Return the spread of each class in two columns, from a block of both or from each column on its own.

    The list is empty if a family has no mean and variance.
    """
    blocks = list(Estimates.from_model(fitted.model).values()) + list(Estimates.from_model(fitted.generative).values())
    size = fitted.classes.size
    for block in blocks:
        if "covariance" in block.parameters and set(names) <= set(block.columns):
            at = [block.columns.index(name) for name in names]
            return [Ellipse(c, block["mean"][c][at], block["covariance"][c][np.ix_(at, at)]) for c in range(size)]
    alone = [next((b for b in blocks if b.columns == (name,) and "variance" in b.parameters), None) for name in names]
    first, second = alone
    if first is None or second is None:
        return []
    means, variances = (np.stack([first[of], second[of]], axis=1) for of in ("mean", "variance"))
    return [Ellipse(c, means[c], np.diag(variances[c])) for c in range(size)]


def _find_boundary_kind(fitted: Fitted, columns: Set[int]) -> str | None:
    """Return the shape of the boundaries if the model is a linear or a quadratic form of these columns."""
    schema = fitted.model.schema
    for quadratic in (False, True):
        try:
            form = form_of(fitted.model, quadratic=quadratic)
        except UsageError:
            continue
        drawn = [some for group, some in form.terms.items() if columns & set(schema.groups[group].columns)]
        features = {name for some in drawn for terms in some for name in terms.names}
        itself = features <= set(schema.column_names)  # not a function of it, such as its logarithm
        return ("quadratic" if quadratic else "linear") if itself else None
    return None
