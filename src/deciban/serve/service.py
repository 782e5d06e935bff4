"""The service: its models, read from a file or a folder and replaced as a whole when a file changes, and the
settings, metrics and threads that all requests share.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from deciban.decisions.loss import Loss
from deciban.errors import DataError, DecibanError, LossError, ModelFileError, Place
from deciban.model.fitted import Fitted
from deciban.model.model import posteriors
from deciban.scoring.predict import loss_for, score_table
from deciban.serve.bodies.records import table_of_records
from deciban.serve.metrics import Metrics
from deciban.serve.online.journal import JournalSpaceError
from deciban.serve.online.learner import Learner
from deciban.serve.predictions import Reader, State
from deciban.serve.problems import Problem, without_folders
from deciban.serve.settings import LearnSettings, ServeSettings
from deciban.store.model_file import load, read
from deciban.util.arrays import CORES

# How the name of a model file ends.
MODEL_ENDING = ".dcb"

# Digits of a version: the start of the SHA-256 of the file.
VERSION_DIGITS = 16

# Seconds that the end of the service waits for a file that is being read: a disk that is gone may never answer.
READING_PATIENCE = 5.0

# What tells that a file has changed: its number on the disk, its size and its time.
Stamp = tuple[int, int, int]

log = logging.getLogger("deciban.serve")


class ServedModel:
    """A model and what it answers by now. Readers take `reader` once for a request.

    problem: why the file that is there now is not what is served; empty if it is. learner: who changes the model.
    """

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.learner: Learner | None = None
        self._problem = ""
        self._reader: Reader | None = None
        self._stamp: Stamp | None = None

    @property
    def problem(self) -> str:
        """What is wrong with the file; it is logged when it begins and when it ends."""
        return self._problem

    @problem.setter
    def problem(self, problem: str) -> None:
        if problem and problem != self._problem:
            log.warning("model %s: %s", self.name, problem)
        elif self._problem and not problem:
            log.info("model %s: the file is read again, nothing is wrong with it any more", self.name)
        self._problem = problem

    @property
    def reader(self) -> Reader | None:
        """What answers requests; None before the first model is there."""
        return self._reader

    @property
    def state(self) -> State | None:
        return None if self._reader is None else self._reader.state

    def publish(self, state: State) -> None:
        """Answer by this from now on."""
        self._reader = Reader(state)

    def load(self) -> None:
        """Read the file and answer by it; an error where it cannot be, and nothing has changed."""
        stamp = stamp_of(self.path)
        self.publish(loaded_state(self.path))
        self._stamp, self.problem = stamp, ""

    def learn(self, settings: LearnSettings) -> None:
        """Learn online from now on; an error where that cannot be.

        Where the disk has no room for the journal, the model answers by its file until there is.
        """
        try:
            self.learner = Learner.open(self.path, settings, self.publish)
        except JournalSpaceError:
            if self.reader is None:
                self.load()
            raise
        if self.state is not None:
            warm_up(self.state)
        self.problem = ""

    def close(self) -> None:
        """Learn no more; what was learned is written."""
        if self.learner is not None:
            self.learner.close()

    def refresh(self) -> bool:
        """Read the file again if it has changed; whether something did. What goes wrong is reported in `problem`."""
        try:
            stamp = stamp_of(self.path)
        except OSError as error:
            return self._complain(None, described(error, self.path))
        if stamp == self._stamp:
            return False
        try:
            state = loaded_state(self.path)
            before = self.state
            if before is not None:
                _refuse_another_question(before.fitted, state.fitted, os.path.basename(self.path))
        except Exception as error:
            _log_fault(error, self.name)
            return self._complain(stamp, described(error, self.path))
        self.publish(state)
        self._stamp, self.problem = stamp, ""
        if before is not None and before.version != state.version:
            log.info("model %s: now answers by version %s, was %s", self.name, state.version, before.version)
        return True

    def _complain(self, stamp: Stamp | None, problem: str) -> bool:
        changed = problem != self.problem
        self._stamp, self.problem = stamp, problem
        return changed


class Models:
    """All models that are served, by name: one, or those of a folder, in which they come and go.

    problem: what is wrong with the folder; the models that were in it go on.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.is_folder = os.path.isdir(settings.path) if settings.folder is None else settings.folder
        self.problem = ""
        self._folder: tuple[int, int] | None = None
        self._models: dict[str, ServedModel] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(list(self._models.values()))

    def __len__(self) -> int:
        return len(self._models)

    def get(self, name: str | None = None) -> ServedModel | None:
        """The model of this name; None is the only one."""
        return self._models.get(self._only if name is None else name)

    @property
    def _only(self) -> str:
        return name_of(self.settings.path)

    @property
    def ready(self) -> bool:
        """Whether a model can answer."""
        return any(model.reader is not None for model in self)

    def open(self, *, patient: bool = False) -> None:
        """Read all models; an error where the only one cannot be read, unless there is time until it can."""
        if self.is_folder:
            self.refresh()
            return
        model = ServedModel(self._only, self.settings.path)
        if patient:
            model.refresh()
        elif self.settings.learning is not None:
            try:
                model.learn(self.settings.learning)
            except JournalSpaceError as error:
                model.problem = described(error, model.path)
        else:
            model.load()
        self._models[model.name] = model

    def refresh(self) -> None:
        """Look at all files once."""
        if self.is_folder:
            there = self._files_there()
            if there is None:
                return
            for name in [name for name in self._models if name not in there]:
                self._models.pop(name).close()
            for name, path in there.items():
                if name not in self._models:
                    self._models[name] = ServedModel(name, path)
        for model in self:
            if self._ended.is_set():
                return
            if self.settings.learning is None:
                model.refresh()
            elif model.learner is None:
                self._try_to_learn(model, self.settings.learning)

    def _files_there(self) -> dict[str, str] | None:
        """The model files of the folder; None where it is gone, which is told in `problem`."""
        problem, found = "", None
        try:
            status = os.stat(self.settings.path)
            found = model_files(self.settings.path)
            place = status.st_dev, status.st_ino
            if not found and self._models and place != self._folder:
                problem = "another folder is there now, without models; the models that were there go on"
            else:
                self._folder = place
        except OSError as error:
            problem = f"the folder of the models cannot be read: {error.strerror or 'unknown error'}"
        if problem and problem != self.problem:
            log.warning(problem)
        elif self.problem and not problem:
            log.info("the folder of the models is there again")
        self.problem = problem
        return None if problem else found

    def _try_to_learn(self, model: ServedModel, settings: LearnSettings) -> None:
        """Let a model of a folder learn on line; what goes wrong is told in its `problem`, and tried again."""
        try:
            model.learn(settings)
        except Exception as error:
            if model.problem != (problem := described(error, model.path)):
                _log_fault(error, model.name)
            model.problem = problem

    def watch(self) -> None:
        """Look at the files again and again, in a thread of its own, until `close`."""
        learns = self.settings.learning is not None
        owned = learns and not self.is_folder and all(model.learner is not None for model in self)
        if owned or self.settings.reload_interval <= 0.0:
            return
        self._thread = threading.Thread(target=self._watch, name="deciban-models", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(self.settings.reload_interval):
            try:
                self.refresh()
            except Exception:  # of our own making: the next look may go well
                log.exception("looking at the model files failed")

    def close(self) -> None:
        """End the thread and the learners; what was learned is written."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(READING_PATIENCE)
        for model in self:
            model.close()


def loaded_state(path: str) -> State:
    """The state of a model file, whose model is estimated and has scored a row; an error where that cannot be."""
    found = read(path, os.path.basename(path))
    state = State(found.fitted, found.sha256[:VERSION_DIGITS], 0, time.time())
    warm_up(state)
    return state


def _refuse_another_question(before: Fitted, after: Fitted, name: str) -> None:
    """A ModelFileError where a new file answers another question: another target, or none of the classes."""
    targets = before.origin.target, after.origin.target
    remedy = "the model before goes on; put its file back, or restart the service to serve the new one"
    if None not in targets and targets[0] != targets[1]:
        raise ModelFileError(
            f"the new model predicts {targets[1]!r}, not {targets[0]!r}", place=Place(name), remedy=remedy
        )
    if not set(before.classes.tolist()) & set(after.classes.tolist()):
        cause = "the new model has none of the classes of the one before"
        raise ModelFileError(cause, place=Place(name), remedy=remedy)


def warm_up(state: State) -> None:
    """Score a row without cells and two with numbers, so that nobody waits for what is compiled or derived."""
    model = state.fitted.model
    blank: Any = {} if model.schema.names is not None else [None] * model.schema.width
    for rows in (1, 2):
        score_table(model, table_of_records(model.schema, [blank] * rows), posteriors)


def stamp_of(path: str) -> Stamp:
    """What tells that a file has changed."""
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def name_of(path: str) -> str:
    """The name of a model: that of its file without the ending."""
    return os.path.basename(path).removesuffix(MODEL_ENDING)


def model_files(folder: str) -> dict[str, str]:
    """The model files in a folder by their names; hidden ones are left out. An OSError where it cannot be read."""
    found = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(MODEL_ENDING) and entry.is_file())
    return {name_of(name): os.path.join(folder, name) for name in found if not name.startswith(".")}


def described(error: BaseException, path: str) -> str:
    """An error for those who ask whether all is well: without the folder of the file."""
    if isinstance(error, OSError):
        return f"the model file cannot be read: {error.strerror or 'unknown error'}"
    if isinstance(error, MemoryError):
        return "the model file is too large for the memory; the one before goes on"
    if not isinstance(error, DecibanError):
        return "the model cannot be used: the service has a fault, of which its log has more"
    text = without_folders(str(error), path)
    return text if isinstance(error, ModelFileError) else f"the model cannot be used: {text}"


def _log_fault(error: Exception, name: str) -> None:
    """Log an error that nobody has foreseen."""
    if not isinstance(error, DecibanError | OSError | MemoryError):
        log.error("the model %s cannot be used", name, exc_info=error)


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
            raise DataError(error.cause, place=Place(where), remedy=error.remedy, parameter=error.parameter) from None

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
