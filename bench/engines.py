"""Rows in PostgreSQL, Spark and DuckDB: counting and scoring in place, against common alternatives.

    python bench/engines.py [--rows 10000000] [--folder DIR] [--only postgres spark scoring] [--write]

Every contender runs in a process of its own, all in one run: its time is taken after the imports, the start of Spark
and a warm-up on a small table, its memory is the highest of the whole process (without servers, which have their own).
A PostgreSQL server and a Spark cluster are started for it on loopback. --folder keeps the table for the next run;
--write writes its part of bench/FILES.md.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
from files import aim, table_query  # noqa: E402 - its folder is not always on the path
from reports import write_part  # noqa: E402 - the same

NUMBERS = [f"n{k}" for k in range(10)]
TEXTS = ["s3", "s10", "s200"]
COLUMNS = [*NUMBERS, *TEXTS, "label"]
SMALL = 20_000
PARTS = 32  # files of the table, and so parts of it in Spark
ENGINE_FASTER, PEAK, CLUSTER = 3.0, 500.0, 100
Found = dict[str, Any]


# the tables


def generate(folder: Path, rows: int) -> None:
    """The table as Parquet in parts, and the first rows of it."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "4GB"})
    for size in (SMALL, rows):
        target = folder / str(size)
        if target.exists():
            continue
        part = folder / f"{size}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        step = -(-size // PARTS)
        for k, first in enumerate(range(0, size, step)):
            some = table_query(size).replace(f"range({size})", f"range({first}, {min(first + step, size)})")
            file = part / f"{k:02}.parquet"
            connection.execute(f"COPY (SELECT {', '.join(COLUMNS)} FROM ({some})) TO '{file}' (FORMAT parquet)")
        part.rename(target)


def load_postgres(server: Any, folder: Path, rows: int) -> None:
    """The tables in PostgreSQL."""
    import duckdb

    kinds = ", ".join([*(f"{name} float8" for name in NUMBERS), *(f"{name} text" for name in (*TEXTS, "label"))])
    for size in (SMALL, rows):
        server.execute(f"CREATE UNLOGGED TABLE t{size} ({kinds})")
        reader = duckdb.sql(f"SELECT {', '.join(COLUMNS)} FROM '{folder / str(size)}/*.parquet'")
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            path = Path(temporary) / "rows.csv"
            reader.write_csv(str(path), header=False)
            fill = f"COPY t{size} FROM STDIN (FORMAT csv)"
            with server.connect() as connection, connection.cursor().copy(fill) as copy, path.open("rb") as file:
                while block := file.read(1 << 20):
                    copy.write(block)
        server.execute(f"VACUUM ANALYZE t{size}")


# PostgreSQL: what is given is its address


def streamed(url: str, size: int) -> int:
    """deciban reads the rows by ADBC."""
    return _fit_postgres(url, size, tune=None)


def streamed_tuned(url: str, size: int) -> int:
    """The same, tuned."""
    return _fit_postgres(url, size, tune="auto")


def in_engine(url: str, size: int) -> int:
    """deciban counts in PostgreSQL."""
    return _fit_postgres(url, size, tune=None, pushdown=True)


def _fit_postgres(url: str, size: int, tune: Any, **options: Any) -> int:
    from deciban import BayesClassifier

    return int(BayesClassifier(tune=tune).fit(url, "label", table=f"t{size}", **options).counts_.rows)


def psycopg_pandas(url: str, size: int) -> int:
    """psycopg + pandas + scikit-learn: Gaussian for the numbers, categorical for the text."""
    import pandas
    import psycopg
    from sklearn.naive_bayes import CategoricalNB, GaussianNB
    from sklearn.preprocessing import OrdinalEncoder

    with psycopg.connect(url) as connection:
        frame = pandas.DataFrame(connection.execute(f"SELECT * FROM t{size}").fetchall(), columns=COLUMNS)
    labels = frame["label"].to_numpy()
    numbers = GaussianNB().fit(frame[NUMBERS].to_numpy(), labels)
    CategoricalNB(fit_prior=False).fit(OrdinalEncoder(dtype="int32").fit_transform(frame[TEXTS]), labels)
    return int(numbers.class_count_.sum())


# Spark: what is given is its master


