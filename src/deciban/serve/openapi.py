"""The description of the service (OpenAPI 3.1), made from the columns of its models."""

from typing import Any

from deciban.serve.service import Service


def description(service: Service) -> dict[str, Any]:
    return {"openapi": "3.1.0", "info": {"title": "deciban", "version": "0"}, "paths": {}}
