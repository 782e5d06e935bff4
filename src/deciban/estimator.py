"""The front door: the classifier as an estimator of scikit-learn."""

import os
from collections.abc import Sequence

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags

from deciban.classifier import Classifier
from deciban.merge_models import merge_models


class BayesClassifier(Classifier, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A Bayes classifier for tables of numbers, categories, flags and counts, with missing cells.

    columns: a family for every column, or a mapping from a column (or a tuple of columns that form one block) to
        its family; what it leaves out is inferred and shown in `schema_`.
    prior: "empirical", "smoothed", "uniform", Empirical(alpha), Uniform(), or probabilities: a mapping from class, or
        a sequence in the order of `classes_`.
    classes: all the labels there may be; an unknown label is then an error. None accepts new ones at any time.
    alpha, unseen: the smoothing of inferred discrete columns, and what values never seen are worth
        ("ignore", "smooth" or "error").
    threads: how many threads count and score; None uses every core. The result does not depend on it.
    tune: "auto" lets the rows say, each left out in turn, by which family a column speaks, which columns speak together
        and what the evidence of each block weighs; None is plain Bayes, as in the textbook.

    Learned: `classes_`, `schema_`, `counts_`, `model_`, `tuning_`, `n_features_in_`, `feature_names_in_` (of named
    columns).

    >>> from deciban import BayesClassifier
    >>> days = [{"outlook": "sunny", "wind": "weak"}, {"outlook": "rain", "wind": "strong"},
    ...         {"outlook": "rain", "wind": "weak"}, {"outlook": "overcast", "wind": "weak"}]
    >>> clf = BayesClassifier().fit(days, ["no", "no", "yes", "yes"])
    >>> clf.predict([{"outlook": "overcast", "wind": None}]).tolist()
    ['yes']
    >>> print(clf.schema_)
    column   family         why
    outlook  Categorical()  text, 3 distinct in 4 rows
    wind     Categorical()  text, 2 distinct in 4 rows
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def load(path: str | os.PathLike[str]) -> BayesClassifier:
    """The classifier that was saved to a model file, with all that it has learned: it can learn, forget and be added.

    >>> from deciban import BayesClassifier, load
    >>> from deciban.datasets import weather
    >>> from tempfile import mkdtemp
    >>> path = mkdtemp() + "/weather.dcb"
    >>> BayesClassifier().fit(weather(), "play").save(path)
    >>> load(path).predict([{"outlook": "overcast"}]).tolist()
    ['yes']
    """
    return BayesClassifier.load(path)


def merge(
    models: Sequence[BayesClassifier | str | os.PathLike[str]],
    *,
    force: bool = False,
    names: Sequence[str] | None = None,
) -> BayesClassifier:
    """The classifier that has learned the rows of all: of classifiers, or of model files.

    Rows that two of them have learned are refused, unless `force`. Nothing that is given is changed. What the first
    was tuned to is kept, and stale. `names` are for messages.

    >>> from deciban import BayesClassifier, merge
    >>> from deciban.datasets import weather
    >>> spring, autumn = (BayesClassifier().fit(half, "play") for half in (weather().slice(0, 7), weather().slice(7)))
    >>> merge([spring, autumn]).counts_.rows
    14
    >>> merge([spring, autumn, spring])
    Traceback (most recent call last):
        ...
    deciban.errors.DataError: model 1 and model 3 have learned the same rows; leave one out, or force it
    """
    return merge_models(models, BayesClassifier, force, names)