def spark_deciban(master: str, size: int) -> int:
    """deciban, normal distributions of the numbers."""
    from deciban import BayesClassifier, Gaussian

    frame = _spark_table(master, size).select(*NUMBERS, "label")
    return int(BayesClassifier(Gaussian(), tune=None).fit(frame, "label").counts_.rows)


def spark_mllib(master: str, size: int) -> int:
    """MLlib's NaiveBayes, normal distributions of the numbers, which must be assembled into vectors first."""
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    frame = _spark_table(master, size).select(*NUMBERS, "label")
    frame = VectorAssembler(inputCols=NUMBERS, outputCol="features").transform(frame)
    indexed = StringIndexer(inputCol="label", outputCol="class").fit(frame).transform(frame)
    model = NaiveBayes(modelType="gaussian", labelCol="class").fit(indexed)
    return size if model.numClasses == 3 else 0


def spark_all_columns(master: str, size: int) -> int:
    """deciban, all columns, plain."""
    from deciban import BayesClassifier

    return int(BayesClassifier(tune=None).fit(_spark_table(master, size), "label").counts_.rows)


def spark_sql(master: str, size: int) -> int:
    """deciban counts in Spark SQL: no package needed on executors."""
    from deciban import BayesClassifier

    return int(BayesClassifier(tune=None).fit(_spark_table(master, size), "label", pushdown=True).counts_.rows)


def _spark_table(master: str, size: int) -> Any:
    from tests.support.servers import new_session

    cluster, folder = master.split("|")
    session = new_session(cluster, Path(folder), **{"spark.executor.memory": "900m", "spark.executor.cores": "1"})
    return session.read.parquet(str(Path(folder) / str(size)))


# scoring: what is given is the folder of the tables


def scored_in_sql(folder: str, size: int) -> int:
    """DuckDB scores with one statement and writes Parquet."""
    return _scored_by_sql(folder, size, tuned=False)


def scored_in_sql_tuned(folder: str, size: int) -> int:
    """The same with a tuned model."""
    return _scored_by_sql(folder, size, tuned=True)


def _scored_by_sql(folder: str, size: int, tuned: bool) -> int:
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "2GB", "preserve_insertion_order": False})
    connection.execute(f"CREATE VIEW visits AS SELECT * FROM '{folder}/{size}/*.parquet'")
    query = _small_model(folder, tuned).to_sql("visits")
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        connection.execute(f"COPY ({query}) TO '{temporary}/scores.parquet' (FORMAT parquet)")
        return int(connection.sql(f"SELECT count(*) FROM '{temporary}/scores.parquet'").fetchall()[0][0])


def streamed_out_and_back(folder: str, size: int) -> int:
    """deciban reads the rows, scores them and writes Parquet."""
    return _streamed_out(folder, size, tuned=False)


def streamed_out_and_back_tuned(folder: str, size: int) -> int:
    """The same with a tuned model."""
    return _streamed_out(folder, size, tuned=True)


def _streamed_out(folder: str, size: int, tuned: bool) -> int:
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        out = Path(temporary) / "scores.parquet"
        return int(_small_model(folder, tuned).predict_to(out, f"{folder}/{size}/*.parquet", probabilities=True))


def _small_model(folder: str, tuned: bool, known: dict[bool, Any] = {}) -> Any:  # noqa: B006 - remembers
    from deciban import BayesClassifier

    if tuned not in known:  # in the warm-up
        known[tuned] = BayesClassifier(tune="auto" if tuned else None).fit(f"{folder}/{SMALL}/*.parquet", "label")
    return known[tuned]


POSTGRES = [streamed, in_engine, streamed_tuned, psycopg_pandas]
SPARK = [spark_deciban, spark_mllib, spark_all_columns, spark_sql]
SCORING = [scored_in_sql, streamed_out_and_back, scored_in_sql_tuned, streamed_out_and_back_tuned]
CONTENDERS = {run.__name__: run for run in (*POSTGRES, *SPARK, *SCORING)}


def measure(name: str, where: str, size: int) -> None:
    """Run one contender here and print what it took."""
    run = CONTENDERS[name]
    run(where, SMALL)
    start = time.perf_counter()
    rows = run(where, size)
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text()  # getrusage would have the peak of the process that made this one
    peak = float(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]
    print(json.dumps({"rows": rows, "seconds": seconds, "peak": peak}))


