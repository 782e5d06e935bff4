"""Models of every family, plain and as tuning would leave them, and rows that are easy, hard and hostile."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from deciban import BayesClassifier
from deciban.families.base.parts import TEXT_PARTS
from deciban.model.corrections import CorrectedColumn, Corrections, round_corrections
from deciban.model.model import Model
from deciban.model.partial_rows import SCALED_SHARES, PartialRows
from deciban.sources.open import open_table
from tests.export.targets import Row
from tests.laws.cases import Case

Rng = np.random.Generator

CLASSES = 3

# Cells that no table of a case holds, or that few programs take well.
HARD_CELLS: list[Any] = [
    *(1e308, -1e308, -0.0, 0.0, 1e-308, -1e-308, 5e-324, 1e150, -1e17, 1e6, 2.5, -1.0, 3, 2**53, 2**60),
    *(True, False, None, math.nan, math.inf, -math.inf),
    *("1.5", " 2 ", "", " ", "abc", "nan", "-inf", "0x10", "1e5", "\ud800", "İ", "e\u0301", "\u00e9"),
    *("'; drop", '"', "</script>", "\\", "\u2028", "\0", "__proto__", "constructor"),
]  # fmt: skip

# Words that are hard to cut, to fold, or to know.
HARD_WORDS = [
    *("ΟΔΟΣ", "ΑΣ'", "Σ", "½", "ﬁne", "\u212b", "naïve", "I\u0307", "\0", "\u2028", "x'y\"<b>", "日本語", "\U0001f600"),
    *("e\u0301a", "\U0001e030", "\ua7f2", "ǅ", "a\u00a0b", "\t\t", "red", "RED", "ein_Wort"),
    "extraordinarily-long-words",
]  # fmt: skip


def plain_model(case: Case, rng: Rng) -> Model:
    X, labels = case.draw(rng, 200), rng.integers(0, CLASSES, 200)
    return BayesClassifier(case.spec, tune=None).fit(X, labels).model_


def as_tuned(model: Model, rng: Rng, cap: float) -> Model:
    """The model with weights (some of them 0), offsets and scales, a cap, a limit and corrections."""
    blocks = len(model.schema.block_names)
    weights = rng.uniform(0.1, 2.0, blocks) * (rng.random(blocks) > 0.2)
    tuned = replace(model, weights=weights, cap=cap, limit=2.5 * cap, corrections=corrections(model, rng))
    return replace(tuned, partial=partial_rows(model, rng))


def partial_rows(model: Model, rng: Rng) -> PartialRows:
    """Offsets of columns, some of which are evidence where they are missing, and scales."""
    width = model.schema.width
    shares = rng.dirichlet(np.ones(width))
    return PartialRows(
        rng.normal(size=(width, model.classes.size)),
        shares,
        rng.uniform(0.5, 2.0, len(SCALED_SHARES)),
        np.flatnonzero(rng.random(width) < 0.4),
        float(rng.uniform(0.2, 0.8)),
    )


def corrections(model: Model, rng: Rng, tables: int = 30) -> Corrections | None:
    """Tables of up to six questions about the columns that are no texts."""
    columns = _corrected(model, rng)
    if not columns:
        return None
    tests = np.full((tables, 6, 2), -1, dtype=np.int64)
    for t in range(tables):
        for level in range(rng.integers(1, 7)):
            column = int(rng.integers(0, len(columns)))
            tests[t, level] = column, rng.integers(0, columns[column].bins - 1)
    values = rng.normal(0.0, 0.1, (tables, 64, model.classes.size))
    rows = rng.integers(0, 40, (tables, 64)) * rng.choice([0.5, 1.0], (tables, 1))
    found = Corrections(tuple(columns), tests, values, rows, np.zeros(tables, dtype=np.int64), 1, 0)
    return round_corrections(found)  # as they are learned


def _corrected(model: Model, rng: Rng) -> list[CorrectedColumn]:
    found: dict[int, CorrectedColumn] = {}
    for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True):
        levels = likelihood.list_known_values()
        if group.family.part in TEXT_PARTS:
            levels = likelihood.levels  # type: ignore[attr-defined]  # some texts are equal to their part
        for k, column in enumerate(group.columns):
            if group.family.is_text:
                continue
            if levels is not None:
                known = levels[k][: max(1, len(levels[k]) - 1)]
                places = np.sort(rng.integers(2, 5, (2, len(known))), axis=1).astype(np.uint8)
                found[column] = CorrectedColumn(column, levels=known, places=places if column % 2 else None)
            elif type(group.family).__name__ != "JointTable":
                found[column] = CorrectedColumn(column, cuts=np.sort(rng.normal(0.0, 3.0, 5)))
    return list(found.values())


def rows_of_case(case: Case, rng: Rng, count: int = 20) -> list[Row]:
    """Rows as the case draws them, rows with missing and with hard cells, and of texts those with hard words."""
    rows = as_rows(case.draw(rng, count))
    names = list(rows[0])
    rows.append(dict.fromkeys(names))
    for cell in HARD_CELLS:
        rows.append({**rows[int(rng.integers(0, count))], names[int(rng.integers(0, len(names)))]: cell})
    if case.family.is_text:
        rows += [{name: " ".join(rng.choice(HARD_WORDS, 5)) for name in names} for _ in range(count)]
    return rows


def as_rows(X: Any) -> list[Row]:
    """The rows of whatever X is, by the names of their columns."""
    if isinstance(X, pa.Table):
        return list(X.to_pylist())
    dense = X.toarray() if sparse.issparse(X) else X
    return [{f"x{j}": cell for j, cell in enumerate(row)} for row in dense.tolist()]


# Names that would break or inject something where they are written without care.
HOSTILE = ["__proto__", "constructor", "'", '"', "\\", "</script><script>alert(1)</script>", "<!--", "a\nb", "\u2028",
           "عمر", "x" * 200, "${alert(1)}", "`", "*/", "toString", "\ufeff", "]]>", "&amp;"]  # fmt: skip


def hostile_model() -> Any:
    """A classifier whose columns, values and classes have these names, and the cells that it has learned."""
    rng = np.random.default_rng(0)
    cells = {name: np.array(HOSTILE)[rng.integers(0, len(HOSTILE), 100)] for name in HOSTILE}
    return BayesClassifier(tune=None).fit(pa.table(cells), np.array(HOSTILE)[rng.integers(0, 4, 100)]), cells


def aligned(model: Model, row: Row) -> Any:
    """A row as a table with the columns of the model."""
    if model.schema.names is None:
        return open_table([[np.nan if cell is None else cell for cell in row.values()]])
    return model.schema.table_as_learned(open_table([{**dict.fromkeys(model.schema.names), **row}]))
