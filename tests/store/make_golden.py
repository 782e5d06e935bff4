"""Makes the golden file of a format: a model that every later version of deciban has to read, and what it says.

Run once for each version of the format (`python -m tests.store.make_golden`), when `FORMAT` in
`deciban.store.model_file` was raised and the names below with it; never again for an old one: a golden file that is
made anew proves nothing.
"""

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deciban import BayesClassifier, Binned

HERE = Path(__file__).parent
GOLDEN = HERE / "golden-2.dcb"
EXPECTED = HERE / "golden-2.json"


def rows() -> tuple[pa.Table, list[str]]:
    """Ninety visitors of three kinds: numbers, text, flags, dates, and cells that are missing."""
    rng = np.random.default_rng(1763)
    kind = np.arange(90) % 3
    columns: dict[str, list[Any]] = {
        "age": (30.0 + 8.0 * kind + rng.normal(0.0, 6.0, 90)).round(1).tolist(),
        "spent": rng.lognormal(2.0 + 0.4 * kind, 0.6).round(2).tolist(),
        "visits": rng.poisson(1.0 + 2.0 * kind).tolist(),
        "score": rng.normal(kind, 1.0).round(3).tolist(),
        "member": (rng.random(90) < 0.2 + 0.3 * kind).tolist(),
        "town": [["Köln", "Ulm", 'the "Hof"', "🏙"][k] for k in (kind + rng.integers(0, 2, 90)) % 4],
        "since": [date(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 400, 90) + 200 * kind],
    }
    holes = {name: [None if rng.random() < 0.1 else cell for cell in cells] for name, cells in columns.items()}
    return pa.table({**holes, "empty": pa.nulls(90, pa.string())}), [["bronze", "gold", "silver"][k] for k in kind]


def main() -> None:
    for path in (GOLDEN, EXPECTED):
        if path.exists():
            raise SystemExit(f"{path} is there already, and stays as it is")
    table, labels = rows()
    clf = BayesClassifier({"score": Binned()}, prior="smoothed").fit(table, labels)
    clf.save(GOLDEN)
    asked = [
        {"age": 31.5, "spent": 9.75, "visits": 2, "score": 0.25, "member": False, "town": "Ulm"},
        {"age": 55.0, "member": True, "town": "🏙", "visits": 7},
        {"spent": 0.5, "town": "never seen", "score": -9.0},
        {"age": 44.0, "spent": 80.0, "visits": 4, "score": 1.5, "member": None, "town": 'the "Hof"'},
        {"town": None, "age": None},
    ]
    expected = {
        "deciban": "what the model in golden-2.dcb says of these rows",
        "classes": clf.classes_.tolist(),
        "shards": clf.shards_,
        "rows": asked,
        "posteriors": clf.predict_proba(asked).tolist(),
    }
    EXPECTED.write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
