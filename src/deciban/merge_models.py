"""Models that were trained apart, added up: each set of rows once."""

import copy
import os
from collections.abc import Sequence
from typing import Any, TypeVar

from deciban.classifier import Classifier
from deciban.errors import DataError, SchemaError, UsageError

C = TypeVar("C", bound=Classifier)


def merge_models(
    models: Sequence[C | str | os.PathLike[str]], kind: type[C], force: bool = False, names: Sequence[str] | None = None
) -> C:
    """The classifier of this kind that has learned the rows of all; see `deciban.merge`."""
    if not models or isinstance(models, str):
        raise UsageError("give the models that are to be merged in a list")
    called = list(names) if names is not None else [_called(model, place) for place, model in enumerate(models)]
    if len(called) != len(models):
        raise UsageError(f"names= has {len(called)} names for {len(models)} models; give one for each")
    loaded = [model if isinstance(model, Classifier) else kind.load(model) for model in models]
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
    return f"model {place + 1}" if isinstance(model, Classifier) else str(model)
