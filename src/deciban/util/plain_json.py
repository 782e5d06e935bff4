"""Values for programs, as strict JSON has them."""

from typing import Any

from deciban.util.text_tables import class_name


def plain_json(value: Any) -> Any:
    """A value as JSON has it: numbers that it does not have are null, dates and the like are text.

    >>> plain_json({True: (1, float("inf"))})
    {'true': [1, None]}
    """
    if isinstance(value, dict):
        return {class_name(plain_json(key)): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if hasattr(value, "tolist"):  # of NumPy
        return plain_json(value.tolist())
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None  # NaN is not below either
    return value if value is None or isinstance(value, bool | int | str) else str(value)
