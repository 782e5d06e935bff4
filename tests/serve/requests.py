"""Bodies and tokens of requests."""

from pathlib import Path

import pyarrow as pa


def as_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


READ, LEARN = "r" * 20, "learn-0123456789-AZ_~+/=="


def token_file(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return str(path)
