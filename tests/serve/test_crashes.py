"""A process that learns on line is killed at random points: what it acknowledged is there, and nothing else."""

from pathlib import Path

from tests.serve.crashing import POINTS, crashes

RANDOM_ROUNDS, ROUNDS_AT_POINTS = 34, 4


def test_what_was_acknowledged_outlives_kill_9(tmp_path: Path) -> None:
    with crashes(tmp_path, 7) as killed:
        for _ in range(RANDOM_ROUNDS):
            killed.round()
        for _ in range(ROUNDS_AT_POINTS):
            for point in POINTS:
                killed.round(point)
        assert killed.rounds == 50
        assert killed.acknowledged > 200
        assert killed.unanswered > 10, "no process was killed while it learned"
