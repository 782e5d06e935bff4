"""Rows per second of exported models, and the size of their texts and files.

    python bench/export.py [--rows 10000] [--only typical adult] [--tables 300] [--write]

A typical table (30 numbers, two classes) and a mixed one (adult, if bench/requirements.txt is installed) are fitted by
default. Each target scores the training rows on one thread; the best of several runs counts. PostgreSQL is started on
loopback, and node is run as a process. scikit-learn's gradient boosting scores the same rows in the same run. --tables
limits the number of correction tables; --write writes its part of bench/SPEED.md.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import numpy as np  # noqa: E402 - threads are set before
import pandas as pd  # noqa: E402 - the same
import pyarrow as pa  # noqa: E402 - the same

from deciban import BayesClassifier  # noqa: E402 - threads are set before
from deciban.export.javascript import to_javascript  # noqa: E402 - the same
from deciban.export.onnx.model import to_onnx  # noqa: E402 - the same
from deciban.export.python import to_python  # noqa: E402 - the same
from deciban.export.sql.statement import to_sql  # noqa: E402 - the same
from deciban.model.fitted import Fitted  # noqa: E402 - the same
from deciban.scoring.predict import predict_posteriors  # noqa: E402 - the same
from deciban.store.model_file import content  # noqa: E402 - the same
from reports import write_part  # noqa: E402 - its folder is not always on the path

# Aims of rows per second, by target.
AIMS = {"Python": 2_000, "JavaScript": 20_000, "ONNX": 100_000, "DuckDB": 50_000, "PostgreSQL": 5_000}

# Aims of megabytes.
SIZES = {"DuckDB": 1.0, "PostgreSQL": 1.0, "model file": 0.5}

# Rows scored by targets that score one at a time.
FEW = 1_000

# Rows scored in DuckDB, which takes longer to plan the statement than to score 10,000 rows.
LARGE = 100_000

# Runs of each target; the best counts.
RUNS = 3

# The table that is scored in a database.
TABLE = "scored"

# The column that numbers its rows.
NUMBER = "number of the row"

SCRIPT = """
import {{ readFileSync }} from "node:fs";
const {{ predictProba }} = await import({module});
const rows = JSON.parse(readFileSync({rows}, "utf8"));
let best = Infinity;
let first = null;
for (let run = 0; run < 8; run++) {{
  const start = process.cpuUsage();
  const found = rows.map((row) => predictProba(row));
  const {{ user }} = process.cpuUsage(start);
  best = Math.min(best, user);
  first = found;
}}
console.log(JSON.stringify({{ seconds: best / 1e6, found: first }}));
"""


def typical(rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return thirty numbers, half of which tell something about two classes."""
    from sklearn.datasets import make_classification

    X, y = make_classification(rows, 30, n_informative=15, n_redundant=5, flip_y=0.05, random_state=0)
    return pd.DataFrame(X, columns=[f"c{k}" for k in range(30)]), y


