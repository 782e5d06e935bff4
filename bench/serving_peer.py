"""What people serve today: FastAPI with a pipeline of scikit-learn, answering just what `deciban serve` answers.

It is run by bench/serving.py, with the pickled pipeline in PEER_MODEL. Handlers are `async def`, which FastAPI answers
faster than plain ones, and what is expected of a row is declared, as its documents advise.
"""

import os
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
from fastapi import FastAPI
from pydantic import BaseModel, create_model

pipeline, columns = pickle.loads(Path(os.environ["PEER_MODEL"]).read_bytes())
labels = pipeline.classes_.tolist()
cells: dict[str, Any] = {name: (kind | None, None) for name, kind in columns.items()}
Row = create_model("Row", **cells)


class Rows(BaseModel):
    """The body of a request."""

    rows: list[Row]  # type: ignore[valid-type]  # it is made of the columns


app = FastAPI()


@app.post("/predict")
async def predict(body: Rows) -> dict[str, Any]:
    """The most probable class of each row, and the probability of all."""
    frame = pd.DataFrame([row.model_dump() for row in body.rows])  # type: ignore[attr-defined]
    posterior = pipeline.predict_proba(frame)
    best = posterior.argmax(axis=1)
    return {
        "model": "1",
        "rows": [
            {"predicted": labels[k], "probability": line[k], "probabilities": dict(zip(labels, line, strict=True))}
            for k, line in zip(best.tolist(), posterior.tolist(), strict=True)
        ],
    }


@app.get("/health/ready")
async def ready() -> dict[str, bool]:
    """Whether it answers."""
    return {"ready": True}
