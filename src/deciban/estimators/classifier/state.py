"""What a classifier has learned, and the attributes that show it."""

from dataclasses import fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from deciban.errors import UsageError
from deciban.fitting import fit
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, Settings
from deciban.model.model import Model
from deciban.model.tuning import Tuning
from deciban.schema.schema import Schema
from deciban.sources.examples import Examples
from deciban.store.model_file import shards_of
from deciban.tables.labels import LabelArray

SETTINGS = tuple(field.name for field in fields(Settings))


class FittedState:
    """A classifier's fitted state: one value, `fitted_`, that is replaced as a whole."""

    fitted_: Fitted
    _training: tuple[Any, Any, Any] | None

    @property
    def classes_(self) -> LabelArray:
        """The classes, sorted, of the type that the labels came in."""
        return self._fitted().classes

    @property
    def schema_(self) -> Schema:
        """What each column is taken for, and why; print it. Tuning may have chosen other families than inferred."""
        return self._fitted().schema

    @property
    def tuning_(self) -> Tuning | None:
        """What was tuned: families, joint blocks and the weight of each block; None for plain Bayes. Print it."""
        return self._fitted().tuning

    @property
    def counts_(self) -> Counts:
        """All that was counted: a value that can be added, subtracted and scaled."""
        return self._fitted().counts

    @property
    def model_(self) -> Model:
        """The prior and the likelihoods that the counts support."""
        return self._fitted().model

    @property
    def shards_(self) -> tuple[str, ...]:
        """Names of the sets of rows that were learned, the same for the same rows: to see that none was added twice."""
        return shards_of(self._fitted())

    @property
    def target_(self) -> str | None:
        """The name of the column that held the labels; None where they were given apart."""
        return self._fitted().origin.target

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return self.schema_.width

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """The names of the columns; an AttributeError where they have none."""
        names = self.schema_.names
        if names is None:
            raise AttributeError("feature_names_in_: the columns have no names")
        return np.array(names, dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        """Without the training rows."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]  # of an object with attributes
        return {name: value for name, value in state.items() if name != "_training"}

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)

    def _settings(self) -> Settings:
        """The parameters as they are now."""
        return Settings(**{name: getattr(self, name) for name in SETTINGS})

    def _fitted(self) -> Fitted:
        """What was learned, with the parameters as they are now, which may have been set since."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")
        fitted = self.fitted_
        if any(getattr(fitted.settings, name) is not getattr(self, name) for name in SETTINGS):
            fitted = self.fitted_ = fitted.with_settings(self._settings())
        return fitted

    def _become(self, fitted: Fitted, training: tuple[Any, Any, Any] | None = None) -> Self:
        """Take over what was learned; `training` are the rows, if they are all that was learned."""
        self.fitted_ = fitted
        self._training = training
        return self

    def _training_rows(self) -> tuple[Any, Any, Any] | None:
        """The rows of the last fit, unless something else was learned since."""
        return vars(self).get("_training")

    def _examples(self, X: Any, y: Any, sample_weight: Any) -> Examples:
        """Rows with their labels; without X those of the last fit."""
        if X is None:
            kept = self._training_rows()
            if kept is None:
                raise UsageError("only the rows of a fit are remembered, and not in a file; give X and y")
            X, y, sample_weight = kept
        return fit.open_examples(self._fitted(), X, y, sample_weight)