def in_process(name: str, where: str, size: int, turns: int = 2) -> Found:
    """The best turn of a contender in time, the worst in memory; one turn, where it takes over 20 s."""
    found: list[Found] = []
    for _ in range(turns):
        command = [sys.executable, __file__, "--run", name, where, str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]}
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
        print(f"  {name}: {found[-1]}", file=sys.stderr, flush=True)
        if found[-1]["seconds"] > 20:
            break
    return {**min(found, key=lambda one: one["seconds"]), "peak": max(one["peak"] for one in found)}


# the page


def table_of(found: dict[str, Found], size: int) -> list[str]:
    lines = ["| method | seconds | rows per second | peak memory |", "|---|---|---|---|"]
    for name, one in found.items():
        told = (CONTENDERS[name.split(" ")[0]].__doc__ or "").rstrip(".") + name[len(name.split(" ")[0]) :]
        if "failed" in one:
            lines.append(f"| {told} | {one['failed']} |  |  |")
        else:
            assert one["rows"] == size, (name, one)
            lines.append(f"| {told} | {one['seconds']:.1f} | {size / one['seconds']:,.0f} | {one['peak']:,.0f} MB |")
    return [*lines, ""]


def ratio(found: dict[str, Found], slow: str, fast: str) -> float:
    return float(found[slow].get("seconds", float("nan")) / found[fast].get("seconds", float("nan")))


def postgres_page(folder: Path, rows: int) -> list[str]:
    from tests.support.servers import new_postgres

    server = new_postgres()
    try:
        load_postgres(server, folder, rows)
        on_disk = server.execute(f"SELECT pg_total_relation_size('t{rows}')")[0][0] / 1e6
        found = {run.__name__: in_process(run.__name__, server.url, rows) for run in POSTGRES}
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)
    faster = ratio(found, "streamed", "in_engine")
    peak, tuned = found["streamed"]["peak"], found["streamed_tuned"]["peak"]
    return [
        f"## {rows:,} rows in PostgreSQL",
        "",
        f"{len(NUMBERS)} columns of numbers and {len(TEXTS)} of text, 3 classes, {on_disk:,.0f} MB in the server,",
        "on the same machine with default settings, sharing its cores.",
        "",
        *table_of(found, rows),
        "- counting in the engine: "
        + aim(f"{faster:.1f} times as fast as streaming", f">= {ENGINE_FASTER:g}", faster >= ENGINE_FASTER)
        + f"; {ratio(found, 'psycopg_pandas', 'in_engine'):.0f} times as fast as psycopg + "
        "pandas + scikit-learn",
        f"- streaming: {ratio(found, 'psycopg_pandas', 'streamed'):.0f} times as fast as these; "
        + aim(f"peak {peak:.0f} MB", f"<= {PEAK:g}", peak <= PEAK)
        + f"; tuned {tuned:.0f} MB: what is learned on the sample takes it, not the stream",
        "",
    ]


def spark_page(folder: Path, rows: int) -> list[str]:
    from tests.support.servers import new_cluster

    found: dict[str, Found] = {}
    for workers, runs in ((2, SPARK), (1, SPARK[:2])):
        cluster = new_cluster(workers, memory="2g")
        try:
            for run in runs:
                name = run.__name__ if workers == 2 else f"{run.__name__} (one worker)"
                found[name] = in_process(run.__name__, f"{cluster.url}|{folder}", rows)
        finally:
            cluster.stop()
    against = ratio(found, "spark_mllib", "spark_deciban")
    shard = shard_figures(folder)
    return [
        f"## {rows:,} rows in Spark",
        "",
        f"A standalone cluster on this machine, workers of one core each; {PARTS} files of Parquet. The peak is that",
        "of the driver's Python process.",
        "",
        *table_of(found, rows),
        "- deciban's fit against MLlib's: " + aim(f"{against:.2f} times as fast", ">= 1", against >= 1.0),
        f"- from one worker to two: deciban {ratio(found, 'spark_deciban (one worker)', 'spark_deciban'):.2f} times as "
        f"fast, MLlib {ratio(found, 'spark_mllib (one worker)', 'spark_mllib'):.2f} times; the machine has "
        f"{os.cpu_count()} cores for the workers, the master and the driver together, so a third was not tried",
        *projection(shard, found["spark_all_columns"], rows),
        "",
    ]


