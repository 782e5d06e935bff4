"""Models that were trained apart, added up: each set of rows once."""

import copy
import os
from collections.abc import Sequence
from typing import Any

from deciban.classifier import BayesClassifier, load
from deciban.errors import DataError, SchemaError, UsageError

Named = BayesClassifier | str | os.PathLike[str]


def merge(models: Sequence[Named], *, force: bool = False, names: Sequence[str] | None = None) -> BayesClassifier:
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
    if not models or isinstance(models, str):
        raise UsageError("give the models that are to be merged in a list")
    called = list(names) if names is not None else [_called(model, place) for place, model in enumerate(models)]
    if len(called) != len(models):
        raise UsageError(f"names= has {len(called)} names for {len(models)} models; give one for each")
    loaded = [model if isinstance(model, BayesClassifier) else load(model) for model in models]
    total, owners = copy.copy(loaded[0]), dict.fromkeys(loaded[0].shards_, called[0])
    for name, model in zip(called[1:], loaded[1:], strict=True):
        twice = [shard for shard in model.shards_ if shard in owners]
        if twice and not force:
            raise DataError(f"{owners[twice[0]]} and {name} have learned the same rows; leave one out, or force it")
        owners.update(dict.fromkeys(model.shards_, name))
        try:
            total = total + model
        except (SchemaError, DataError, UsageError) as problem:
            raise type(problem)(f"{called[0]} and {name} do not fit together: {problem}") from problem
    return total


def _called(model: Any, place: int) -> str:
    return f"model {place + 1}" if isinstance(model, BayesClassifier) else str(model)
