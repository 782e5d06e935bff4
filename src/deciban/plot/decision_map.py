"""`DecisionMapDisplay`: where each decision is taken over two columns, with the spread of each class."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from deciban.decisions.bayes_error import BayesError, log_joint
from deciban.decisions.loss import Loss
from deciban.decisions.regions import least_risk
from deciban.errors import UsageError
from deciban.explain.column_values import ColumnValues, values_of
from deciban.explain.decision_curves import joint_of
from deciban.explain.estimates import Estimates
from deciban.model.fitted import Fitted
from deciban.model.linear_forms import form_of
from deciban.plot.display import Display, frame_of
from deciban.plot.figures import Axes, axes_for
from deciban.plot.style import ClassStyle, class_styles, legend, quiet, shown_name
from deciban.util.arrays import Floats, Integers
from deciban.web.palette import CLASS_COLOURS

# Points along each side of the map, how many standard deviations the ellipses enclose, and the most classes that have
# two of them.
SIDE_POINTS = 241
ELLIPSES = (1.0, 2.0)
MOST_WITH_TWO_ELLIPSES = 6


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
        self.decisions = least_risk(joint.reshape(-1, joint.shape[2]), loss).reshape(joint.shape[:2])

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
                raise UsageError(f"the column {one.name!r} holds no numbers; choose two that do")
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
            raise UsageError("these distributions cannot be drawn; give normal ones of two dimensions, or of one")
        ellipses = [Ellipse(c, np.asarray(d.mean), np.asarray(d.cov)) for c, d in enumerate(result.distributions)]
        reach = [(one.mean + side * 3.5 * np.sqrt(np.diag(one.covariance))) for one in ellipses for side in (-1.0, 1.0)]
        x, y = (
            np.linspace(*ends, SIDE_POINTS) for ends in zip(np.min(reach, axis=0), np.max(reach, axis=0), strict=True)
        )
        points = np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1)
        joint = np.exp(log_joint(result.distributions, result.prior, points)).reshape(y.size, x.size, -1)
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
        self._drawn(ax)
        return self

    def _draw_regions(self, ax: Axes) -> list[Any]:
        """Each region in the colour of its decision, with lines between them; what a legend shows of it."""
        from matplotlib.patches import Patch

        labels, classes = list(self.loss.decisions or ()), list(self.loss.classes or ())
        styles, handles = class_styles(classes), []
        for d, label in enumerate(labels):
            inside = (self.decisions == d).astype(np.float64)
            style = styles[classes.index(label)] if label in classes else ClassStyle("white", "-", "", "o")
            hatch = style.hatch if len(classes) > len(CLASS_COLOURS) else None  # where two have the same colour
            look: dict[str, Any] = {"facecolor": style.colour, "edgecolor": "black", "alpha": 0.4, "hatch": hatch}
            handles.append(Patch(**look, label=shown_name(label)))
            if inside.any():
                filled = {"levels": [0.5, 1.5], "colors": [style.colour], "alpha": 0.25, "hatches": [hatch]}
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
            for size in ELLIPSES[: 2 if len(self.ellipses) <= MOST_WITH_TWO_ELLIPSES else 1]:
                ax.plot(*(mean[:, None] + size * shape), color=style.colour, linestyle=style.line, linewidth=1.4)
            ax.plot(*mean, color=style.colour, marker=style.marker, markersize=5, linestyle="none")

    def frame(self) -> Any:
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
        return frame_of({**columns, "decision": [decisions[place] for place in self.decisions.ravel()]})


def _line(values: ColumnValues) -> Floats:
    assert values.numbers is not None, "checked before"
    if values.kind == "continuous":
        return values.numbers
    return values.numbers if values.numbers.size > 1 else values.numbers[0] + np.array([-0.5, 0.5])


def _ellipses(fitted: Fitted, names: tuple[str, str]) -> list[Ellipse]:
    """The spread of each class in two columns, from a block that has both or from each by itself; none where a family
    has no mean and variance."""
    blocks = list(Estimates.of(fitted.model).values()) + list(Estimates.of(fitted.generative).values())
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
