"""Whatever is learned, relabeled, forgotten and decayed, saved and restarted: the counts are those of what remains."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from deciban.fitting import update
from tests import example_count
from tests.serve.learned import ROWS, Open, base, copied, counts_of, same, saved

FACTOR = 0.7

names = st.sampled_from([None, "a", "b", "c", "d", "e"])
places = st.integers(0, len(ROWS) - 1)
labels = st.sampled_from(["yes", "no", "maybe"])
rows = st.lists(st.tuples(names, places, labels, st.integers(1, 3)), min_size=1, max_size=4)


class Learning(RuleBasedStateMachine):
    """A learner, and beside it the rows that it should know, with the number of decays before each."""

    @initialize(every=st.sampled_from([None, 2, 5]), third=st.booleans())
    def start(self, every: int | None, third: bool) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.every, self.unit = every, 1 / 3 if third else 1.0
        self.known: dict[str, tuple[int, str, float, int]] = {}
        self.nameless: list[tuple[int, str, float, int]] = []
        self.decays = self.learned = self.copies = 0
        self.model = saved(self.folder)
        self.open()

    def open(self) -> None:
        decay: dict[str, Any] = {} if self.every is None else {"decay": FACTOR, "decay_every": self.every}
        self.service = Open(self.model, new_classes=True, **decay)

    @rule(given=rows)
    def learn(self, given: list[tuple[str | None, int, str, int]]) -> None:
        expected = [self.note(*row) for row in given]
        answer = self.service.learner.learn(
            [ROWS[place] for _, place, _, _ in given],
            [label for *_, label, _ in given],
            [name for name, *_ in given],
            [self.unit * weight for *_, weight in given],
        )
        assert answer.result(20).results == expected

    def note(self, name: str | None, place: int, label: str, weight: int) -> str:
        result = "learned"
        if name in self.known:
            if self.known[name][1] == label:
                return "already learned"
            result = "relearned"
        row = (place, label, self.unit * weight, self.decays)
        if name is None:
            self.nameless.append(row)
        else:
            self.known[name] = row
        self.learned += 1
        if self.learned == self.every:
            self.decays, self.learned = self.decays + 1, 0
        return result

    @rule(given=st.lists(st.sampled_from("abcde"), min_size=1, max_size=3))
    def forget(self, given: list[str]) -> None:
        expected = ["not found" if self.known.pop(name, None) is None else "forgotten" for name in given]
        assert self.service.learner.forget_ids(given).result(20).results == expected

    @precondition(lambda self: self.nameless and self.every is None)
    @rule(choice=st.integers(0, 100))
    def forget_a_row(self, choice: int) -> None:
        place, label, weight, _ = self.nameless.pop(choice % len(self.nameless))
        self.service.learner.forget_rows([ROWS[place]], [label], [weight]).result(20)

    @rule()
    def save(self) -> None:
        learner = self.service.learner
        learner._queue.call(learner._maintenance._save_here).result(20)

    @rule()
    def restart(self) -> None:
        version = self.service.states[-1].version
        self.service.learner.close()
        self.open()
        assert self.service.states[0].version == version

    @rule()
    def kill(self) -> None:
        self.copies += 1
        killed = copied(self.model, self.folder / str(self.copies))
        self.service.learner.close()
        self.model = killed
        self.open()

    @invariant()
    def the_counts_are_those_of_what_remains(self) -> None:
        start = base()
        if self.decays:
            start = update.replace_counts(start, start.counts * FACTOR**self.decays)
        rows = [
            (ROWS[place], label, weight * FACTOR ** (self.decays - before))
            for place, label, weight, before in [*self.known.values(), *self.nameless]
        ]
        whole = self.unit == 1.0 and not self.decays
        assert same(self.service.counts, counts_of(rows, start), 0.0 if whole else 1e-9)

    def teardown(self) -> None:
        if hasattr(self, "service"):
            self.service.learner.close()
            shutil.rmtree(self.folder)


TestLearning = Learning.TestCase
TestLearning.settings = settings(
    max_examples=example_count(20), stateful_step_count=25, suppress_health_check=list(HealthCheck)
)
