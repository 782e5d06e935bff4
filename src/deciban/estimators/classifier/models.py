"""Model files, and models that were trained apart."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from deciban.errors import UsageError
from deciban.estimators.classifier.estimator import BayesClassifier
from deciban.fitting import update
from deciban.fitting.fit import Plan
from deciban.model.fitted import Fitted
from deciban.store import model_file


def load(path: str | os.PathLike[str]) -> BayesClassifier:
    """Load a classifier from a model file.

    It can do all that it could when it was saved: predict, learn more, forget, be added to others. Only the training
    rows are not in the file.

    Parameters
    ----------
    path : str or path-like
        A model file (``.dcb``), as written by `BayesClassifier.save` or by the command ``deciban fit``.

    Returns
    -------
    BayesClassifier
        The fitted classifier.

    Raises
    ------
    ModelFileError
        If the file is damaged, is no model, or was written by a newer version.
    OSError
        If the file cannot be read.

    See Also
    --------
    BayesClassifier.save : Write the file.
    merge : Add up models that were trained apart.

    Examples
    --------
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
    models: Sequence[BayesClassifier | bytes | str | os.PathLike[str]],
    *,
    force: bool = False,
    names: Sequence[str] | None = None,
) -> BayesClassifier:
    """Add up classifiers that were trained apart: the result has learned the rows of all of them.

    Nothing that is given is changed. What the first model was tuned to is kept, and is stale until `retune`.

    Parameters
    ----------
    models : sequence of BayesClassifier, bytes, str or path-like
        Fitted classifiers, the names of model files, or what `count_batches` returns.
    force : bool, default=False
        Merge models even if they have learned the same rows, which then count twice, predict different columns, or have
        no column in common.
    names : sequence of str, default=None
        What error messages call the models; by default the names of their files, or "model 1", "model 2", ...

    Returns
    -------
    BayesClassifier
        A new classifier with the parameters of the first.

    Raises
    ------
    DataError
        If two models have learned the same rows, unless `force`; if their labels are of different types.
    SchemaError
        If a column has different families in two models; if they predict different columns or have none in common,
        unless `force`.

    See Also
    --------
    BayesClassifier.shard : Count rows as a classifier counts them, to be added to it.

    Examples
    --------
    >>> from deciban import BayesClassifier, merge
    >>> from deciban.datasets import weather
    >>> spring, autumn = (BayesClassifier().fit(half, "play") for half in (weather().slice(0, 7), weather().slice(7)))
    >>> merge([spring, autumn]).counts_.rows
    14
    >>> merge([spring, autumn, spring])
    Traceback (most recent call last):
        ...
    deciban.errors.DataError: model 1 and model 3 have learned the same rows; leave one out, or pass force=True
    """
    if not models or isinstance(models, str):
        raise UsageError("give the models that are to be merged in a list")
    called = list(names) if names is not None else [_name_of(model, place) for place, model in enumerate(models)]
    if len(called) != len(models):
        raise UsageError(f"names= has {len(called)} names for {len(models)} models; give one for each")
    kind = type(models[0]) if isinstance(models[0], BayesClassifier) else BayesClassifier
    parts = [_fitted(model, name) for model, name in zip(models, called, strict=True)]
    return kind.from_fitted(update.merge(parts, called, force))


def count_batches(batches: Iterable[Any], plan: Plan) -> bytes:
    """Count rows by a plan, wherever they are: in another process, on another machine.

    Parameters
    ----------
    batches : iterable of table
        Rows with their labels, piece by piece: Arrow record batches, data frames, dicts of columns. One is held at a
        time.
    plan : Plan
        What is to be counted, as `BayesClassifier.plan` has settled it; it can be pickled.

    Returns
    -------
    bytes
        What was counted, a shard: small, whatever the number of rows. `BayesClassifier.fit_shards` takes shards, and so
        does `merge`; written to a file, it is a model file.

    See Also
    --------
    BayesClassifier.plan : Settle what is counted on a sample.
    BayesClassifier.fit_shards : Learn from shards.

    Examples
    --------
    >>> from deciban import BayesClassifier, count_batches
    >>> from deciban.datasets import weather
    >>> clf = BayesClassifier(tune=None)
    >>> plan = clf.plan(weather(), "play")
    >>> shards = [count_batches([part], plan) for part in (weather().slice(0, 7), weather().slice(7))]
    >>> clf.fit_shards(shards, plan).counts_.rows
    14
    """
    return plan.count(batches)


def _fitted(model: BayesClassifier | bytes | str | os.PathLike[str], name: str) -> Fitted:
    if isinstance(model, bytes):
        return model_file.from_content(model, name)
    return model._fitted() if isinstance(model, BayesClassifier) else model_file.load(model)


def _name_of(model: Any, place: int) -> str:
    return f"model {place + 1}" if isinstance(model, BayesClassifier | bytes) else str(model)
