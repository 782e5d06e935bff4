"""The command drift: columns of a table, or of another model, that have changed."""

import json
import random
from pathlib import Path

from tests.support.command import Deciban


def write(name: str, color: str, labels: bool = True) -> str:
    """A table with a number and a color; `color` is the rarer one."""
    draw, lines = random.Random(3), ["size,color" + ",kind" * labels]
    for _ in range(200):
        big = draw.random() < 0.5
        cells = [f"{draw.gauss(5 + big, 1):.3f}", color if draw.random() < 0.2 else "red"]
        lines.append(",".join([*cells, *(["plum" if big else "cherry"] if labels else [])]))
    Path(name).write_text("\n".join(lines) + "\n")
    return name


def test_tables_and_models_are_compared_with_a_model(deciban: Deciban) -> None:
    for name, color in (("old", "blue"), ("new", "green")):
        deciban("fit", write(f"{name}.csv", color), "-t", "kind", "-o", f"{name}.dcb", "--tune", "none")
    title = "200 rows, compared with 200 rows learned: drift in 1 of 2 columns (level 1%)"
    for other in ("new.csv", "new.dcb"):
        answer = deciban("drift", "old.dcb", other)
        assert answer.out.splitlines()[0] == title
        assert "* color" in answer.out
        assert "class shares, from labels" in answer.out
    same = json.loads(deciban("drift", "old.dcb", "old.csv", "--json").out)
    assert [column["drifted"] for column in same["columns"]] == [False, False]
    assert same["accuracy"] == same["adjusted_accuracy"] > 0.5

    Path("costs.csv").write_text(",cherry,plum\ncherry,0,1\nplum,5,0\n")
    unlabeled = write("unlabeled.csv", "blue", labels=False)
    found = json.loads(deciban("drift", "old.dcb", unlabeled, "--costs", "costs.csv", "--level", "5%", "--json").out)
    assert not found["labeled"]
    assert found["level"] == 0.05
    assert found["classes_p_value"] is None
    assert 0.0 < found["adjusted_cost"] <= found["cost"]
    assert "expected costs need rows" in deciban("drift", "old.dcb", "new.dcb", "--costs", "costs.csv").err
