"""The service and its models.

Models are loaded from a file or a folder, and replaced as a whole when a file changes. The service also has the
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
from deciban.serve.bodies.records import records_to_table
from deciban.serve.metrics import Metrics
from deciban.serve.online.journal import JournalSpaceError
from deciban.serve.online.learner import Learner
from deciban.serve.predictions import Predictor, State
from deciban.serve.problems import Problem, strip_folders
from deciban.serve.settings import LearnSettings, ServeSettings
from deciban.store.model_file import load, read
from deciban.util.arrays import CORES
from deciban.util.text_tables import list_names, shorten

# Suffix of model files.
MODEL_SUFFIX = ".dcb"

# Length of a version: the first hex digits of the SHA-256 of the file without metadata.
VERSION_DIGITS = 16

# Maximum number of characters of a note in the log.
MAX_NOTE_SHOWN = 60

# Seconds to wait on shutdown for a file that is being read: an unavailable disk may never respond.
MAX_READ_WAIT = 5.0

# Values that change when a file does: inode, size and modification time.
Stamp = tuple[int, int, int]

log = logging.getLogger("deciban.serve")


class ServedModel:
    """Served model and its current state. Requests take `predictor` once, so each uses one version.

    problem: why the current file is not the served model; empty if it is. learner: online learner of the model.
    """

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.learner: Learner | None = None
        self._problem = ""
        self._predictor: Predictor | None = None
        self._stamp: Stamp | None = None

    @property
    def problem(self) -> str:
        """Problem of the current file; logged when it occurs and when it is resolved."""
        return self._problem

    @problem.setter
    def problem(self, problem: str) -> None:
        if problem and problem != self._problem:
            log.warning("model %s: %s", self.name, problem)
        elif self._problem and not problem:
            log.info("model %s: the problem with the file is resolved", self.name)
        self._problem = problem

    @property
    def predictor(self) -> Predictor | None:
        """Current predictor; None until a model has been loaded."""
        return self._predictor

    @property
    def state(self) -> State | None:
        return None if self._predictor is None else self._predictor.state

    def publish(self, state: State) -> None:
        """Serve this state from now on."""
        self._predictor = Predictor(state)

    def load(self) -> None:
        """Load the file and serve it; raise an error, and change nothing, if that fails."""
        stamp = file_stamp(self.path)
        self.publish(load_state(self.path))
        self._stamp, self.problem = stamp, ""

    def learn(self, settings: LearnSettings) -> None:
        """Start online learning; raise an error if that fails.

        If the disk has no room for the journal, the model is served from its file until there is.
        """
        try:
            self.learner = Learner.open(self.path, settings, self.publish)
        except JournalSpaceError:
            if self.predictor is None:
                self.load()
            raise
        if self.state is not None:
            warm_up(self.state)
        self.problem = ""

    def close(self) -> None:
        """Stop learning and save what was learned."""
        if self.learner is not None:
            self.learner.close()

    def refresh(self) -> bool:
        """Reload the file if it has changed; return True if anything changed. Errors are kept in `problem`."""
        try:
            stamp = file_stamp(self.path)
        except OSError as error:
            return self._set_problem(None, describe_error(error, self.path))
        if stamp == self._stamp:
            return False
        try:
            state = load_state(self.path)
            before = self.state
            if before is not None:
                _check_compatible(before.fitted, state.fitted, os.path.basename(self.path))
        except Exception as error:
            _log_unexpected(error, self.name)
            return self._set_problem(stamp, describe_error(error, self.path))
        self.publish(state)
        self._stamp, self.problem = stamp, ""
        if before is not None and before.version != state.version:
            new, old = describe_version(state), describe_version(before)
            log.info("model %s: now serving version %s instead of %s", self.name, new, old)
        return True

    def _set_problem(self, stamp: Stamp | None, problem: str) -> bool:
        changed = problem != self.problem
        self._stamp, self.problem = stamp, problem
        return changed


class Models:
    """Served models by name: a single one, or those of a folder, which come and go with their files.

    problem: what is wrong with the folder; its models continue to be served.
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
        """Return the model of this name, or None; without a name, the single model."""
        return self._models.get(self._only if name is None else name)

    @property
    def _only(self) -> str:
        return model_name(self.settings.path)

    @property
    def ready(self) -> bool:
        """True if at least one model can make predictions."""
        return any(model.predictor is not None for model in self)

    def open(self, *, allow_failure: bool = False) -> None:
        """Load all models; raise an error if the single one cannot be loaded, unless `allow_failure`."""
        if self.is_folder:
            self.refresh()
            return
        model = ServedModel(self._only, self.settings.path)
        if allow_failure:
            model.refresh()
        elif self.settings.learning is not None:
            try:
                model.learn(self.settings.learning)
            except JournalSpaceError as error:
                model.problem = describe_error(error, model.path)
        else:
            model.load()
        self._models[model.name] = model

    def refresh(self) -> None:
        """Check all files once."""
        if self.is_folder:
            paths = self._list_files()
            if paths is None:
                return
            for name in [name for name in self._models if name not in paths]:
                self._models.pop(name).close()
            for name, path in paths.items():
                if name not in self._models:
                    self._models[name] = ServedModel(name, path)
        for model in self:
            if self._ended.is_set():
                return
            if self.settings.learning is None:
                model.refresh()
            elif model.learner is None:
                self._try_to_learn(model, self.settings.learning)

    def _list_files(self) -> dict[str, str] | None:
        """Return the model files of the folder, or None if it is not available; set `problem`."""
        problem, paths = "", None
        try:
            status = os.stat(self.settings.path)
            paths = model_files(self.settings.path)
            identity = status.st_dev, status.st_ino
            if not paths and self._models and identity != self._folder:
                problem = "the folder was replaced by one without models; the previous models are still served"
            else:
                self._folder = identity
        except OSError as error:
            problem = f"cannot read the model folder: {error.strerror or 'unknown error'}"
        if problem and problem != self.problem:
            log.warning(problem)
        elif self.problem and not problem:
            log.info("the model folder is available again")
        self.problem = problem
        return None if problem else paths

    def _try_to_learn(self, model: ServedModel, settings: LearnSettings) -> None:
        """Start online learning for a model of a folder. Errors are kept in its `problem`, and tried again."""
        try:
            model.learn(settings)
        except Exception as error:
            if model.problem != (problem := describe_error(error, model.path)):
                _log_unexpected(error, model.name)
            model.problem = problem

    def watch(self) -> None:
        """Start a thread that checks the files regularly, until `close`."""
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
            except Exception:  # the next check may succeed
                log.exception("checking the model files failed")

    def close(self) -> None:
        """Stop the thread and the learners, and save what was learned."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(MAX_READ_WAIT)
        for model in self:
            model.close()


def load_state(path: str) -> State:
    """Return the state of a model file, estimated and warmed up; raise an error if it cannot be used."""
    content = read(path, os.path.basename(path))
    state = State(content.fitted, content.version[:VERSION_DIGITS], 0, time.time())
    warm_up(state)
    return state


def describe_version(state: State) -> str:
    """Return the version of a model, with its note if it has one."""
    note = shorten(state.fitted.about.note, MAX_NOTE_SHOWN)
    return f"{state.version} ({note!r})" if note else state.version


def _check_compatible(before: Fitted, after: Fitted, name: str) -> None:
    """Raise a ModelFileError if a new file has another target, or lacks a class of the old one."""
    targets = before.origin.target, after.origin.target
    missing = [label for label in before.classes.tolist() if label not in set(after.classes.tolist())]
    if None not in targets and targets[0] != targets[1]:
        cause = f"the new model predicts {targets[1]!r}, not {targets[0]!r}"
    elif missing:
        cause = f"the new model lacks the {'class' if len(missing) == 1 else 'classes'} {list_names(missing, 6)}"
    else:
        return
    remedy = "the old model is still served; restore its file, or restart the service to serve the new one"
    raise ModelFileError(cause, place=Place(name), remedy=remedy)


def warm_up(state: State) -> None:
    """Score a few rows, so that no request waits for compilation or derived values."""
    model = state.fitted.model
    blank: Any = {} if model.schema.names is not None else [None] * model.schema.width
    for rows in (1, 2):
        score_table(model, records_to_table(model.schema, [blank] * rows), posteriors)


def file_stamp(path: str) -> Stamp:
    """Return values that change when a file does."""
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def model_name(path: str) -> str:
    """Return the name of a model: its file name without the suffix."""
    return os.path.basename(path).removesuffix(MODEL_SUFFIX)


def model_files(folder: str) -> dict[str, str]:
    """Return the model files in a folder by name, except hidden ones; raise an OSError if it cannot be read."""
    names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(MODEL_SUFFIX) and entry.is_file())
    return {model_name(name): os.path.join(folder, name) for name in names if not name.startswith(".")}


def describe_error(error: BaseException, path: str) -> str:
    """Return an error as text for clients, without the folder of the file."""
    if isinstance(error, OSError):
        return f"cannot read the model file: {error.strerror or 'unknown error'}"
    if isinstance(error, MemoryError):
        return "not enough memory to load the model file"
    if not isinstance(error, DecibanError):
        return "cannot use the model: internal error; see the log"
    text = strip_folders(str(error), path)
    return text if isinstance(error, ModelFileError) else f"cannot use the model: {text}"


def _log_unexpected(error: Exception, name: str) -> None:
    """Log an unexpected error."""
    if not isinstance(error, DecibanError | OSError | MemoryError):
        log.error("cannot use the model %s", name, exc_info=error)


Result = TypeVar("Result")


class Service:
    """Running service. draining: True during shutdown, when it is not ready for more requests."""

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.models = Models(settings)
        self.metrics = Metrics()
        self.loss = None if settings.costs is None else Loss.from_csv(settings.costs)
        self.draining = False
        self._threads = ThreadPoolExecutor(max(2, CORES), thread_name_prefix="deciban-work")

    def open(self, *, allow_failure: bool = False) -> None:
        """Load the models and watch their files; raise an error if a required model cannot be loaded.

        allow_failure: do not raise an error; reject requests until the file can be loaded.
        """
        if self._has_costs and not self.models.is_folder and not allow_failure:
            self._check_costs()
        self.models.open(allow_failure=allow_failure)
        self.models.watch()

    @property
    def _has_costs(self) -> bool:
        return self.loss is not None or self.settings.reject is not None

    def _check_costs(self) -> None:
        """Raise a DataError if the default costs do not fit the model. For a folder, each request checks."""
        fitted = load(self.settings.path)  # before a journal is created
        try:
            loss_for(fitted, self.loss, self.settings.reject)
        except LossError as error:
            where = "--reject" if self.settings.costs is None else self.settings.costs
            raise DataError(error.cause, place=Place(where), remedy=error.remedy, parameter=error.parameter) from None

    def loss_of(self, predictor: Predictor) -> Loss | None:
        """Return the default costs for the classes of a model, or None."""
        if not self._has_costs:
            return None
        try:
            return loss_for(predictor.state.fitted, self.loss, self.settings.reject)
        except LossError:
            return None

    def close(self) -> None:
        """Stop all threads and save what was learned."""
        self._threads.shutdown(wait=True)
        self.metrics.close()
        self.models.close()

    def model(self, name: str | None) -> tuple[ServedModel, Predictor]:
        """Return the model of this name and its predictor; raise a Problem if it is not available."""
        served = self.models.get(name)
        if served is None:
            raise Problem(404, "model not found", "see /models for the available models", "path", code="unknown-model")
        if served.predictor is None and served.problem:
            raise Problem(503, "the model is not available", "ask the operator; see /health/ready")
        if served.predictor is None:
            raise Problem(503, "the model is not loaded yet", "try again later; see /health/ready")
        return served, served.predictor

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Run `work` in a thread of the pool and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def ready(self) -> dict[str, Any]:
        """Return readiness, and non-fatal problems."""
        problems = [{"problem": self.models.problem}] if self.models.problem else []
        problems += [{"model": model.name, "problem": model.problem} for model in self.models if model.problem]
        for model in self.models:
            if model.learner is not None:
                learner_problems = model.learner.status().get("problems", ())
                problems += [{"model": model.name, "problem": str(problem)} for problem in learner_problems]
        if not len(self.models):
            problems += [{"problem": "no models in the folder"}]
        return {"ready": self.models.ready and not self.draining, "problems": problems}
