"""Servers that a test writes: what each request is answered, in the shapes of Chat Completions."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from sparkwright.app.bench.parsers import play_probe
from sparkwright.domain.evaluation import ProbeOutcome
from sparkwright.domain.probed import Reply
from sparkwright.evals.catalog import entries
from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, read
from unit.evals.playing import probe_inputs

Body = dict[str, Any]
Answer = Callable[[ProbeRequest, int], Reply]


def logprob_rows(tokens: Sequence[str], lead: float = 0.1) -> list[Body]:
    """Log-probabilities as vLLM sends them: the bytes of a part of a character are none."""
    top = [{"token": "x", "logprob": -0.5}, {"token": "y", "logprob": -0.5 - lead}]
    return [{"token": t, "logprob": -0.5, "bytes": list(t.encode()), "top_logprobs": top} for t in tokens]


def whole_reply(message: Body, finish: str = "length", tokens: Sequence[str] = (), lead: float = 0.1) -> Reply:
    choice: Body = {"message": message, "finish_reason": finish}
    choice |= {"logprobs": {"content": logprob_rows(tokens, lead)}} if tokens else {}
    usage = {"prompt_tokens": 9, "completion_tokens": len(tokens) or 9, "total_tokens": 9 + (len(tokens) or 9)}
    return Reply(200, body=json.dumps({"choices": [choice], "usage": usage}))


def streamed(pieces: Sequence[str], logprobs: bool = False, texts: Sequence[str] | None = None) -> Reply:
    """One event a token. texts: of the events, where that is not the tokens' own text."""
    events: list[Body] = []
    for token, text in zip(pieces, texts or pieces, strict=True):
        choice: Body = {"delta": {"content": text}}
        events.append({"choices": [choice | ({"logprobs": {"content": logprob_rows([token])}} if logprobs else {})]})
    events.append({"choices": [{"delta": {}, "finish_reason": "length"}]})
    return Reply(200, body="".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n")


REFUSED = Reply(400, body='{"error": {"message": "logprobs are not served"}}')


async def played(name: str, answer: Answer, second: Answer | None = None) -> ProbeOutcome:
    """One probe against a server that answers its n-th request so. second: of one that comes while one is answered."""
    asked = under_way = 0

    async def send(ask: ProbeRequest) -> ProbeAnswer:
        nonlocal asked, under_way
        asked, under_way = asked + 1, under_way + 1
        reply = (second if second and under_way > 1 else answer)(ask, asked)
        await asyncio.sleep(0)
        under_way -= 1
        return read(ask, reply)

    return await play_probe(next(entry for entry in entries() if entry.name == name), probe_inputs(), send)
