"""Answers of models that do not chat, as a server may send them."""

import json

import pytest

from sparkwright.adapters.other_kinds import probe_of, read_proof
from sparkwright.domain.recipe import ModelKind
from unit.for_each import for_each

EMBEDDING, RERANK, SOUND = ModelKind.EMBEDDING, ModelKind.RERANK, ModelKind.TRANSCRIPTION


def rerank_json(*scores: object) -> str:
    return json.dumps({"results": [{"index": k, "relevance_score": score} for k, score in enumerate(scores)]})


@for_each(
    "kind, text, said",
    [
        (
            EMBEDDING,
            '{"data": [{"embedding": [0.6, 0.8]}], "usage": {"prompt_tokens": 4}}',
            "an embedding of 2 numbers",
        ),
        (RERANK, rerank_json(0.9, 0.1), "an order of 2 documents"),
        (SOUND, '{"text": ""}', "transcribed: ''"),
    ],
)
def test_a_real_answer_of_each_kind_is_proof(kind: ModelKind, text: str, said: str) -> None:
    """Guards that silence has no words, and that an answer without usage counts none."""
    assert read_proof(kind, text) == (said, 4 if kind is EMBEDDING else 0)


@for_each(
    "kind, text",
    [
        *((kind, text) for kind in (EMBEDDING, RERANK, SOUND) for text in ("", "[]", "{}", "null", "[" * 9000)),
        (EMBEDDING, '{"data": [{"embedding": [0.0, 0.0]}]}'),
        (EMBEDDING, '{"data": [{"embedding": [NaN, 1.0]}]}'),
        (EMBEDDING, '{"data": [{"embedding": "AAAA"}]}'),
        (RERANK, rerank_json(0.9)),
        (RERANK, rerank_json(0.9, float("inf"))),
    ],
)
def test_what_is_no_answer_proves_nothing(kind: ModelKind, text: str) -> None:
    """Guards readiness: zeros, NaN, a missing document or another shape is not ready, and nothing else is raised."""
    with pytest.raises(ValueError):
        read_proof(kind, text)


def test_a_name_cannot_break_out_of_the_form() -> None:
    """Guards the one probe that is no JSON."""
    probe = probe_of(SOUND, 'a"\r\n--sparkwright-probe--')
    assert probe.body.count(b"--sparkwright-probe\r\n") == 2 and b"\r\n\r\na--sparkwright-probe--\r\n" in probe.body
