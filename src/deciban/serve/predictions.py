"""Predictions, explanations and decisions of one state of a model, which is replaced as a whole."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from deciban.decisions.decide import Decisions, choose_decisions
from deciban.decisions.loss import Loss
from deciban.errors import DecibanError, LossError, render_message
from deciban.explain.explanation import Explanation
from deciban.model.fitted import Fitted
from deciban.scoring.predict import break_ties_as_predict, loss_for, posterior_and_best, score_table
from deciban.serve.problems import Problem, problem_of, remedy_for_clients
from deciban.tables.table import Frame
from deciban.util.arrays import Floats, Integers
from deciban.util.text_tables import format_class, list_names, to_json


@dataclass(frozen=True)
class State:
    """A model as it is served. Readers take it once for a request, so that no answer is of two models.

    version: the same for the same model. sequence: the number of the last change that was learned on line, 0 for none.
    loaded: when the file was read, in seconds since 1970.
    """

    fitted: Fitted
    version: str
    sequence: int
    loaded: float


@dataclass(frozen=True)
class Predicted:
    """The posterior of each row, row by class, and the place of its most probable class."""

    posterior: Floats
    best: Integers

    @property
    def probability(self) -> Floats:
        """That of the most probable class of each row."""
        return np.asarray(self.posterior[np.arange(self.best.size), self.best])


@dataclass(frozen=True)
class Reader:
    """A state, and what is derived from it once for all requests that it answers."""

    state: State
    _kept: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    _under_way: dict[str, "asyncio.Future[bytes]"] = field(default_factory=dict, compare=False, repr=False)

    async def once(self, what: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """What `make` makes of the model, made once and kept as long as it is served; who asks meanwhile waits."""
        if what in self._kept:
            return self._kept[what]

        async def made() -> bytes:
            try:
                self._kept[what] = await make()
                return self._kept[what]
            finally:
                del self._under_way[what]

        if what not in self._under_way:
            self._under_way[what] = asyncio.ensure_future(made())
        return await asyncio.shield(self._under_way[what])  # others wait for it where this client has gone

    @cached_property
    def labels(self) -> list[Any]:
        """The classes as JSON has them."""
        found: list[Any] = to_json(self.state.fitted.model.classes.tolist())
        return found

    @cached_property
    def names(self) -> list[str]:
        """The classes as names of JSON."""
        return [format_class(label) for label in self.labels]

    def predict(self, table: Frame, first_row: int = 0) -> Predicted:
        """The posteriors of rows that are aligned with the model."""
        fitted = self.state.fitted
        try:
            return Predicted(
                *score_table(fitted.model, table, posterior_and_best, False, fitted.settings.threads, first_row)
            )
        except DecibanError as error:
            raise problem_of(error, first_row) from None

    def explain(self, table: Frame, by: str, first_row: int = 0) -> list[dict[str, Any]]:
        """Why each row is classified as it is, as JSON has it."""
        try:
            found = Explanation.from_model(self.state.fitted.model, table, by)
            return [to_json(found.to_dict(row)) for row in range(table.rows)]
        except DecibanError as error:
            raise problem_of(error, first_row) from None

    def loss(self, costs: Any, reject: float | None, default: Loss | None) -> Loss:
        """What decisions cost: as a request says, or else by default; a Problem where that does not fit the classes."""
        try:
            return loss_for(self.state.fitted, default if costs is None else _table_of_costs(costs), reject)
        except DecibanError as error:
            remedy = (
                f"send {{decision: {{class: cost}}}} with a finite cost for each class: {list_names(self.names, 6)}"
            )
            raise Problem(422, render_message(error.cause), remedy, self._place_in_costs(costs)) from None

    def _place_in_costs(self, costs: Any) -> str:
        """Where costs first name something that is no class."""
        for decision, row in (costs or {}).items():
            for truth in row:
                if truth not in self.names:
                    return f"costs.{decision[:80]}.{truth[:80]}"
        return "costs"

    def decide(self, predicted: Predicted, loss: Loss, column: Callable[[str], Floats]) -> Decisions:
        """The decisions of least risk; `column` finds the columns that costs name."""
        try:
            found = choose_decisions(predicted.posterior, loss, column)
        except LossError as error:
            raise Problem(422, render_message(error.cause), remedy_for_clients(error.remedy), "costs") from None
        return break_ties_as_predict(found, predicted.best)


def _table_of_costs(costs: Any) -> dict[str, Any]:
    """Costs as {decision: {class: cost}}, the one form in which JSON has them; a Problem for any other."""
    remedy = "send {decision: {class: cost}}"
    if type(costs) is not dict or not costs:
        raise Problem(422, "these are no costs", remedy, "costs")
    for decision, row in costs.items():
        if type(row) is not dict or not row:
            raise Problem(422, "these are no costs by class", remedy, f"costs.{decision[:80]}")
        for truth, cost in row.items():
            if type(cost) not in (int, float, str):
                raise Problem(422, "this is no cost", "send a number", f"costs.{decision[:80]}.{truth[:80]}")
    return costs
