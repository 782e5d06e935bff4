"""The engines in which models are written as SQL."""

from collections.abc import Iterator

import pytest

from tests.export.sql_engines import EngineUnderTest, duckdb_engine, postgres_engine, spark_engine


def engine_named(name: str, request: pytest.FixtureRequest) -> Iterator[EngineUnderTest]:
    """An engine, whose server is started if need be."""
    if name == "duckdb":
        yield duckdb_engine()
    elif name == "postgres":
        with request.getfixturevalue("postgres").connect() as connection:
            yield postgres_engine(connection)
    else:
        session = request.getfixturevalue("spark")
        session.conf.set("spark.sql.subexpressionElimination.enabled", "false")
        yield spark_engine(session)
        session.conf.unset("spark.sql.subexpressionElimination.enabled")


@pytest.fixture(scope="module", params=["duckdb", "postgres", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[EngineUnderTest]:
    """Each of the three engines."""
    yield from engine_named(request.param, request)


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def quick_engine(request: pytest.FixtureRequest) -> Iterator[EngineUnderTest]:
    """The engines that answer at once: many models are tried there."""
    yield from engine_named(request.param, request)
