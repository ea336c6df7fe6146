"""Recorded requests, sent again."""

import json
from collections.abc import Mapping

import pytest

from fakes.prepared_bench import prepared_bench
from fakes.tokenizer import CountingTokenizer
from sparkwright.app.bench.prompt_corpus import prepare, replayed_paths
from sparkwright.domain.errors import UsageError
from sparkwright.domain.probed import Probed
from sparkwright.domain.run import Session
from sparkwright.domain.workload import Api, Arrival, Length, LevelPlan, Pace, Replay, Workload
from sparkwright.loadgen.recorded import with_counts
from sparkwright.loadgen.sessions import sessions

TRACE = [
    {"timestamp": 1000, "input_length": 1200, "output_length": 7, "hash_ids": [1, 2, 3]},
    {"timestamp": 1250, "input_length": 1500, "output_length": 9, "hash_ids": [1, 2, 4]},
    {"timestamp": 4000, "input_length": 600, "output_length": 3, "hash_ids": [1, 5]},
    {"timestamp": 5000, "input_length": 500, "output_length": 3, "hash_ids": [6]},
]


async def replay(
    records: list[Mapping], shape: Replay, probed: Probed | None = None, **more: object
) -> tuple[tuple[Session, ...], CountingTokenizer, tuple[str, ...]]:
    level = LevelPlan("replay", shape, **more)
    workload = Workload("test", "Test", (level,), thinking=None)
    assert replayed_paths(workload) == (shape.path,)
    tokenizer = CountingTokenizer()
    text = "\n".join(json.dumps(record) for record in records)
    found = probed or Probed("http://x", "m")
    texts = await prepare(prepared_bench(workload, found, tokenizer, {shape.path: text}))
    return sessions(level, workload, 0, texts), tokenizer, texts.doubts


def first_body(session: Session) -> str:
    return session.turns[0].head + session.turns[0].new + session.turns[0].tail


def content(session: Session) -> str:
    return json.loads(first_body(session))["messages"][-1]["content"]


async def test_a_trace_keeps_lengths_and_what_is_shared() -> None:
    """Exact prompts; two requests with the same first blocks begin with the same text, and differ after it."""
    found, tokenizer, _ = await replay(TRACE, Replay("t.jsonl"))
    assert [tokenizer.whole(first_body(one)) for one in found] == [1200, 1500, 600, 500]
    assert [one.turns[0].output_tokens for one in found] == [7, 9, 3, 3]
    assert [one.turns[0].cached_tokens for one in found] == [0, 1024, 512, 0]
    first, second, third, last = (content(one) for one in found)
    known = max(n for n in range(len(first)) if first[:n] == second[:n])
    assert tokenizer.tokens(first[:known]) >= 1024
    assert first[:1500] == third[:1500] != last[:1500]


async def test_recorded_times_are_kept_from_the_first_on() -> None:
    """Milliseconds of a trace that begins at any time."""
    found, _, _ = await replay(TRACE, Replay("t.jsonl", timed=True), pace=Pace(Arrival.RECORDED, 0))
    assert [one.at for one in found] == [0.0, 0.25, 3.0, 4.0]


async def test_without_times_the_level_paces() -> None:
    """The texts of a recording at any rate."""
    found, _, _ = await replay(TRACE, Replay("t.jsonl"), pace=Pace(Arrival.CONSTANT, 0, 2.0))
    assert [one.at for one in found] == [0.0, 0.5, 1.0, 1.5]


async def test_texts_are_sent_as_they_are() -> None:
    """Prompts, whole conversations, and a question whose answer was known as text: the new one may be as long."""
    messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Why?"}]
    said = {"conversations": [{"from": "human", "value": "How?"}, {"from": "gpt", "value": "so it is and was"}]}
    records = [{"prompt": "What?", "output_tokens": 4}, {"messages": messages}, said]
    found, _, _ = await replay(records, Replay("t.jsonl"))
    told = [json.loads(first_body(one)) for one in found]
    assert [one["messages"] for one in told] == [
        [{"role": "user", "content": "What?"}],
        messages,
        [{"role": "user", "content": "How?"}],
    ]
    assert [one["max_tokens"] for one in told] == [4, 128, 5]


async def test_the_workload_may_set_the_length_of_answers_and_how_many() -> None:
    """Both are as the level states, not as it was recorded."""
    found, _, _ = await replay(TRACE, Replay("t.jsonl", limit=2, output=Length(33, 33)))
    assert [one.turns[0].output_tokens for one in found] == [33, 33]


async def test_what_does_not_fit_is_left_out_and_named() -> None:
    """A request beyond the server's context would only be refused."""
    found, _, doubts = await replay(TRACE, Replay("t.jsonl"), Probed("http://x", "m", context=1300))
    assert len(found) == 3
    assert any(doubt.startswith("1 of 4 requests of t.jsonl are longer") for doubt in doubts)


async def test_a_completion_takes_the_texts_of_a_conversation() -> None:
    """A completion has no template: it gets the reported texts, one after the other."""
    level = LevelPlan("replay", Replay("t.jsonl"))
    workload = Workload("test", "Test", (level,), api=Api.COMPLETIONS)
    text = json.dumps({"messages": [{"role": "system", "content": "Be."}, {"role": "user", "content": "Why?"}]})
    made = prepared_bench(workload, Probed("http://x", "m"), CountingTokenizer(), {"t.jsonl": text})
    texts = await prepare(made)
    (one,) = sessions(level, workload, 0, texts)
    assert json.loads(first_body(one))["prompt"] == "Be.\nWhy?"


def test_the_number_of_requests_is_the_file_s() -> None:
    """Known before the run, for its screen: the user's file up to the limit, and the shipped one."""
    text = "\n".join(json.dumps(record) for record in TRACE)
    levels = [Replay("t.jsonl"), Replay("t.jsonl", limit=2), Replay("shipped:office.jsonl")]
    workload = Workload("test", "Test", tuple(LevelPlan(str(n), shape) for n, shape in enumerate(levels)))
    assert [level.requests for level in with_counts(workload, {"t.jsonl": text}).levels] == [4, 2, 20]


def test_times_that_are_not_there_cannot_be_kept() -> None:
    """All at once would be a burst that nobody recorded."""
    workload = Workload("test", "Test", (LevelPlan("timed", Replay("t.jsonl", timed=True)),))
    with pytest.raises(UsageError, match=r"t\.jsonl: `timed: true` needs a time in every record"):
        with_counts(workload, {"t.jsonl": '{"prompt": "When?"}'})
