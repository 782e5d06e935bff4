"""What onnxruntime says of tables, by a model that was written as ONNX."""

import math
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pyarrow as pa

from deciban.export.onnx.model import to_onnx
from deciban.model.model import Model
from tests.export.tables import assert_answers_agree


def session(model: Any) -> Any:
    """A checked ONNX model, ready to run."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def inputs_of(ready: Any, table: pa.Table) -> dict[str, Any]:
    """The columns that are asked for, as ONNX takes them."""
    return {one.name: as_input(table[one.name], one.type == "tensor(string)") for one in ready.get_inputs()}


def as_input(cells: pa.ChunkedArray, as_text: bool) -> Any:
    """Texts, "" where one is missing; or doubles: days since 1970, seconds since midnight, or as they are."""
    if as_text:
        return np.array(cells.fill_null("").to_pylist(), dtype=object).reshape(-1, 1)
    unit = 1.0
    if pa.types.is_date(cells.type) or pa.types.is_timestamp(cells.type):
        cells, unit = cells.cast(pa.timestamp("us")).cast(pa.int64()), 86_400e6
    elif pa.types.is_time(cells.type):
        cells, unit = cells.cast(pa.time64("us")).cast(pa.int64()), 1e6
    numbers = [math.nan if cell is None else float(cell) / unit for cell in cells.to_pylist()]
    return np.array(numbers, dtype=np.float64).reshape(-1, 1)


def answers(model: Model, table: pa.Table) -> tuple[Any, Any]:
    """The label and the probabilities of each row."""
    ready = session(to_onnx(model))
    label, probabilities = ready.run(["label", "probabilities"], inputs_of(ready, table))
    return label, probabilities


def assert_agrees(model: Model, table: pa.Table) -> int:
    """ONNX answers as deciban does; how many rows are refused is returned."""
    return assert_answers_agree(model, table, *answers(model, table))
