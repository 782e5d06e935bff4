"""Where each decision is taken: `DecisionDisplay` along one column, `DecisionMapDisplay` over two."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from deciban.decisions.bayes_error import BayesError, compute_log_joint
from deciban.decisions.decide import compute_risks
from deciban.decisions.loss import Loss
from deciban.decisions.regions import Interval, compute_areas, find_decisions, find_least_risk
from deciban.errors import Argument, UsageError
from deciban.explain.column_values import ColumnValues, values_of
from deciban.explain.decision_curves import curves_of_column, curves_of_result, joint_of, places_of_columns
from deciban.explain.estimates import Estimates
from deciban.model.fitted import Fitted
from deciban.model.linear_forms import form_of
from deciban.plot.display import (
    QUIET_COLOR,
    Axes,
    ClassStyle,
    Display,
    axes_for,
    class_styles,
    fitted_of,
    legend,
    quiet,
    shown_name,
)
from deciban.scoring.predict import loss_for
from deciban.util.arrays import Flags, Floats, Integers
from deciban.util.frames import data_frame
from deciban.util.text_tables import format_digits
from deciban.web.palette import CLASS_COLORS

# The share of the highest curve that is seen at the ends of the axis, and the classes whose errors are told one by one.
MIN_SEEN = 2e-3
MAX_TOLD_APART = 3

# Points along each side of the map, how many standard deviations the ellipses enclose, and the most classes that have
# two of them.
SIDE_POINTS = 241
ELLIPSES = (1.0, 2.0)
MAX_WITH_TWO_ELLIPSES = 6


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
    regions : sequence of (low, high, decision)
        The intervals of the rule that is drawn, from the left; a decision is its place in ``loss.decisions``.
    best_regions : sequence of (low, high, decision), default=None
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
    risk, min_risk, avoidable : float
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
        regions: Sequence[Interval],
        best_regions: Sequence[Interval] | None = None,
        name: str = "x",
        discrete: bool = False,
    ) -> None:
        self.x = x
        self.joint = joint
        self.loss = loss
        self.regions = list(regions)
        self.best_regions = list(regions if best_regions is None else best_regions)
        self.name = name
        self.discrete = discrete
        self.areas = compute_areas(self.regions, joint, x, len(loss.matrix))
        least = compute_areas(self.best_regions, joint, x, len(loss.matrix))
        self.risk, self.min_risk = (float((loss.matrix * area).sum()) for area in (self.areas, least))

    @property
    def boundaries(self) -> list[float]:
        """The points at which the decision changes."""
        return [one.low for one in self.regions[1:]]

    @property
    def avoidable(self) -> float:
        """The risk of the rule less that of the best one."""
        return max(self.risk - self.min_risk, 0.0)

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
            raise UsageError("this result has no distributions", remedy="give what deciban.bayes_error returns")
        if not result.regions:
            return DecisionMapDisplay.from_bayes_error(result, ax=ax)
        curves = curves_of_result(result)
        shown = cls(curves.x, curves.joint, result.loss, curves.rule, curves.best, name, curves.discrete)
        shown.areas, shown.risk, shown.min_risk = result.areas, result.risk, result.bayes_risk  # to the last digit
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
                raise UsageError(
                    (Argument("boundaries"), " is for one column"), remedy="leave it out, or give one column"
                )
            return DecisionMapDisplay.from_fitted(fitted, wanted, costs, ax=ax)
        curves = curves_of_column(fitted, int(wanted[0]), costs, boundaries, decisions)
        name = fitted.counts.schema.column_name(int(wanted[0]))
        shown = cls(curves.x, curves.joint, costs, curves.rule, curves.best, name, curves.discrete)
        if curves.areas is not None:  # to the last digit
            shown.areas = curves.areas[0]
            shown.risk, shown.min_risk = (float((costs.matrix * area).sum()) for area in curves.areas)
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
        seen = self.x[self.joint.max(axis=1) > MIN_SEEN * self.joint.max()]
        low, high = float(seen.min()), float(seen.max())
        within = [edge for edge in self.boundaries if low <= edge <= high]
        for edge in within:
            told = len(within) <= MAX_TOLD_APART
            ax.axvline(edge, color="black", linewidth=1.0, label=f"boundary {edge:.6g}" if told else None)
        for edge in {one.low for one in self.best_regions[1:]} - set(self.boundaries):
            ax.axvline(edge, color=QUIET_COLOR, linewidth=1.0, linestyle=":")
        ax.set_xlim(low, high)
        ax.set_ylim(bottom=0.0)
        what = "error" if self.loss.is_zero_one else "risk"
        avoidable = f", of which {format_digits(self.avoidable)} avoidable" if self._moved().any() else ""
        quiet(ax, f"{what} {format_digits(self.risk)}{avoidable}", shown_name(self.name), "prior × density")
        legend(ax, outside=True, own=own)
        self._count_held(ax)
        return self

    def _draw_curves(self, ax: Axes) -> None:
        for c, style in enumerate(class_styles(self._classes)):
            label = shown_name(self._classes[c])
            ax.plot(self.x, self.joint[:, c], color=style.color, linestyle=style.line, linewidth=1.6, label=label)

    def _draw_errors(self, ax: Axes) -> None:
        """The part of each class where something else is decided, shaded; of few classes, one decision at a time."""
        styles = class_styles(self._classes)
        names = [shown_name(label) for label in self._classes]
        decisions = list(self.loss.decisions or ())
        apart = len(names) <= MAX_TOLD_APART
        for c, style in enumerate(styles):
            for d, decision in enumerate(decisions):
                if decision == self._classes[c] or not self.areas[d, c] > 0.0:
                    continue
                what = "taken for " if decision in self._classes else "and "
                said = f"{names[c]} {what}{shown_name(decision)} {self.areas[d, c]:.5g}" if apart else None
                for one in (one for one in self.regions if one.decision == d):
                    inside = (self.x >= one.low) & (self.x <= one.high)
                    hatched = apart and c % 2 == 1
                    hatch = {"hatch": style.hatch, "edgecolor": style.color} if hatched else {"edgecolor": "none"}
                    ax.fill_between(self.x[inside], self.joint[inside, c], facecolor=style.color, label=said,
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
            d, best = (int(find_decisions(rule, middle)[0]) for rule in (self.regions, self.best_regions))
            cost = compute_risks(joint, self.loss)
            low, high = np.zeros(x.size), cost[:, d] - cost[:, best]
            if self.loss.is_zero_one:
                low, high = joint[:, d], joint[:, best]
            ax.fill_between(x, low, high, facecolor="none", edgecolor="black", hatch="xxxx", linewidth=0.0, label=label)
            label = None

    def _moved(self) -> Flags:
        """The points between which the rule differs from the best one."""
        middle = 0.5 * (self.x[1:] + self.x[:-1])
        return np.asarray(find_decisions(self.regions, middle) != find_decisions(self.best_regions, middle))

    @property
    def _classes(self) -> list[Any]:
        return list(self.loss.classes or ())

    def to_frame(self) -> Any:
        """What is drawn, as a table.

        Returns
        -------
        DataFrame
            A line for each value: prior times density of each class, the decision, and the best one.
        """
        decisions = list(self.loss.decisions or ())
        columns: dict[str, Any] = {"x": self.x}
        columns |= {f"joint of {label}": self.joint[:, c] for c, label in enumerate(self._classes)}
        for name, rule in (("decision", self.regions), ("best", self.best_regions)):
            columns[name] = [decisions[place] for place in find_decisions(rule, self.x)]
        return data_frame(columns)


def _runs(moved: Flags) -> list[slice]:
    """The stretches of points between which something holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], moved, [False]]).astype(np.int8)))
    return [slice(int(a), int(b) + 1) for a, b in edges.reshape(-1, 2)]