def shard_figures(folder: Path) -> Found:
    """The bytes of a shard of all columns, and the seconds that the driver takes to add one."""
    from pyarrow import parquet

    from deciban import BayesClassifier, count_batches
    from deciban.model.batches import add_up
    from deciban.model.counts import Counts
    from deciban.store.model_file import from_content

    plan = BayesClassifier(tune=None).plan(f"{folder}/{SMALL}/*.parquet", "label")
    tables = [parquet.read_table(path) for path in sorted((folder / str(SMALL)).glob("*.parquet"))]
    shards = [count_batches([table], plan) for table in tables]
    start = time.perf_counter()
    add_up((from_content(shard, "shard").counts for shard in shards), Counts.empty(plan.schema))
    return {"bytes": max(map(len, shards)), "merge": (time.perf_counter() - start) / len(shards)}


def projection(shard: Found, measured: Found, rows: int) -> list[str]:
    """What 100 workers would do, by what was measured here: rows in parallel, shards one after the other."""
    if "failed" in measured:
        return []
    a_second = rows / measured["seconds"] / 2  # of one worker
    billion = 10**9 / (CLUSTER * a_second)
    parts = 10 * CLUSTER
    merge = parts * shard["merge"]
    return [
        f"- a shard of all columns has {shard['bytes'] / 1e3:.0f} kB, and the driver adds one in "
        f"{1e3 * shard['merge']:.1f} ms",
        f"- projected (not measured): {CLUSTER} such workers count 1,000,000,000 rows in {billion:.0f} s, and the "
        f"driver adds {parts} shards ({parts * shard['bytes'] / 1e6:.0f} MB) in {merge:.1f} s: "
        f"{100 * merge / (merge + billion):.0f}% of the time, which limits the scaling",
    ]


def scoring_page(folder: Path, rows: int) -> list[str]:
    found = {run.__name__: in_process(run.__name__, str(folder), rows) for run in SCORING}
    plain = ratio(found, "streamed_out_and_back", "scored_in_sql")
    tuned = ratio(found, "streamed_out_and_back_tuned", "scored_in_sql_tuned")
    return [
        f"## Scoring {rows:,} rows in DuckDB",
        "",
        "From Parquet to Parquet, all columns with the prediction and the probability of each class.",
        "",
        *table_of(found, rows),
        f"- `to_sql` in DuckDB is {plain:.2f} times as fast as streaming the rows out and back, tuned {tuned:.2f}",
        "",
    ]


PAGES = {"postgres": postgres_page, "spark": spark_page, "scoring": scoring_page}


def opening() -> list[str]:
    packages = (
        "deciban",
        "duckdb",
        "pyarrow",
        "pyspark",
        "adbc-driver-postgresql",
        "psycopg",
        "pandas",
        "scikit-learn",
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return [
        "# Engines",
        "",
        "Written by `python bench/engines.py --write`: each method in a separate process, all in one run; the",
        "best time of two runs (of one if it takes over 20 s) and highest peak. Times start after the",
        "imports and a warm-up on a small table.",
        "",
        f"- machine: {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB, Python {platform.python_version()}",
        f"- versions: {', '.join(f'{name} {version(name)}' for name in packages)}",
        "",
    ]


def main(options: Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, __file__, "--generate", str(folder), "--rows", str(options.rows)]
        subprocess.run(command, check=True)
        lines = opening()
        for name in options.only:
            lines += PAGES[name](folder, options.rows)
            print("\n".join(lines), flush=True)
    if options.write:
        write_part("FILES.md", "engines.py", lines)


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder")
    parser.add_argument("--only", nargs="+", choices=tuple(PAGES), default=list(PAGES))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--generate", metavar="FOLDER")
    parser.add_argument("--run", nargs=3, metavar=("CONTENDER", "WHERE", "ROWS"))
    given = parser.parse_args()
    if given.run:
        measure(given.run[0], given.run[1], int(given.run[2]))
    elif given.generate:
        generate(Path(given.generate), given.rows)
    else:
        main(given)
