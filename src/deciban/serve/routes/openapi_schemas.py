"""What answers look like, as OpenAPI describes it: the same for every model."""

from typing import Any

# A part of a description.
Json = dict[str, Any]

LABEL_SCHEMA: Json = {"type": ["string", "number", "boolean", "null"]}
PROBABILITY_SCHEMA: Json = {"type": "number", "minimum": 0, "maximum": 1.000001}


def _object(properties: Json, optional: tuple[str, ...] = (), more: bool = False) -> Json:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


def _rows(row: Json) -> Json:
    text: Json = {"type": "string"}
    rows: Json = {"type": "array", "items": row}
    return _object({"model": text, "rows": rows, "ignored": {"type": "array", "items": text}}, ("ignored",))


COMMON_SCHEMAS: Json = {
    "Problem": _object(
        {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "place": {"type": "string"},
            "cause": {"type": "string"},
            "remedy": {"type": "string"},
        }
    ),
    "Predictions": _rows(
        _object(
            {
                "id": {"type": "string"},
                "predicted": LABEL_SCHEMA,
                "probability": PROBABILITY_SCHEMA,
                "probabilities": {"type": "object", "additionalProperties": PROBABILITY_SCHEMA},
            },
            ("id",),
        )
    ),
    "Explanations": _rows(
        _object(
            {
                "id": {"type": "string"},
                "predicted": LABEL_SCHEMA,
                "posterior": {"type": "object", "additionalProperties": PROBABILITY_SCHEMA},
                "against": LABEL_SCHEMA,
                "evidence": {"type": "array", "items": {"type": "object"}},
                "sum": {"type": ["number", "null"]},
                "words": {"type": "object"},
                "shared_out": {"type": "object"},
            },
            ("id", "sum", "words", "shared_out"),
        )
    ),
    "Decisions": _rows(
        _object(
            {
                "id": {"type": "string"},
                "decision": LABEL_SCHEMA,
                "risk": {"type": "number"},
                "runner_up": LABEL_SCHEMA,
                "runner_up_risk": {"type": "number"},
            },
            ("id",),
        )
    ),
    "Results": _rows(
        _object(
            {
                "id": {"type": "string"},
                "result": {"enum": ["learned", "already learned", "relearned", "forgotten", "not known"]},
            },
            ("id",),
        )
    ),
    "Model": {
        "type": "object",
        "required": ["model", "version", "target", "rows", "classes", "columns", "tuning", "learning", "loaded", "age"],
    },
    "Models": _object(
        {
            "models": {
                "type": "array",
                "items": _object(
                    {
                        "name": {"type": "string"},
                        "model": {"type": ["string", "null"]},
                        "problem": {"type": "string"},
                    }
                ),
            }
        }
    ),
    "Ready": _object(
        {
            "ready": {"type": "boolean"},
            "problems": {
                "type": "array",
                "items": _object({"model": {"type": "string"}, "problem": {"type": "string"}}, ("model",)),
            },
        }
    ),
}
