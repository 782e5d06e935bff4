"""Predictions, explanations and decisions by one state of a model."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from deciban.decisions.decide import Decisions, choose_decisions
from deciban.decisions.loss import Loss
from deciban.decisions.sets import PredictionSets, choose_sets
from deciban.errors import DecibanError, LossError, render_message
from deciban.explain.explanation import Explanation
from deciban.model.fitted import Fitted
from deciban.scoring.predict import break_ties_as_predict, loss_for, posterior_and_best, score_table
from deciban.serve.problems import Problem, remedy_for_clients, to_problem
from deciban.tables.table import Frame
from deciban.util.arrays import Floats, Integers
from deciban.util.text_tables import format_class, list_names, to_json


@dataclass(frozen=True)
class State:
    """State of a served model. A request takes it once, so each response comes from one version.

    version: identifies the model. sequence: sequence number of the last online change, or 0. loaded: when
    the file was loaded, in seconds since 1970.
    """

    fitted: Fitted
    version: str
    sequence: int
    loaded: float


@dataclass(frozen=True)
class Predictions:
    """Posterior of each row, row by class, the index of its most probable class, and perhaps its prediction set."""

    posterior: Floats
    best: Integers
    sets: PredictionSets | None = None

    @property
    def probability(self) -> Floats:
        """Probability of the most probable class of each row."""
        return np.asarray(self.posterior[np.arange(self.best.size), self.best])


@dataclass(frozen=True)
class Predictor:
    """State of a model, with values that are derived from it once for all requests."""

    state: State
    _cache: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    _in_flight: dict[str, "asyncio.Future[bytes]"] = field(default_factory=dict, compare=False, repr=False)

    async def compute_once(self, key: str, compute: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the result of `compute`, which runs once per key and is cached while the model is served.

        Concurrent callers wait for the same run.
        """
        if key in self._cache:
            return self._cache[key]

        async def run() -> bytes:
            try:
                self._cache[key] = await compute()
                return self._cache[key]
            finally:
                del self._in_flight[key]

        if key not in self._in_flight:
            self._in_flight[key] = asyncio.ensure_future(run())
        return await asyncio.shield(self._in_flight[key])  # others may wait for it if this client disconnects

    @cached_property
    def labels(self) -> list[Any]:
        """Classes as JSON values."""
        found: list[Any] = to_json(self.state.fitted.model.classes.tolist())
        return found

    @cached_property
    def names(self) -> list[str]:
        """Classes as JSON property names."""
        return [format_class(label) for label in self.labels]

    def predict(self, table: Frame, first_row: int = 0, coverage: float | None = None) -> Predictions:
        """Return the posteriors of rows in the layout of the model, with prediction sets if `coverage` is given."""
        fitted = self.state.fitted
        try:
            threads = fitted.settings.threads
            finish = posterior_and_best(fitted.model)
            posterior, best = score_table(fitted.model, table, finish, False, threads, first_row)
            sets = None if coverage is None else choose_sets(fitted, posterior, coverage)
            return Predictions(posterior, best, sets)
        except DecibanError as error:
            raise to_problem(error, first_row) from None

    def explain(self, table: Frame, by: str, first_row: int = 0) -> list[dict[str, Any]]:
        """Return the explanation of each prediction as JSON values."""
        try:
            found = Explanation.from_model(self.state.fitted.model, table, by)
            return [to_json(found.to_dict(row)) for row in range(table.rows)]
        except DecibanError as error:
            raise to_problem(error, first_row) from None

    def loss(self, costs: Any, reject: float | None, default: Loss | None) -> Loss:
        """Return the costs of the request, or else the default; raise a Problem if they do not fit the classes."""
        try:
            return loss_for(self.state.fitted, default if costs is None else _check_costs(costs), reject)
        except DecibanError as error:
            remedy = (
                f"send {{decision: {{class: cost}}}} with a finite cost for each class: {list_names(self.names, 6)}"
            )
            raise Problem(422, render_message(error.cause), remedy, self._place_in_costs(costs)) from None

    def _place_in_costs(self, costs: Any) -> str:
        """Return the place of the first unknown class in the costs."""
        for decision, row in (costs or {}).items():
            for truth in row:
                if truth not in self.names:
                    return f"costs.{decision[:80]}.{truth[:80]}"
        return "costs"

    def decide(self, predicted: Predictions, loss: Loss, column: Callable[[str], Floats]) -> Decisions:
        """Return the least-cost decisions; `column` returns the columns that costs refer to."""
        try:
            found = choose_decisions(predicted.posterior, loss, column)
        except LossError as error:
            raise Problem(422, render_message(error.cause), remedy_for_clients(error.remedy), "costs") from None
        return break_ties_as_predict(self.state.fitted.model, found, predicted.best)


def _check_costs(costs: Any) -> dict[str, Any]:
    """Return the costs if they have the form {decision: {class: cost}}; raise a Problem otherwise."""
    remedy = "send {decision: {class: cost}}"
    if type(costs) is not dict or not costs:
        raise Problem(422, "invalid costs", remedy, "costs")
    for decision, row in costs.items():
        if type(row) is not dict or not row:
            raise Problem(422, "invalid costs by class", remedy, f"costs.{decision[:80]}")
        for truth, cost in row.items():
            if type(cost) not in (int, float, str):
                raise Problem(422, "invalid cost", "send a number", f"costs.{decision[:80]}.{truth[:80]}")
    return costs
