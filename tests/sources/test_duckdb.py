"""DuckDBs that are lent: few wait, none is shared, and none is inherited by a forked process."""

import os

import pytest

from deciban.sources import duckdb


def test_few_duckdbs_wait_and_each_is_lent_once() -> None:
    duckdb.close_idle()
    with duckdb.borrow_connection() as one, duckdb.borrow_connection() as other:
        assert one is not other
    with duckdb.borrow_connection() as again:
        assert again is one or again is other
    for k in range(2 * duckdb.MAX_IDLE):  # each of another configuration
        with duckdb.borrow_connection(more_memory=float(k)) as connection:
            connection.execute("SELECT 1")
    assert len(duckdb._IDLE) == duckdb.MAX_IDLE


def test_a_duckdb_is_closed_after_a_failure() -> None:
    duckdb.close_idle()
    with pytest.raises(duckdb.query_error()), duckdb.borrow_connection() as connection:
        connection.execute("SELECT nothing")
    assert duckdb._IDLE == []


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="this system does not fork")
def test_no_duckdb_waits_in_a_forked_process() -> None:
    with duckdb.borrow_connection() as connection:
        connection.execute("SELECT 1")
    assert duckdb._IDLE
    process = os.fork()
    if not process:
        os._exit(len(duckdb._IDLE))
    assert os.waitpid(process, 0)[1] == 0
