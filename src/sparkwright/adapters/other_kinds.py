"""One real answer of a model that does not chat: its request, and what its answer has to hold."""

import io
import json
import math
import wave
from typing import Any

from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.recipe import ModelKind
from sparkwright.domain.values import dataclass

_BOUNDARY = "sparkwright-probe"
_RATE, _SECONDS = 16000, 0.5
_DOCUMENTS = ("A spark plug ignites fuel.", "Bread is baked in an oven.")


@dataclass(frozen=True, slots=True)
class Probe:
    path: str
    kind: str
    body: bytes


def probe_of(kind: ModelKind, model: str) -> Probe:
    """Raises KeyError for a chat."""
    asked: dict[ModelKind, tuple[str, dict[str, Any]]] = {
        ModelKind.EMBEDDING: ("/v1/embeddings", {"model": model, "input": _DOCUMENTS[0]}),
        ModelKind.RERANK: ("/v1/rerank", {"model": model, "query": "ignition", "documents": list(_DOCUMENTS)}),
    }
    if kind is ModelKind.TRANSCRIPTION:
        return Probe("/v1/audio/transcriptions", f"multipart/form-data; boundary={_BOUNDARY}", _form(model))
    path, body = asked[kind]
    return Probe(path, "application/json", json.dumps(body).encode())


def read_proof(kind: ModelKind, text: str) -> tuple[str, int]:
    """The answer as text, and the tokens of its prompt. Raises ValueError for an answer of another kind."""
    try:
        tree = read_json(text)
        usage = tree.get("usage") or {}
        tokens = int(usage.get("prompt_tokens") or usage.get("total_tokens") or 0)
        if kind is ModelKind.EMBEDDING:
            return _embedding(tree["data"][0]["embedding"]), tokens
        if kind is ModelKind.RERANK:
            return _order(tree["results"]), tokens
        return f"transcribed: {str(tree['text'])[:80]!r}", tokens
    except (AttributeError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _embedding(values: list[float]) -> str:
    length = math.sqrt(sum(float(value) ** 2 for value in values))
    if not math.isfinite(length) or not length:
        raise ValueError(f"an embedding of length {length:g}")
    return f"an embedding of {len(values)} numbers"


def _order(results: list[dict[str, Any]]) -> str:
    scores = {int(one["index"]): float(one["relevance_score"]) for one in results}
    if set(scores) != set(range(len(_DOCUMENTS))) or not all(map(math.isfinite, scores.values())):
        raise ValueError(f"scores {str(scores)[:80]}")
    return f"an order of {len(scores)} documents"


def _form(model: str) -> bytes:
    """A form with half a second of silence."""
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE)
        file.writeframes(bytes(int(_RATE * _SECONDS) * 2))
    name = model.replace('"', "").replace("\r", "").replace("\n", "")
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="model"\r\n\r\n{name}\r\n--{_BOUNDARY}\r\n'
    head += 'Content-Disposition: form-data; name="file"; filename="probe.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    return head.encode() + sound.getvalue() + f"\r\n--{_BOUNDARY}--\r\n".encode()
