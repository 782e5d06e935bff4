"""What all requests share: the models, the settings, the metrics, and threads for what takes longer."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from deciban.decisions.loss import Loss
from deciban.errors import DataError, LossError
from deciban.scoring.scoring import loss_for
from deciban.serve.metrics.metrics import Metrics
from deciban.serve.model_source import Models, ServedModel
from deciban.serve.problems import Problem
from deciban.serve.reader import Reader
from deciban.serve.settings import ServeSettings
from deciban.store.model_file import load
from deciban.util.arrays import CORES

Result = TypeVar("Result")


class Service:
    """A running service. draining: it ends, and is not ready for more."""

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.models = Models(settings)
        self.metrics = Metrics()
        self.loss = None if settings.costs is None else Loss.from_csv(settings.costs)
        self.draining = False
        self._threads = ThreadPoolExecutor(max(2, CORES), thread_name_prefix="deciban-work")

    def open(self, *, patient: bool = False) -> None:
        """Read the models, and watch their files; an error where one that is needed cannot be read.

        patient: it is no error, requests are refused until the file can be read.
        """
        if self._has_costs and not self.models.is_folder and not patient:
            self._check_costs()
        self.models.open(patient=patient)
        self.models.watch()

    @property
    def _has_costs(self) -> bool:
        return self.loss is not None or self.settings.reject is not None

    def _check_costs(self) -> None:
        """A DataError where the costs of the command do not fit the model; of a folder each request tells."""
        fitted = load(self.settings.path)  # before a journal is made beside it
        try:
            loss_for(fitted, self.loss, self.settings.reject)
        except LossError as error:
            where = "--reject" if self.settings.costs is None else self.settings.costs
            raise DataError(f"{where}: {error}") from None

    def loss_of(self, reader: Reader) -> Loss | None:
        """What decisions cost by default, for the classes of a model; None where nothing is said of these."""
        if not self._has_costs:
            return None
        try:
            return loss_for(reader.state.fitted, self.loss, self.settings.reject)
        except LossError:
            return None

    def close(self) -> None:
        """End all threads; what was learned is written."""
        self._threads.shutdown(wait=True)
        self.metrics.close()
        self.models.close()

    def model(self, name: str | None) -> tuple[ServedModel, Reader]:
        """The model of this name and what it answers by now; a Problem where there is none."""
        served = self.models.get(name)
        if served is None:
            raise Problem(404, "there is no such model", "see /models for those that there are", "path")
        if served.reader is None and served.problem:
            raise Problem(503, "the model file cannot be used", "ask whoever runs it; /health/ready says what is wrong")
        if served.reader is None:
            raise Problem(503, "the model cannot be read yet", "try again later; /health/ready says what is wrong")
        return served, served.reader

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """What `work` gives, worked out beside the event loop, which answers others meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def ready(self) -> dict[str, Any]:
        """Whether requests can be answered, and what is wrong though they can."""
        problems = [{"problem": self.models.problem}] if self.models.problem else []
        problems += [{"model": model.name, "problem": model.problem} for model in self.models if model.problem]
        for model in self.models:
            if model.learner is not None:
                told = model.learner.status().get("problems", ())
                problems += [{"model": model.name, "problem": str(problem)} for problem in told]
        if not len(self.models):
            problems += [{"problem": "there is no model in the folder"}]
        return {"ready": self.models.ready and not self.draining, "problems": problems}