class Ellipse(NamedTuple):
    """The mean and the covariance of a class, known by its place."""

    label: int
    mean: Floats
    covariance: Floats


class DecisionMapDisplay(Display):
    """Where each decision is taken over two columns, and ellipses of one and two standard deviations of each class.

    Parameters
    ----------
    x, y : ndarray of shape (n_x,), (n_y,)
        The values along both axes.
    joint : ndarray of shape (n_y, n_x, n_classes)
        Prior times density of each class.
    loss : Loss
        What each decision costs under each truth, with labels.
    names : (str, str), default=("x", "y")
        What the axes are called.
    ellipses : sequence of (class, mean, covariance), default=()
        The spread of classes, each known by its place.
    boundary : {"linear", "quadratic"} or None, default=None
        What kind of boundary there is between two classes. None: another one.

    Attributes
    ----------
    decisions : ndarray of shape (n_y, n_x)
        The place of the decision of least risk in ``loss.decisions``.
    ax_, figure_ : Axes, Figure
        Where it was drawn.

    See Also
    --------
    DecisionDisplay : One column, and the way to make this one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier, JointGaussian, Pooled
    >>> from deciban.plot import DecisionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = BayesClassifier(JointGaussian(covariance=Pooled()), tune=None).fit(X[:, 2:], y)
    >>> shown = DecisionDisplay.from_estimator(lda)
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
    ) -> None:
        self.x = x
        self.y = y
        self.joint = joint
        self.loss = loss
        self.names = names
        self.ellipses = list(ellipses)
        self.boundary = boundary
        self.decisions = find_least_risk(joint.reshape(-1, joint.shape[2]), loss).reshape(joint.shape[:2])

    @classmethod
    def from_fitted(cls, fitted: Fitted, columns: Integers, loss: Loss, *, ax: Axes | None = None) -> Self:
        """Draw two columns of what a classifier has learned, all others missing.

        Parameters
        ----------
        fitted : Fitted
            As in the attribute `fitted_` of a classifier.
        columns : ndarray of shape (2,)
            The places of the columns.
        loss : Loss
            What each decision costs, for the classes of the classifier.
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        DecisionMapDisplay
        """
        found = [values_of(fitted, int(column), SIDE_POINTS, even=True) for column in columns]
        for one in found:
            if one.numbers is None or one.dates:
                raise UsageError(f"the column {one.name!r} holds no numbers", remedy="choose two that do")
        x, y = (_line(one) for one in found)
        points = np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1)
        joint = joint_of(fitted, found, points).reshape(y.size, x.size, -1)
        names = (found[0].name, found[1].name)
        kind = _boundary(fitted) if all(one.kind == "continuous" for one in found) else None
        return cls(x, y, joint, loss, names, _ellipses(fitted, names), kind).plot(ax)

    @classmethod
    def from_bayes_error(cls, result: BayesError, *, ax: Axes | None = None) -> Self:
        """Draw what `deciban.bayes_error` has found of distributions of two dimensions.

        Parameters
        ----------
        result : BayesError
            The risk of known distributions.
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        DecisionMapDisplay
        """
        first = result.distributions[0] if result.distributions else None
        if result.prior is None or getattr(first, "dim", 0) != 2 or not hasattr(first, "cov"):
            raise UsageError(
                "these distributions cannot be drawn", remedy="give normal ones of two dimensions, or of one"
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
            Where to draw; None makes a new figure.

        Returns
        -------
        DecisionMapDisplay
        """
        own, ax = ax is None, axes_for(ax, (6.6, 5.2))
        handles = self._draw_regions(ax)
        self._draw_ellipses(ax)
        kind = {"linear": "linear boundary", "quadratic": "quadratic boundary"}.get(self.boundary or "", "regions")
        quiet(ax, f"{kind}, standard deviations" if self.ellipses else kind, *map(shown_name, self.names))
        ax.set_xlim(self.x[0], self.x[-1])
        ax.set_ylim(self.y[0], self.y[-1])
        legend(ax, handles, outside=True, own=own)
        self._count_held(ax)
        return self

    def _draw_regions(self, ax: Axes) -> list[Any]:
        """Each region in the color of its decision, with lines between them; what a legend shows of it."""
        from matplotlib.patches import Patch

        labels, classes = list(self.loss.decisions or ()), list(self.loss.classes or ())
        styles, handles = class_styles(classes), []
        for d, label in enumerate(labels):
            inside = (self.decisions == d).astype(np.float64)
            style = styles[classes.index(label)] if label in classes else ClassStyle("white", "-", "", "o")
            hatch = style.hatch if len(classes) > len(CLASS_COLORS) else None  # where two have the same color
            look: dict[str, Any] = {"facecolor": style.color, "edgecolor": "black", "alpha": 0.4, "hatch": hatch}
            handles.append(Patch(**look, label=shown_name(label)))
            if inside.any():
                filled = {"levels": [0.5, 1.5], "colors": [style.color], "alpha": 0.25, "hatches": [hatch]}
                ax.contourf(self.x, self.y, inside, **filled)
            if inside.any() and not inside.all():
                ax.contour(self.x, self.y, inside, levels=[0.5], colors="black", linewidths=1.0)
        return handles

    def _draw_ellipses(self, ax: Axes) -> None:
        styles = class_styles(self.loss.classes or ())
        turn = np.linspace(0.0, 2.0 * np.pi, 121)
        circle = np.stack([np.cos(turn), np.sin(turn)])
        for label, mean, covariance in self.ellipses:
            values, vectors = np.linalg.eigh(covariance)
            shape = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * circle)
            style = styles[label]
            for size in ELLIPSES[: 2 if len(self.ellipses) <= MAX_WITH_TWO_ELLIPSES else 1]:
                ax.plot(*(mean[:, None] + size * shape), color=style.color, linestyle=style.line, linewidth=1.4)
            ax.plot(*mean, color=style.color, marker=style.marker, markersize=5, linestyle="none")

    def to_frame(self) -> Any:
        """What is drawn, as a table.

        Returns
        -------
        DataFrame
            A line for each point of the map: prior times density of each class, and the decision.
        """
        x, y = (part.ravel() for part in np.meshgrid(self.x, self.y))
        decisions = list(self.loss.decisions or ())
        columns: dict[str, Any] = {"x": x, "y": y}
        columns |= {f"joint of {label}": self.joint[:, :, c].ravel() for c, label in enumerate(self.loss.classes or ())}
        return data_frame({**columns, "decision": [decisions[place] for place in self.decisions.ravel()]})


def _line(values: ColumnValues) -> Floats:
    assert values.numbers is not None, "checked before"
    if values.kind == "continuous":
        return values.numbers
    return values.numbers if values.numbers.size > 1 else values.numbers[0] + np.array([-0.5, 0.5])


def _ellipses(fitted: Fitted, names: tuple[str, str]) -> list[Ellipse]:
    """The spread of each class in two columns, from a block that has both or from each by itself; none where a family
    has no mean and variance."""
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


def _boundary(fitted: Fitted) -> str | None:
    """The kind of the boundaries, where the model is a linear or a quadratic form."""
    for quadratic in (False, True):
        try:
            form_of(fitted.model, quadratic=quadratic)
        except UsageError:
            continue
        return "quadratic" if quadratic else "linear"
    return None
