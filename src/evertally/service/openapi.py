"""The OpenAPI document. It describes the service, not the stream, so anybody may read it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI


def describe_truthfully(app: FastAPI) -> None:
    """Takes out the answer that the framework documents for bad parameters: ours is 400, with one text."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            for operations in document["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)
            for name in ("HTTPValidationError", "ValidationError"):
                document["components"]["schemas"].pop(name, None)
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]
