"""Learning from large files, against pandas with scikit-learn and against a bare scan.

    python bench/files.py [--rows 10000000] [--folder DIR] [--write]

Every contender runs in a process of its own, all in one run, in turns, and the best of its turns counts: its time is
taken after the imports and a warm-up on a small table, its memory is the highest of the whole process. --folder keeps
the files (about 2 GB) for the next run; --write writes its part of bench/FILES.md.
"""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from reports import write_part

# Nothing heavy is imported here: a process starts with the peak memory of the one that made it.
NUMBERS = [f"n{k}" for k in range(20)]
LEVELS = (3, 10, 50, 200, 1000)
TEXTS = [f"s{levels}" for levels in LEVELS]
SMALL = 2_000
CSV_ROWS = 1_000_000
FASTER, PEAK, SCANS = 10.0, 500.0, 3.0
Found = dict[str, Any]


# the files


def table_query(rows: int) -> str:
    """The table in SQL: every cell is a hash of its number, so that tables of all sizes have the same first rows."""
    classes = "CASE WHEN u < 0.5 THEN 0 WHEN u < 0.8 THEN 1 ELSE 2 END"
    cells = []
    for k, name in enumerate(NUMBERS):
        normal = f"sqrt(-2 * ln({uniform(2 * k)})) * cos(2 * pi() * {uniform(2 * k + 1)})"
        moved = f"({normal} + c * {(k % 7 - 3) * 0.1:.1f})"
        if k < 8:
            cell = f"{10 * (k - 4)} + {1 + k} * {moved}"  # as exact as a double is
        elif k < 12:
            cell = f"round(50 + 10 * (0.8 * common + 0.6 * {moved}), 2)"  # correlated
        elif k < 16:
            cell = f"round(exp(3 + 0.7 * {moved}), 3)"  # skewed: amounts of money
        elif k < 18:
            cell = f"floor(-ln({uniform(2 * k)}) * ({k - 12} + c))"  # whole numbers
        else:
            cell = f"round(-ln({uniform(2 * k)}) * (1 + 0.3 * c), 4)"  # waiting times
        cells.append(f"{cell} AS {name}")
    for k, (name, levels) in enumerate(zip(TEXTS, LEVELS, strict=True)):
        level = f"floor({levels} * pow({uniform(60 + k)}, 1.5 + 0.3 * c))::INTEGER"  # the first levels are frequent
        cells.append(f"'level ' || {level} AS {name}")
    label = "CASE c WHEN 0 THEN 'low' WHEN 1 THEN 'middle' ELSE 'high' END AS label"
    common = f"sqrt(-2 * ln({uniform(50)})) * cos(2 * pi() * {uniform(51)})"
    drawn = f"SELECT i, {uniform(70)} AS u, {common} AS common FROM range({rows}) AS rows(i)"
    return f"SELECT {', '.join(cells)}, {label} FROM (SELECT i, common, {classes} AS c FROM ({drawn}))"


def uniform(k: int) -> str:
    """A number between 0 and 1, both excluded, for row i."""
    return f"((hash(100 * i + {k}) >> 12)::DOUBLE + 0.5::DOUBLE) / {2**52}::DOUBLE"


def generate(folder: Path, rows: int) -> None:
    """Write the files that are not there yet."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "2GB"})
    for size in (SMALL, *sizes(rows)):
        write(connection, table_query(size), folder / f"{size}.parquet", "FORMAT parquet")
    few = min(CSV_ROWS, rows)
    for size in (SMALL, few):
        table = f"SELECT * FROM read_parquet('{folder / f'{rows}.parquet'}') LIMIT {size}"
        write(connection, table, folder / f"{size}.csv", "FORMAT csv, HEADER")


def write(connection: Any, query: str, path: Path, options: str) -> None:
    if not path.exists():
        part = path.with_suffix(".part")
        connection.execute(f"COPY ({query}) TO '{part}' ({options})")
        part.rename(path)


def sizes(rows: int) -> list[int]:
    return [size for size in (10**4, 10**5, 10**6) if size < rows] + [rows]


# the contenders, each in a process of its own


def deciban_fit(path: Path, tune: str | None) -> Any:
    from deciban import BayesClassifier

    return BayesClassifier(tune=tune).fit(str(path), "label")  # type: ignore[arg-type]


def plain(path: Path) -> int:
    """deciban, plain Bayes."""
    return int(deciban_fit(path, None).counts_.rows)


def tuned(path: Path) -> int:
    """deciban with its defaults: tuned."""
    return int(deciban_fit(path, "auto").counts_.rows)


def pandas_sklearn(path: Path) -> int:
    """pandas reads, scikit-learn learns: Gaussian for the numbers, categorical for the text."""
    import pandas
    from sklearn.naive_bayes import CategoricalNB, GaussianNB
    from sklearn.preprocessing import OrdinalEncoder

    frame = pandas.read_parquet(path) if path.suffix == ".parquet" else pandas.read_csv(path)
    labels = frame["label"].to_numpy()
    numbers = GaussianNB().fit(frame[NUMBERS].to_numpy(), labels)
    codes = OrdinalEncoder(dtype="int32").fit_transform(frame[TEXTS])
    CategoricalNB(fit_prior=False).fit(codes, labels)
    return int(numbers.class_count_.sum())


def scan(path: Path) -> int:
    """DuckDB hands the same columns over as Arrow batches, and nothing is done with them."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "256MB"})
    columns = ", ".join([*NUMBERS, *TEXTS, "label"])
    call = f"read_{path.suffix[1:]}('{path}')"
    return sum(batch.num_rows for batch in connection.sql(f"SELECT {columns} FROM {call}").to_arrow_reader(1 << 16))


