"""The commands read from a PostgreSQL database and write into one; nobody sees a password."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from deciban import load, scan
from tests import PATIENCE
from tests.support.command import COMMAND, Deciban, records
from tests.support.postgres_tables import created, new_name
from tests.support.servers import Postgres

QUERY = (
    "SELECT g AS id, (g % 7) + (g % 2) * 3.5 AS x, 'k' || g % 3 AS kind, CASE g % 2 WHEN 1 THEN 'yes' ELSE 'no' END "
    "AS churn FROM generate_series(1, 400) AS g"
)


@pytest.fixture
def url(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    """Without the password, which is in the environment."""
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    return f"postgresql://{postgres.user}@127.0.0.1:{postgres.port}/postgres"


@pytest.fixture
def name(postgres: Postgres) -> str:
    return created(postgres, QUERY)


@pytest.fixture
def fitted(deciban: Deciban, url: str, name: str) -> str:
    said = deciban("fit", url, "--table", name, "-t", "churn", "-o", "m.dcb", "--tune", "none", "--ignore", "id")
    assert said.code == 0, said.err
    return "m.dcb"


def test_a_query_is_learned_judged_explained_and_forgotten(deciban: Deciban, url: str, name: str) -> None:
    query = f"select x, kind, churn from {name}"
    said = deciban("fit", url, "--query", query, "--target", "churn", "-o", "m.dcb", "--tune", "none")
    assert said.code == 0
    assert "m.dcb: 400 rows, 2 classes, 2 columns" in said.out
    again = f"deciban evaluate m.dcb {url} --query '{query}'"
    assert f"to evaluate it: {again}" in said.out
    found = json.loads(deciban("evaluate", "m.dcb", url, "--query", query, "--json").out)
    assert found["method"].startswith("training rows, exact leave-one-out")
    folds = deciban("evaluate", url, "--query", query, "-t", "churn", "--folds", "3", "--tune", "none")
    assert folds.code == 0
    assert "row 3" in deciban("explain", "m.dcb", url, "--query", query, "--row", "3").out
    assert deciban("diagnose", "m.dcb", url, "--table", name, "--ignore", "id").code == 0
    more = f"{query} where id <= 100"
    said = deciban("learn", "m.dcb", url, "--query", more, "--retune")
    assert "100 rows added; now 500 rows" in said.out
    assert "100 rows removed; now 400 rows" in deciban("forget", "m.dcb", url, "--query", more).out
    assert b"127.0.0.1" not in Path("m.dcb").read_bytes()


def test_predictions_are_written_into_a_table(deciban: Deciban, url: str, name: str, fitted: str) -> None:
    said = deciban("predict", fitted, url, "--table", name, "--into", f"public.{name}_scores", "--keep", "id")
    assert (said.code, said.out) == (0, f"public.{name}_scores: 400 rows\n")
    written = scan(url, table=f"{name}_scores").table()
    assert written.column_names == ["id", "predicted", "probability"]
    assert written["predicted"].to_pylist() == load(fitted).predict(scan(url, table=name)).tolist()
    said = deciban("predict", fitted, url, "--table", name, "--into", f"{name}_scores")
    assert said.code == 2
    assert f'relation "{name}_scores" already exists; ' in said.err
    assert "write to another table, or choose --if-exists replace or --if-exists append" in said.err
    few = ("--query", f"select * from {name} limit 5", "--keep", "id")
    assert deciban("predict", fitted, url, *few, "--into", f"{name}_scores", "--if-exists", "append").code == 0
    assert scan(url, table=f"{name}_scores").table().num_rows == 405
    said = deciban("predict", fitted, url, *few, "--into", f"{name}_scores", "--if-exists", "replace", "--json")
    assert json.loads(said.out) == {"output": url, "rows": 5, "into": f"{name}_scores"}
    assert scan(url, table=f"{name}_scores").table().num_rows == 5
    said = deciban("decide", fitted, url, "--table", name, "--reject", "0.2", "--into", f"{name}_decided")
    assert said.code == 0
    assert "decision" in scan(url, table=f"{name}_decided").names


def test_rows_go_from_files_to_databases_and_back(deciban: Deciban, url: str, name: str, fitted: str) -> None:
    Path("new.csv").write_text("x,kind\n1.5,k1\n9.5,k2\n")
    assert deciban("predict", fitted, "new.csv", "--output", url, "--into", f"{name}_file").code == 0
    assert scan(url, table=f"{name}_file").table()["x"].to_pylist() == [1.5, 9.5]
    assert deciban("predict", fitted, url, "--table", name, "-o", "out.csv").code == 0
    assert len(records(Path("out.csv").read_text())) == 400


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["fit", "URL", "-t", "churn", "-o", "n.dcb"], "give --query 'select ...', or --table schema.table"),
        (["fit", "a.csv", "--query", "select 1", "-t", "y", "-o", "n.dcb"], "--query and --table apply to databases"),
        (["fit", "URL", "a.csv", "-t", "y", "-o", "n.dcb"], "only one source can be read if it is a database"),
        (["predict", "m.dcb", "URL", "--query", "select 1 as x", "-o", "URL"], "name the table to write with --into"),
        (["predict", "m.dcb", "a.csv", "--into", "t"], "--into is a table of a database; give its URL with --output"),
        (["predict", "m.dcb", "URL", "--table", "t", "--if-exists", "replace"], "--if-exists applies to a table"),
    ],
)
def test_what_makes_no_sense_is_told_in_options(
    arguments: list[str], problem: str, deciban: Deciban, url: str, fitted: str
) -> None:
    Path("a.csv").write_text("x,kind\n1.5,k1\n")
    said = deciban(*(argument.replace("URL", url) for argument in arguments))
    assert said.code == 2
    assert problem in said.err


@pytest.mark.parametrize(
    ("query", "code", "problem"),
    [
        ("select * from nowhere", 2, 'relation "nowhere" does not exist'),
        ("select 1 / (g - 50) as x, g as y from generate_series(1, 100) g", 3, "division by zero"),
        ("select '{}'::json as doc, 1 as y", 3, "read it with --type doc=text, or leave it out with --ignore"),
        ("select 1 as x", 3, "no target column 'y'; columns: 'x'"),
    ],
)
def test_faults_of_queries_have_their_exit_codes(
    query: str, code: int, problem: str, deciban: Deciban, url: str
) -> None:
    said = deciban("fit", url, "--query", query, "-t", "y", "-o", "n.dcb")
    assert (said.code, problem in said.err) == (code, True), said.err
    assert not Path("n.dcb").exists()


def test_a_server_that_cannot_be_reached_is_a_fault_of_input(deciban: Deciban, postgres: Postgres) -> None:
    said = deciban("fit", "postgresql://ann:s3cretword@127.0.0.1:1/db", "--table", "t", "-t", "y", "-o", "n.dcb")
    assert said.code == 5
    assert "postgresql://ann@127.0.0.1:1/db: cannot connect:" in said.err
    assert "s3cretword" not in said.err
    assert "a password in an argument is visible in the process list" in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "SECRET"],
        ["fit", "SECRET", "-t", "y", "-o", "n.dcb"],
        ["fit", "SECRET", "-t", "y", "-o", "SECRET"],
        ["fit", "-t", "y", "-o", "n.dcb", "--weight", "SECRET", "SECRET"],
        ["merge", "SECRET", "SECRET", "-o", "n.dcb"],
        ["predict", "SECRET", "SECRET"],
        ["evaluate", "SECRET"],
        ["SECRET"],
        ["fit", "--wrong", "SECRET"],
    ],
)
@pytest.mark.parametrize("secret", ["s3cretword", "s3cret/word", "s3cret@word"])
def test_no_command_repeats_a_password(arguments: list[str], secret: str, deciban: Deciban) -> None:
    """Wherever the URL of a database is given by mistake, and however its password is written."""
    said = deciban(*(argument.replace("SECRET", f"postgresql://ann:{secret}@127.0.0.1:1/db") for argument in arguments))
    assert said.code
    assert "s3cret" not in said.out + said.err
    assert "word" not in re.sub("password", "", said.out + said.err)


def started(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def running(server: Postgres, words: str) -> int:
    """How many queries of others with these words are running."""
    query = (
        f"SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%{words}%' AND pid <> pg_backend_pid()"
    )
    return len(server.execute(query))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_a_command_that_waits_for_the_server(
    number: signal.Signals, postgres: Postgres, tmp_path: Path
) -> None:
    """Its arguments show no password meanwhile, and the server does not run the query much longer."""
    words = new_name()
    query = f"select pg_sleep(900)::text as {words}, 1 as y"
    process = started("fit", postgres.url, "--query", query, "-t", "y", "-o", str(tmp_path / "m.dcb"))
    try:
        for _ in range(6000):
            if running(postgres, words):
                break
            time.sleep(0.05)
        shown = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert b"postgresql://tester:***************@127.0.0.1" in shown
        assert b"s3cr" not in shown
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert b"nothing was changed" in err or number == signal.SIGKILL
    assert b"s3cr" not in out + err
    assert not (tmp_path / "m.dcb").exists()
    for _ in range(6000):
        if not running(postgres, words):
            break
        time.sleep(0.05)
    assert not running(postgres, words)
