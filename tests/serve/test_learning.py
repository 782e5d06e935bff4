"""Learning on line: what is answered, what is refused, and what the counts are then."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from deciban.errors import UsageError
from deciban.fitting import fit, update
from deciban.model.fitted import Settings
from deciban.serve.online import maintenance
from deciban.serve.online.change_set import ClassLabels
from deciban.serve.settings import LearnSettings
from deciban.statistics import Moments
from deciban.store import model_file
from tests.serve.learned import DAYS, PLAY, ROWS, Open, base, copied, counts_of, problem_of, same, saved, some


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path)


def test_learned_rows_are_in_the_state_that_is_answered_and_published(model: Path) -> None:
    with Open(model) as service:
        answer = service.learner.learn(ROWS[:3], PLAY[:3]).result(10)
        assert answer.results == ["learned"] * 3
        assert answer.state is service.states[-1]
        assert answer.state.sequence == 3
        assert "model" in vars(answer.state.fitted), "readers would wait for it"
        assert same(service.counts, counts_of(some(0, 1, 2)))
    assert same(model_file.load(model).counts, counts_of(some(0, 1, 2)))


def test_the_same_id_is_learned_once_and_relabeled_in_one_step(model: Path) -> None:
    with Open(model) as service:
        learner = service.learner
        assert learner.learn(ROWS[:2], ["yes", "no"], ["a", 7]).result(10).results == ["learned", "learned"]
        before = service.states[-1]
        answer = learner.learn([ROWS[5], {"no such column": 1}], ["yes", "no"], ["a", "7"]).result(10)
        assert answer.results == ["already learned"] * 2
        assert answer.state is before
        assert learner.learn([ROWS[5]], ["no"], ["a"]).result(10).results == ["relearned"]
        assert same(service.counts, counts_of([*some(5, label="no"), *some(1, label="no")]))
        several = learner.learn([ROWS[2]] * 4, ["yes", "yes", "no", "no"], ["b"] * 4).result(10)
        assert several.results == ["learned", "already learned", "relearned", "already learned"]
        assert same(service.counts, counts_of([*some(5, label="no"), *some(1, label="no"), *some(2, label="no")]))


def test_forgetting_by_id_and_by_row(model: Path) -> None:
    with Open(model) as service:
        learner = service.learner
        learner.learn(ROWS[:3], PLAY[:3], ["a", "b", None], [1.0, 2.5, 1.0]).result(10)
        assert learner.forget_ids(["b", "b", "c"]).result(10).results == ["forgotten", "not found", "not found"]
        assert learner.forget_rows([ROWS[2]], [PLAY[2]]).result(10).results == ["forgotten"]
        assert same(service.counts, counts_of(some(0)))
        problem = problem_of(learner.forget_rows([{"sky": "hail"}], ["no"]))
        assert (problem.status, "some counts would become negative" in problem.cause) == (422, True)
        assert same(service.counts, counts_of(some(0)))


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_an_outlier_is_forgotten_without_a_trace(model: Path, weight: float) -> None:
    """By its id, and as a row: the model file of then is that of before, to the byte."""
    bad = [{**ROWS[0], "degrees": 1.7e18}, {**ROWS[1], "degrees": -1e138}]
    with Open(model) as service:
        learner = service.learner
        learner.learn(bad, PLAY[:2], ["p", None], [weight, weight]).result(10)
        assert learner.forget_rows(bad[1:], PLAY[1:2], [weight]).result(10).results == ["forgotten"]
        assert learner.forget_ids(["p"]).result(10).results == ["forgotten"]
        expected = base().counts.statistics
        for found, one in zip(service.counts.statistics, expected, strict=True):
            if isinstance(one, Moments):
                assert pickle.dumps(found) == pickle.dumps(one)


def test_labels_that_come_later(model: Path) -> None:
    with Open(model) as service:
        learner = service.learner
        learner.add_pending(["p", "q"], [{**ROWS[0], "not of the model": 1}, ROWS[1]])
        assert learner.learn_later(["p"], ["no"]).result(10).results == ["learned"]
        assert learner.learn_later(["p", "p"], ["no", "yes"]).result(10).results == ["already learned", "relearned"]
        assert same(service.counts, counts_of(some(0, label="yes")))
        assert learner.status()["pending_rows"] == 1
        problem = problem_of(learner.learn_later(["q", "r"], ["no", "no"]))
        assert (problem.status, problem.place) == (422, "ids[1]")
        assert learner.status()["pending_rows"] == 1, "all or nothing"
        assert learner.forget_ids(["q", "q"]).result(10).results == ["forgotten", "not found"]
        assert problem_of(learner.add_pending(["x"], ["text"])).place == "rows[0]"


def test_kept_rows_outlive_the_service_and_the_oldest_go_first(model: Path) -> None:
    with Open(model, max_pending=3) as service:
        for k in range(5):
            service.learner.add_pending([k], [ROWS[k]]).result(10)
        assert service.learner.status()["pending_rows"] == 3
    with Open(model, max_pending=3) as service:
        assert problem_of(service.learner.learn_later(["1"], ["no"])).place == "ids[0]"
        assert service.learner.learn_later(["2", "4"], ["no", "no"]).result(10).results == ["learned"] * 2
        assert same(service.counts, counts_of(some(2, 4, label="no")))


def test_rows_wait_for_labels_for_a_time_of_service(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "CLEANUP_SECONDS", 0.02)
    with Open(model, pending_seconds=0.3) as service:
        service.learner.add_pending(["a"], [ROWS[0]]).result(10)
        assert service.learner.learn_later(["a"], ["no"]).result(10).results == ["learned"]
        service.learner.add_pending(["b"], [ROWS[0]]).result(10)
        end = time.monotonic() + 10
        while service.learner.status()["pending_rows"] and time.monotonic() < end:
            time.sleep(0.02)
        assert problem_of(service.learner.learn_later(["b"], ["no"])).place == "ids[0]"


@pytest.mark.parametrize(
    ("records", "labels", "ids", "weights", "place", "cause"),
    [
        ([{"skies": "sun"}], ["yes"], None, None, "rows[0].skies", "unknown column"),
        ([ROWS[0], {"degrees": "warm"}], ["yes", "no"], None, None, "rows[1].degrees", "found 'warm'"),
        ([{"degrees": "warm"}], ["no"], None, None, "rows[0].degrees", "found 'warm'"),
        ([{"sky": {"a": 1}}], ["no"], None, None, "rows[0].sky", "found an object"),
        ([{"sky": 3}], ["no"], None, None, "rows[*].sky", "found numbers, expected text"),
        ([{"degrees": float("inf")}], ["no"], None, None, "rows[0]", "infinity"),
        ([{"sky": "\ud800"}], ["no"], None, None, "rows[0]", "cannot be represented as JSON"),
        ([["sun"]], ["no"], None, None, "rows[0]", "expected an object"),
        ("sun", ["no"], None, None, "rows", "expected a list"),
        ([ROWS[0]], ["maybe"], None, None, "labels[0]", "unknown class"),
        ([ROWS[0]], [None], None, None, "labels[0]", "missing"),
        ([ROWS[0]], [1], None, None, "labels[0]", "expected text as the label, found a number"),
        ([ROWS[0]], ["no", "no"], None, None, "labels", "2 labels for 1 rows"),
        ([ROWS[0]], ["no"], ["a", "b"], None, "ids", "2 ids for 1 rows"),
        ([ROWS[0]], ["no"], [1.5], None, "ids[0]", "expected an id, found a number"),
        ([ROWS[0]], ["no"], [""], None, "ids[0]", "0 characters"),
        ([ROWS[0]], ["no"], ["\ud800"], None, "ids[0]", "not valid Unicode"),
        ([ROWS[0]], ["no"], None, [-1], "weights[0]", "found -1"),
        ([ROWS[0]], ["no"], None, [float("nan")], "weights[0]", "found nan"),
        ([ROWS[0]], ["no"], None, [10**400], "weights[0]", "found 1000"),
        ([ROWS[0]], ["no"], None, [True], "weights[0]", "found a boolean"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_changes_nothing(
    model: Path, records: Any, labels: Any, ids: Any, weights: Any, place: str, cause: str
) -> None:
    with Open(model) as service:
        before = service.states[-1]
        problem = problem_of(service.learner.learn(records, labels, ids, weights))
        assert (problem.status, problem.place) == (422, place)
        assert cause in problem.cause
        assert service.states[-1] is before
        assert service.learner.status()["sequence"] == 0


def test_the_place_is_that_in_the_request_also_behind_rows_that_are_known(model: Path) -> None:
    with Open(model) as service:
        service.learner.learn([ROWS[0]], ["no"], ["a"]).result(10)
        answer = service.learner.learn([ROWS[0], {"degrees": "warm"}], ["no", "no"], ["a", "b"])
        assert problem_of(answer).place == "rows[1].degrees"


def test_a_bad_request_fails_alone_among_others_that_are_written_together(model: Path) -> None:
    """Requests that come while the thread is busy are taken together."""
    with Open(model) as service:
        learner, go = service.learner, Event()
        learner._queue.call(go.wait)
        good = [learner.learn([ROWS[k]], [PLAY[k]], [f"g{k}"]) for k in range(4)]
        bad = [
            learner.learn([{"degrees": "warm"}], ["no"]),
            learner.learn([ROWS[1]], ["maybe"], ["g9"]),
            learner.forget_rows([{"sky": "hail"}], ["yes"]),
            learner.learn_later(["nobody"], ["no"]),
        ]
        more = [learner.learn([ROWS[0]], ["no"], ["g0"]), learner.forget_ids(["g1", "g9"])]
        go.set()
        assert [answer.result(10).results for answer in good] == [["learned"]] * 4
        assert [problem_of(answer).status for answer in bad] == [422] * 4
        assert [answer.result(10).results for answer in more] == [["relearned"], ["forgotten", "not found"]]
        assert len(service.states) == 2, "they were not taken together"
        assert same(service.counts, counts_of([*some(0, label="no"), *some(2, 3)]))
        assert learner.status()["sequence"] == 4 + 2 + 1


def test_a_number_may_come_as_text_and_is_replayed_beside_numbers(model: Path, tmp_path: Path) -> None:
    with Open(model) as service:
        for k in range(3):
            service.learner.learn([{"degrees": 12}], ["no"], [f"n{k}"]).result(10)
            service.learner.learn([{"degrees": "13.5"}], ["no"], [f"t{k}"]).result(10)
        service.learner.learn([{"degrees": 1}, {"degrees": "2"}], ["no", "no"]).result(10)
        before = service.counts
        answer = service.learner.learn([{"degrees": 1}, {"degrees": "2"}, {"degrees": "warm"}], ["no"] * 3)
        assert problem_of(answer).place == "rows[2].degrees"
        killed = copied(model, tmp_path / "copy")
    with Open(killed) as service:
        assert same(service.counts, before)
        service.learner.forget_ids(["n0", "t0", "n1", "t1"]).result(10)
        assert service.counts.rows == 8 + 4


def test_new_classes_come_only_where_they_may_and_old_ones_may_come_back(model: Path) -> None:
    with Open(model, new_classes=True) as service:
        service.learner.learn([ROWS[0]], ["maybe"], ["m"]).result(10)
        assert service.counts.classes.tolist() == ["maybe", "no", "yes"]
        service.learner.forget_ids(["m"]).result(10)
        assert service.counts.classes.tolist() == ["no", "yes"]
    with Open(model) as service:
        assert service.learner.learn([ROWS[0]], ["maybe"]).result(10).results == ["learned"], "it was a class before"
        assert problem_of(service.learner.learn([ROWS[0]], ["never"])).place == "labels[0]"


def test_declared_classes_stay_as_they_are(tmp_path: Path) -> None:
    settings = Settings(classes=["no", "yes", "later"], tune=None, threads=1)
    model = saved(tmp_path, fit.fit(settings, {"sky": DAYS["sky"]}, PLAY))
    with Open(model, new_classes=True) as service:
        assert service.learner.learn([{"sky": "sun"}], ["later"]).result(10).results == ["learned"]
        assert problem_of(service.learner.learn([{"sky": "sun"}], ["never"])).status == 422


@pytest.mark.parametrize(
    ("labels", "good", "bad"),
    [
        (np.array([0, 1, 1, 0], dtype=np.int8), [0, 1.0, 300], ["0", True, 0.5, 2**70, None]),
        (np.array([0.0, 1.0, 1.0, 0.0]), [0, 1.0], ["0", True, 0.5]),
        (np.array([True, False, True, False]), [True, False], [1, "true"]),
        (np.array(["a", "b", "a", "b"]), ["a", "longer"], [1, True]),
        (np.array(["2024-01-01", "2024-01-02"] * 2, dtype="M8[D]"), ["2024-01-02"], ["2024-01-03", 5]),
    ],
)
def test_labels_have_the_type_of_the_classes(tmp_path: Path, labels: Any, good: list[Any], bad: list[Any]) -> None:
    model = saved(tmp_path, fit.fit(Settings(tune=None, threads=1), {"x": [1.0, 2.0, 3.0, 4.0]}, labels))
    with Open(model, new_classes=True) as service:
        for label in bad:
            assert problem_of(service.learner.learn([{"x": 1.0}], [label])).place == "labels[0]"
        service.learner.learn([{"x": 1.0}] * len(good), good, list(range(len(good)))).result(10)
        assert service.counts.class_weight.sum() == 4.0 + len(good)
        before = service.counts
    with Open(model) as service:
        assert same(service.counts, before)
        service.learner.forget_ids(list(range(len(good)))).result(10)
        assert service.counts.class_weight.sum() == 4.0


def test_columns_without_names(tmp_path: Path) -> None:
    model = saved(tmp_path, fit.fit(Settings(tune=None, threads=1), np.array([[1.0, 2.0], [3.0, 5.0]]), [0, 1]))
    with Open(model) as service:
        service.learner.learn([[1.5, None], [2.0, 3.0]], [0, 1], ["a", "b"]).result(10)
        service.learner.add_pending(["c"], [[4.0, 4.0]])
        service.learner.learn_later(["c"], [1]).result(10)
        assert service.counts.class_weight.tolist() == [2.0, 3.0]
        assert problem_of(service.learner.learn([[1.0]], [0])).place == "rows[0]"
        assert problem_of(service.learner.learn([{"x0": 1.0}], [0])).place == "rows[0]"


def test_rows_of_no_weight_are_none_and_their_ids_are_known(model: Path) -> None:
    with Open(model) as service:
        assert service.learner.learn([ROWS[0]], ["no"], ["a"], [0]).result(10).results == ["learned"]
        assert same(service.counts, counts_of([]))
        assert service.learner.learn([ROWS[0]], ["yes"], ["a"]).result(10).results == ["relearned"]
        assert same(service.counts, counts_of(some(0, label="yes")))


def test_the_last_rows_stay(tmp_path: Path) -> None:
    model = saved(tmp_path, fit.fit(Settings(tune=None, threads=1), {"sky": ["sun", "fog"]}, ["a", "b"]))
    with Open(model) as service:
        problem = problem_of(service.learner.forget_rows([{"sky": "sun"}, {"sky": "fog"}], ["a", "b"]))
        assert (problem.status, "no rows would be left" in problem.cause) == (422, True)
        assert service.counts.classes.tolist() == ["a", "b"]


def test_decay_goes_by_rows_whatever_the_requests(model: Path, tmp_path: Path) -> None:
    """What was learned so far weighs less after each so many rows, and what is left of a row can be forgotten."""
    with Open(model, decay=0.7, decay_every=3) as service:
        learner = service.learner
        learner.learn(ROWS[:4], PLAY[:4], ["a", "b", "c", "d"]).result(10)  # a, b, c and then a decay
        for k in (4, 5):
            learner.learn([ROWS[k]], [PLAY[k]], [f"r{k}"]).result(10)
        left = [*some(0, 1, 2, weight=0.49), *some(3, 4, 5, weight=0.7)]
        decayed = update.replace_counts(base(), base().counts * 0.49)
        assert same(service.counts, counts_of(left, decayed), 1e-12)
        learner.forget_ids(["a", "d"]).result(10)
        assert same(service.counts, counts_of([*left[1:3], *left[4:]], decayed), 1e-12)
        before = service.counts
    with Open(model, decay=0.5, decay_every=1) as service:
        assert same(service.counts, before)
        assert service.learner.learn([ROWS[1]], ["no"], ["b"]).result(10).results == ["relearned"]
        expected = counts_of([(ROWS[1], "no", 1.0), *left[2:3], *left[4:]], decayed) * 1.0
        assert service.counts.class_weight.sum() == pytest.approx(0.5 * expected.class_weight.sum(), rel=1e-12)


def test_what_is_left_of_a_row_is_forgotten_however_little_it_is(tmp_path: Path) -> None:
    """Sums of weights are rounded; neither is a row refused for that, nor a level left behind."""
    rows = {"sky": [f"sky {k % 3}" for k in range(30)], "degrees": [float(k) for k in range(30)]}
    model = saved(tmp_path, fit.fit(Settings(tune=None, threads=1), rows, ["a", "b"] * 15))
    new = [{"sky": f"new {k % 5}", "degrees": 1e3 + k / 7} for k in range(1_000)]
    with Open(model, decay=0.83, decay_every=10, new_classes=True) as service:
        for start in range(0, 1_000, 50):
            places = range(start, start + 50)
            labels = ["c" if k % 3 else "a" for k in places]
            service.learner.learn(new[start : start + 50], labels, list(places)).result(10)
        order = np.random.default_rng(5).permutation(1_000).tolist()
        for start in range(0, 1_000, 40):
            answer = service.learner.forget_ids(order[start : start + 40]).result(10)
            assert set(answer.results) == {"forgotten"}
        assert service.counts.classes.tolist() == ["a", "b"]
        levels = next(s for s in service.counts.statistics if hasattr(s, "levels"))
        assert levels.levels[0].to_pylist() == ["sky 0", "sky 1", "sky 2"]
        assert service.counts.class_weight.sum() == pytest.approx(30 * 0.83**100, rel=1e-3)


def test_many_threads_learn_at_once_and_every_answer_is_in_its_state(model: Path) -> None:
    with Open(model, snapshot_every=20) as service, ThreadPoolExecutor(8) as pool:

        def work(who: int) -> None:
            for k in range(20):
                answer = service.learner.learn([{"sky": f"{who}-{k}"}], ["no"], [f"{who}-{k}"]).result(30)
                levels = answer.state.fitted.counts.statistics[0].levels[0].to_pylist()
                assert f"{who}-{k}" in levels

        list(pool.map(work, range(8)))
        assert service.counts.rows == 8 + 160
        sequences = [state.sequence for state in service.states]
        assert sequences == sorted(set(sequences))


def test_too_many_rows_waiting_are_refused_and_what_waits_is_done_at_the_end(model: Path) -> None:
    service = Open(model, max_queued_rows=10)
    go = Event()
    service.learner._queue.call(go.wait)
    first = service.learner.learn(ROWS, PLAY)
    problem = problem_of(service.learner.learn(ROWS[:3], PLAY[:3]))
    assert (problem.status, "8 rows are waiting" in problem.cause) == (503, True)
    cancelled = service.learner.learn(ROWS[:1], PLAY[:1])
    assert cancelled.cancel()
    go.set()
    service.learner.close()
    assert first.result(0).results == ["learned"] * 8
    assert same(model_file.load(model).counts, counts_of(some(*range(8))))
    assert problem_of(service.learner.learn(ROWS[:1], PLAY[:1])).status == 503
    service.learner.close()


def test_versions_tell_models_apart_and_outlive_the_service(model: Path) -> None:
    with Open(model) as service:
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
        versions = [state.version for state in service.states]
        assert len(set(versions)) == 3
    with Open(model) as service:
        assert service.states[0].version == versions[-1]


def test_tuning_is_learned_anew_from_rows_that_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 120)
    numbers = rng.normal(labels, 1.0)
    table = {"x": numbers, "copy": numbers + rng.normal(0, 0.1, 120)}
    model = saved(tmp_path, fit.fit(Settings(tune="weights", threads=1), table, labels))
    rows = [{"x": float(x), "copy": float(y)} for x, y in zip(table["x"], table["copy"], strict=True)]
    with Open(model, retune_every=100) as service:
        old = service.states[0].fitted.tuning
        service.learner.learn(rows[:100], labels[:100].tolist(), list(range(100))).result(10)
        end = time.monotonic() + 30
        while service.learner.status()["retunes"] == 0 and time.monotonic() < end:
            time.sleep(0.01)
        assert service.learner.status()["problems"] == []
        new = service.states[-1].fitted.tuning
        assert old is not None
        assert new is not None
        assert (new.rows, new.stale) == (100, False)
        assert not np.array_equal(old.weights, new.weights)
        end = time.monotonic() + 30
        while service.learner.status()["snapshots"] == 0 and time.monotonic() < end:
            time.sleep(0.01)
        assert model_file.load(model).tuning.weights.tolist() == new.weights.tolist()
        version = service.states[-1].version
        assert version != service.states[-2].version
    with Open(model) as service:
        assert service.states[0].version == version


def test_too_few_rows_to_tune_on_are_told(model: Path) -> None:
    with Open(model, retune_every=2) as service:
        service.learner.learn(ROWS[:3], PLAY[:3]).result(10)
        end = time.monotonic() + 30
        while not service.learner.status()["problems"] and time.monotonic() < end:
            time.sleep(0.01)
        assert service.learner.status()["problems"] == [
            "cannot retune the model: no retained rows for tuning; learn rows with ids"
        ]
        assert service.learner.learn(ROWS[:1], PLAY[:1]).result(10).results == ["learned"]


@pytest.mark.parametrize(
    "settings",
    [{"decay": 1.0}, {"decay": 0.0}, {"decay_every": 0}, {"snapshot_seconds": 0.0}, {"max_journal_bytes": 1000}],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        LearnSettings(**settings).check()


def test_the_first_cells_of_an_id_are_those_that_wait_and_rows_of_no_column_do_not(model: Path) -> None:
    with Open(model) as service:
        learner = service.learner
        learner.add_pending(["a"], [ROWS[0]]).result(10)
        learner.add_pending(["a", "b", "c"], [ROWS[1], {"skies": "sun"}, {}]).result(10)
        assert learner.status()["pending_rows"] == 1
        assert learner.learn_later(["a"], ["no"]).result(10).results == ["learned"]
        assert problem_of(learner.learn_later(["b"], ["no"])).status == 422
        learner.add_pending(["a"], [ROWS[1]]).result(10)
        assert learner.status()["pending_rows"] == 0, "it is learned already"
        assert same(service.counts, counts_of(some(0, label="no")))


def test_rows_that_wait_to_be_kept_are_bounded_in_bytes_and_lost_ones_are_counted(model: Path) -> None:
    with Open(model, max_queued_bytes=1_000) as service:
        go = Event()
        service.learner._queue.call(go.wait)
        first = service.learner.add_pending(["a"], [{"sky": "x" * 900}])
        problem = problem_of(service.learner.add_pending(["b", "c"], [{"sky": "x" * 100}] * 2))
        go.set()
        first.result(10)
        assert (problem.status, "bytes of rows are waiting" in problem.cause) == (503, True)
        assert (service.learner.status()["pending_rows"], service.learner.status()["dropped_pending_rows"]) == (1, 2)


def test_a_fault_of_one_request_does_not_fail_the_others(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Open(model) as service:
        learner, go, read = service.learner, Event(), ClassLabels.read

        def reading(self: ClassLabels, label: Any, place: str) -> Any:
            return 1 // 0 if label == "fault" else read(self, label, place)

        monkeypatch.setattr(ClassLabels, "read", reading)
        learner._queue.call(go.wait)
        answers = [learner.learn([ROWS[0]], [label]) for label in ("no", "fault", "yes")]
        go.set()
        assert [answers[k].result(10).results for k in (0, 2)] == [["learned"]] * 2
        assert isinstance(answers[1].exception(10), ZeroDivisionError)
        assert same(service.counts, counts_of([*some(0, label="no"), *some(0, label="yes")]))


def test_new_classes_are_bounded(model: Path) -> None:
    with Open(model, new_classes=True, max_classes=3) as service:
        assert problem_of(service.learner.learn(ROWS[:2], ["b", "c"])).place == "labels[1]"
        service.learner.learn(ROWS[:1], ["b"]).result(10)
        problem = problem_of(service.learner.learn(ROWS[:1], ["c"]))
        assert (problem.status, "maximum of 3 classes" in problem.cause) == (422, True)
        assert service.learner.learn(ROWS[:2], ["b", "no"]).result(10).results == ["learned"] * 2
