"""Refused requests, with vLLM's bodies byte for byte (captures sse.json, open-routes.json)."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response


class ApiError(Exception):
    """`param` names the field; `raised` errors pass vLLM's CORS layer unmarked and are counted as 5xx there."""

    def __init__(self, status: int, message: str, kind: str, param: str | None = None, raised: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param
        self.raised = raised

    def body(self) -> dict[str, Any]:
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.status}}

    def response(self) -> Response:
        return json_response(self.body(), self.status, vary=not self.raised)


def json_response(body: Any, status: int = 200, vary: bool = True) -> Response:
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    answer = Response(text, status, media_type="application/json")
    if vary:
        answer.headers["vary"] = "Origin"
    return answer


def too_long(context: int, wanted: int, prompt: int) -> ApiError:
    """vLLM cuts the prompt at what fits plus one, so it only knows `at least` how long it is."""
    least = min(prompt, context - wanted + 1)
    quality = "at least " if prompt >= least and least == context - wanted + 1 else ""
    return ApiError(
        400,
        f"This model's maximum context length is {context} tokens. However, you requested {wanted} output tokens and "
        f"your prompt contains {quality}{least} input tokens, for a total of {quality}{least + wanted} tokens. Please "
        "reduce the length of the input prompt or the number of requested output tokens. "
        f"(parameter=input_tokens, value={least})",
        "BadRequestError",
        "input_tokens",
        raised=True,
    )


def unknown_model(name: str) -> ApiError:
    return ApiError(404, f"The model `{name}` does not exist.", "NotFoundError", "model")


def invalid(path: str, function: str, problems: list[dict[str, Any]]) -> ApiError:
    """A body that does not validate: FastAPI's errors as vLLM words them."""
    count = len(problems)
    listed = "\n".join(f"  {p}" for p in problems)
    return ApiError(
        400,
        f"{count} validation error{'s' if count > 1 else ''}:\n{listed}\n\n"
        f'  File "/opt/vllm/vllm/entrypoints/utils.py", line 40, in {function}\n    POST {path} {problems}',
        "Bad Request",
    )


def refused(message: str, param: str | None = None, value: Any = None) -> ApiError:
    tail = f" (parameter={param}, value={value})" if param else ""
    return ApiError(400, message + tail, "BadRequestError", param)