def adult(rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the first rows of a census: numbers and categories, some missing."""
    import tables

    frame, labels = tables.load("adult")
    return frame.iloc[:rows].reset_index(drop=True), np.asarray(labels)[:rows]


def fastest(score: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> tuple[float, Any]:
    """Return the least time of several runs, and the last result."""
    least, found = np.inf, None
    for _ in range(RUNS):
        start = clock()
        found = score()
        least = min(least, clock() - start)
    return least, found


def limit_tables(fitted: Fitted, most: int) -> Fitted:
    """Return the same model with at most so many correction tables, taken evenly."""
    tuning = fitted.tuning
    if tuning is None or tuning.corrections is None or len(tuning.corrections.tests) <= most:
        return fitted
    size = len(tuning.corrections.tests)
    kept = np.isin(np.arange(size), np.linspace(0, size - 1, most).astype(int))
    return replace(fitted, tuning=replace(tuning, corrections=tuning.corrections._some(kept)))


def as_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dicts of plain values; None for missing cells."""
    return pa.Table.from_pandas(frame, preserve_index=False).to_pylist()


def measure_python(fitted: Fitted, frame: pd.DataFrame, _: Any) -> tuple[float, int, np.ndarray]:
    source, module, rows = to_python(fitted), {"__name__": "model"}, as_rows(frame[:FEW])
    exec(compile(source, "model.py", "exec"), module)
    score: Any = module["predict_proba"]
    seconds, found = fastest(lambda: [score(row) for row in rows])
    return len(rows) / seconds, len(source), np.array(found)


def measure_javascript(fitted: Fitted, frame: pd.DataFrame, folder: Path) -> tuple[float, int, np.ndarray]:
    source = to_javascript(fitted)
    (folder / "model.mjs").write_text(source)
    rows = [{k: None if v != v else v for k, v in row.items()} for row in as_rows(frame[: 4 * FEW])]
    (folder / "rows.json").write_text(json.dumps(rows))
    script = SCRIPT.format(
        module=json.dumps((folder / "model.mjs").as_uri()), rows=json.dumps(str(folder / "rows.json"))
    )
    (folder / "run.mjs").write_text(script)
    done = subprocess.run(["node", str(folder / "run.mjs")], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    return len(answer["found"]) / answer["seconds"], len(source), np.array(answer["found"])


def measure_onnx(fitted: Fitted, frame: pd.DataFrame, _: Any) -> tuple[float, int, np.ndarray]:
    import onnxruntime

    data, options = to_onnx(fitted).SerializeToString(), onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    given = {}
    for one in session.get_inputs():
        column = frame[one.name]
        if "string" in one.type:
            given[one.name] = column.astype(object).where(column.notna(), "").to_numpy()[:, None]
        else:
            given[one.name] = column.to_numpy(dtype=np.float64, na_value=np.nan)[:, None]
    seconds, found = fastest(lambda: session.run(["probabilities"], given)[0])
    return len(frame) / seconds, len(data), found


def measure_duckdb(fitted: Fitted, frame: pd.DataFrame, _: Any) -> tuple[float, int, np.ndarray]:
    import duckdb

    query = to_sql(fitted, TABLE, "duckdb", keep=[NUMBER])
    connection = duckdb.connect(config={"threads": 1})
    times = max(1, LARGE // len(frame))
    numbered = frame.assign(**{NUMBER: np.arange(len(frame))})
    connection.register("given", pa.Table.from_pandas(numbered, preserve_index=False))
    connection.execute(f"CREATE TABLE {TABLE} AS SELECT given.* FROM range({times}), given")
    seconds, found = fastest(lambda: connection.sql(query).to_arrow_table())
    found = found.sort_by(NUMBER)
    answers = np.stack([found[k] for k in range(2, found.num_columns)], axis=1)
    return found.num_rows / seconds, len(query), answers[::times]


def measure_postgres(fitted: Fitted, frame: pd.DataFrame, server: Any) -> tuple[float, int, np.ndarray]:
    query = to_sql(fitted, TABLE, "postgres", keep=[NUMBER])
    connection, frame = server.connect(), frame.assign(**{NUMBER: np.arange(len(frame))})
    for setting in ("jit = off", "max_parallel_workers_per_gather = 0"):
        connection.execute(f"SET {setting}")
    names = [f'"{name}"' for name in frame]
    kinds = ["float8" if pd.api.types.is_numeric_dtype(frame[name]) else "text" for name in frame]
    connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    connection.execute(f"CREATE UNLOGGED TABLE {TABLE} ({columns})")
    with connection.cursor().copy(f"COPY {TABLE} FROM STDIN") as copy:
        for row in as_rows(frame):
            copy.write_row(list(row.values()))
    status = Path(f"/proc/{connection.info.backend_pid}/stat")

    def clock() -> float:
        """Return the processor time of the server's process."""
        used = status.read_text().rpartition(")")[2].split()
        return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")

    seconds, found = fastest(lambda: connection.execute(query).fetchall(), clock)
    return len(frame) / seconds, len(query), np.array([row[2:] for row in sorted(found)])


TARGETS: dict[str, Callable[..., tuple[float, int, np.ndarray]]] = {
    "Python": measure_python,
    "JavaScript": measure_javascript,
    "ONNX": measure_onnx,
    "DuckDB": measure_duckdb,
    "PostgreSQL": measure_postgres,
}


def measure(fitted: Fitted, frame: pd.DataFrame, server: Any, targets: Sequence[str] = ()) -> dict[str, Any]:
    """Return rows per second, megabytes and the largest error of each target."""
    known = predict_posteriors(fitted, pa.Table.from_pandas(frame, preserve_index=False))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, target in TARGETS.items():
            if (targets and name not in targets) or (name == "PostgreSQL" and server is None):
                continue
            speed, size, answers = target(fitted, frame, server if name == "PostgreSQL" else Path(folder))
            error = float(np.abs(answers.astype(float) - known[: len(answers)]).max())
            found[name] = {"rows per second": speed, "megabytes": size / 1e6, "error": error}
            print(f"  {name}: {speed:,.0f} rows/s, {size / 1e6:.2f} MB, error {error:.1e}", flush=True)
    found["model file"] = {"rows per second": None, "megabytes": len(content(fitted)) / 1e6, "error": 0.0}
    return found


def measure_peer(frame: pd.DataFrame, labels: np.ndarray) -> float:
    """Return rows per second of scikit-learn's gradient boosting on the same rows, in one batch."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    coded = frame.apply(lambda column: column if column.dtype.kind in "if" else column.astype("category").cat.codes)
    model = HistGradientBoostingClassifier(random_state=0).fit(coded, labels)
    seconds, _ = fastest(lambda: model.predict_proba(coded))
    return len(frame) / seconds


def start_postgres() -> Any:
    """Return a PostgreSQL server, or None if the program is missing."""
    from tests.support.servers import new_postgres, postgres_program

    return None if postgres_program("initdb") is None else new_postgres()


def render(found: dict[str, Any], options: Namespace) -> list[str]:
    lines = [
        "# Exported models",
        "",
        f"Default models of {options.rows:,} rows, scored on one thread of {platform.machine()}; DuckDB scores",
        f"{LARGE:,} rows. Aims are rows per second of a typical model, at most 1 MB of SQL and 0.5 MB of model file.",
        "",
        "| table | target | rows per second | aim | MB | largest error |",
        "|---|---|---|---|---|---|",
    ]
    for table, targets in found.items():
        for target, one in targets["targets"].items():
            speed, aim = one["rows per second"], AIMS.get(target)
            lines.append(
                f"| {table} ({targets['tables']} tables) | {target} | {'' if speed is None else f'{speed:,.0f}'} | "
                f"{'' if aim is None else f'{aim:,}'} | {one['megabytes']:.2f} | {one['error']:.0e} |"
            )
        lines.append(f"| {table} | scikit-learn's gradient boosting, one batch | {targets['peer']:,.0f} | | | |")
    return lines


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--only", nargs="*", default=["typical", "adult"])
    parser.add_argument("--targets", nargs="*", default=[])
    parser.add_argument("--tables", type=int, default=1 << 30)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    server, found = start_postgres(), {}
    try:
        for name, load in (("typical", typical), ("adult", adult)):
            if name not in options.only:
                continue
            try:
                frame, labels = load(options.rows)
            except ImportError as problem:
                print(f"{name}: {problem}; install bench/requirements.txt")
                continue
            fitted = limit_tables(BayesClassifier().fit(frame, labels).fitted_, options.tables)
            corrections = fitted.model.corrections
            print(f"{name}: {0 if corrections is None else len(corrections.tests)} correction tables", flush=True)
            found[name] = {
                "tables": 0 if corrections is None else len(corrections.tests),
                "targets": measure(fitted, frame, server, options.targets),
                "peer": measure_peer(frame, labels),
            }
    finally:
        if server is not None:
            server.stop()
            shutil.rmtree(server.folder, ignore_errors=True)
    lines = render(found, options)
    print("\n".join(lines))
    if options.write:
        write_part("SPEED.md", "export.py", lines)


if __name__ == "__main__":
    main()