def predict_to(path: Path, ending: str) -> int:
    """deciban writes the table with predictions; the model is learned before, from few rows."""
    if "small" not in MODELS:  # in the warm-up
        MODELS["small"] = deciban_fit(path.parent / f"{SMALL}.parquet", None)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        return int(MODELS["small"].predict_to(Path(folder) / f"out{ending}", str(path)))


def predict_to_csv(path: Path) -> int:
    return predict_to(path, ".csv")


def predict_to_parquet(path: Path) -> int:
    return predict_to(path, ".parquet")


MODELS: dict[str, Any] = {}
CONTENDERS = {run.__name__: run for run in (plain, tuned, pandas_sklearn, scan, predict_to_csv, predict_to_parquet)}


def measure(name: str, path: Path) -> None:
    """Run one contender here and print what it took."""
    run = CONTENDERS[name]
    run(path.parent / f"{SMALL}{path.suffix}")
    start = time.perf_counter()
    rows = run(path)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": rows, "seconds": seconds, "peak": peak}))


def in_process(name: str, path: Path) -> Found:
    """What one contender took in a process of its own: seconds, peak in MB, and the wall time of the process."""
    start = time.perf_counter()
    command = [sys.executable, __file__, "--run", name, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    return {**json.loads(done.stdout), "wall": time.perf_counter() - start}


def best(names: list[str], path: Path, turns: int) -> dict[str, Found]:
    """The best turn of each contender, in time; of its memory the worst. scikit-learn has one turn where it is slow."""
    found: dict[str, list[Found]] = {name: [] for name in names}
    for turn in range(turns):
        for name in names:
            if turn and (found[name][0].get("failed") or found[name][0]["seconds"] > 30):
                continue
            found[name].append(in_process(name, path))
            print(f"  {path.name} {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    return {
        name: runs[0]
        if "failed" in runs[0]
        else {**min(runs, key=lambda run: run["seconds"]), "peak": max(run["peak"] for run in runs)}
        for name, runs in found.items()
    }


def best_of_help(turns: int = 5) -> Found:
    """The median time of `deciban --help` and its highest peak in MB."""
    program = str(Path(sys.executable).parent / "deciban")
    code = (
        f"import resource, subprocess; subprocess.run([{program!r}, '--help'], check=True, "
        "stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    times, peaks = [], []
    for _ in range(turns):
        start = time.perf_counter()
        subprocess.run([program, "--help"], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        peaks.append(float(done.stdout))
    return {"seconds": statistics.median(times), "peak": max(peaks)}


# the page

TITLES = {
    "plain": "deciban, plain (`tune=None`)",
    "tuned": "deciban, tuned (the default)",
    "pandas_sklearn": "pandas + scikit-learn",
    "scan": "DuckDB, a bare scan into Arrow",
}


def available_bytes() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def fit_lines(path: Path, rows: int, found: dict[str, Found]) -> list[str]:
    """One table of what learning from a file took, and the ratios to deciban's peers."""
    lines = [
        "",
        f"## Learning from {rows:,} rows of {path.suffix[1:].upper() if path.suffix == '.csv' else 'Parquet'}",
        "",
        f"{len(NUMBERS)} columns of numbers, {len(TEXTS)} of text ({', '.join(map(str, LEVELS))} levels), 3 classes, "
        f"{path.stat().st_size / 1e6:,.0f} MB on disk.",
        "",
        "| method | seconds | whole process | peak memory | rows per second |",
        "|---|---|---|---|---|",
    ]
    for name, one in found.items():
        if "failed" in one:
            lines.append(f"| {TITLES[name]} | {one['failed']} |  |  |  |")
            continue
        speed = f"{one['rows'] / one['seconds']:,.0f}"
        lines.append(
            f"| {TITLES[name]} | {one['seconds']:.2f} | {one['wall']:.2f} s | {one['peak']:,.0f} MB | {speed} |"
        )
    peer, bare = found["pandas_sklearn"], found["scan"]
    lines.append("")
    for name in ("plain", "tuned"):
        one = found[name]
        ratio = None if "failed" in peer else peer["seconds"] / one["seconds"]
        faster = "pandas + scikit-learn did not finish" if ratio is None else aim(
            f"{ratio:.1f} times as fast as pandas + scikit-learn", f">= {FASTER:g}", ratio >= FASTER
        )  # fmt: skip
        scans = one["seconds"] / bare["seconds"]
        lines.append(
            f"- {name}: {faster}; "
            + aim(f"peak {one['peak']:.0f} MB", f"< {PEAK:g}", one["peak"] < PEAK)
            + "; "
            + aim(f"{scans:.1f} scans", f"<= {SCANS:g}", scans <= SCANS)
        )
    return lines


def aim(text: str, wanted: str, met: bool) -> str:
    return f"{text} (target {wanted}: {'met' if met else '**missed**'})"


def compared(path: Path, rows: int, turns: int, before: dict[str, Found] | None = None) -> dict[str, Found]:
    """All four contenders on one file; scikit-learn only where the table fits into memory, by what fewer rows took."""
    names = list(TITLES)
    need = 0.0
    if before is not None and "peak" in before["pandas_sklearn"]:
        need = before["pandas_sklearn"]["peak"] * 1e6 * rows / before["pandas_sklearn"]["rows"]
    if need > 0.9 * available_bytes():
        names.remove("pandas_sklearn")
    found = best(names, path, turns)
    found.setdefault("pandas_sklearn", {"failed": f"not run: about {need / 1e9:.0f} GB do not fit into memory"})
    return found


def page(folder: Path, rows: int) -> list[str]:
    packages = ("deciban", "duckdb", "pyarrow", "numpy", "numba", "pandas", "scikit-learn")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    few = min(CSV_ROWS, rows)
    lines = [
        "# Files",
        "",
        "Written by `python bench/files.py --write`: each method in a separate process, all in one run, alternating;",
        "best time of three runs (of one if it takes over 30 s) and highest peak. Times start after",
        "the imports and a warm-up on a small file of the same kind; the whole process includes both. scikit-learn is",
        "GaussianNB for the numbers, OrdinalEncoder and CategoricalNB for the text. The scan returns the same",
        "columns and does nothing with them; it has all cores and 256 MB.",
        "",
        f"- machine: {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB, Python {platform.python_version()}",
        f"- versions: {', '.join(f'{name} {version(name)}' for name in packages)}",
    ]
    grown = {size: best(["plain", "tuned"], folder / f"{size}.parquet", 3) for size in sizes(rows)[:-1]}
    short = compared(folder / f"{few}.csv", few, 3)
    long = compared(folder / f"{rows}.parquet", rows, 3, short)
    grown[rows] = long
    lines += fit_lines(folder / f"{rows}.parquet", rows, long)
    lines += fit_lines(folder / f"{few}.csv", few, short)
    lines += [
        "",
        "## Growth with the number of rows",
        "",
        "| rows of Parquet | plain | per row | tuned | per row |",
        "|---|---|---|---|---|",
    ]
    for size, found in grown.items():
        a, b = (found[name]["seconds"] for name in ("plain", "tuned"))
        lines.append(f"| {size:,} | {a:.3f} s | {a / size * 1e6:.2f} µs | {b:.3f} s | {b / size * 1e6:.2f} µs |")
    lines += [
        "",
        f"## Predictions of {few:,} rows",
        "",
        "| from | to | seconds | rows per second | peak |",
        "|---|---|---|---|---|",
    ]
    for source in (".parquet", ".csv"):
        found = best(["predict_to_csv", "predict_to_parquet"], folder / f"{few}{source}", 3)
        for name, one in found.items():
            lines.append(
                f"| {source[1:]} | {name.removeprefix('predict_to_')} | {one['seconds']:.2f} | "
                f"{one['rows'] / one['seconds']:,.0f} | {one['peak']:.0f} MB |"
            )
    found = best_of_help()
    lines += ["", f"`deciban --help`: {1e3 * found['seconds']:.0f} ms (median of 5), peak {found['peak']:.0f} MB."]
    return lines


def main(options: Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, __file__, "--generate", str(folder), "--rows", str(options.rows)]
        subprocess.run(command, check=True)  # elsewhere: what it takes must not be counted as that of the contenders
        lines = page(folder, options.rows)
    print("\n".join(lines))
    if options.write:
        write_part("FILES.md", "files.py", lines)


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--generate", metavar="FOLDER")
    parser.add_argument("--run", nargs=2, metavar=("CONTENDER", "FILE"))
    given = parser.parse_args()
    if given.run:
        measure(given.run[0], Path(given.run[1]))
    elif given.generate:
        generate(Path(given.generate), given.rows)
    else:
        main(given)
