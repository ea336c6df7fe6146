"""POST /v1/embeddings, /v1/rerank and /v1/audio/transcriptions: made-up numbers that are the same for the same text."""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sparkwright.gateway.model_scan import scan_for
from sparkwright.simulator import asked
from sparkwright.simulator.answers import Answers
from sparkwright.simulator.asked import ApiError, json_response

EMBEDDINGS, RERANK, TRANSCRIPTIONS = "/v1/embeddings", "/v1/rerank", "/v1/audio/transcriptions"
_WIDTH = 64


async def embeddings(answers: Answers, request: Request) -> Response:
    body = asked.parsed(await request.body(), EMBEDDINGS, "create_embedding", {"input": (str, list)})
    name = _named(answers, body.get("model"))
    given = [body["input"]] if isinstance(body["input"], str) else body["input"]
    rows = [_vector(str(one)) for one in given]
    packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": k, "embedding": _packed(row) if packed else row} for k, row in enumerate(rows)
    ]
    return json_response({"object": "list", "data": data, "model": name, "usage": _usage(answers, given)})


async def rerank(answers: Answers, request: Request) -> Response:
    body = asked.parsed(await request.body(), RERANK, "do_rerank", {"query": str, "documents": list})
    name, query = _named(answers, body.get("model")), _vector(body["query"])
    texts = [str(one) for one in body["documents"]]
    scored = sorted(((_likeness(query, _vector(text)), k) for k, text in enumerate(texts)), reverse=True)
    results = [{"index": k, "document": {"text": texts[k]}, "relevance_score": score} for score, k in scored]
    return json_response({"id": "rerank-simulated", "model": name, "usage": _usage(answers, texts), "results": results})


async def transcriptions(answers: Answers, request: Request) -> Response:
    scan, body = scan_for(request.headers.get("content-type", "")), await request.body()
    scan.feed(body)
    _named(answers, scan.name)
    return json_response({"text": f"(simulated) {len(body)} bytes of sound"})


def _named(answers: Answers, name: object) -> str:
    rules = answers.rules
    if name and name not in rules.names and not rules.any_name:
        raise ApiError(404, f"The model `{name}` does not exist.", "NotFoundError", "model")
    return str(name or rules.names[0])


def _usage(answers: Answers, texts: list[Any]) -> dict[str, int]:
    count = sum(len(answers.rules.tokenizer.encode(str(text))) for text in texts)
    return {"prompt_tokens": count, "total_tokens": count}


def _vector(text: str) -> list[float]:
    seed = b"".join(hashlib.sha256(f"{k} {text}".encode("utf-8", "replace")).digest() for k in range(_WIDTH // 32))
    values = [byte / 127.5 - 1.0 for byte in seed]
    length = math.sqrt(sum(value * value for value in values))
    return [value / length for value in values]


def _likeness(one: list[float], other: list[float]) -> float:
    return (1.0 + sum(a * b for a, b in zip(one, other, strict=True))) / 2


def _packed(row: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode("ascii")
