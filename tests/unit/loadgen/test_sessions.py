"""Levels as requests, counted by a tokenizer with a chat template."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from fakes.prepared_bench import prepared_bench
from fakes.tokenizer import CountingTokenizer
from sparkwright.app.bench.prompt_corpus import prepare
from sparkwright.domain.probed import Probed
from sparkwright.domain.run import Session, Turn
from sparkwright.domain.workload import Agent, Api, Arrival, Length, LevelPlan, Pace, Single, Text, Workload
from sparkwright.loadgen.prompts import PromptTexts
from sparkwright.loadgen.sessions import job_pace, sessions, split_warmup

LOOP = Agent(turns=5, system=200, tools=500, first=150, each_turn=300, output=20)
PROBED = Probed("http://x", "m", continuous=True, ignore_eos=True, thinking=True)


def single(prompt: int = 300, output: int = 8, **more: object) -> Single:
    return Single(Length(prompt, prompt), Length(output, output), **more)


def plan(shape: Single | Agent, name: str = "level", **more: object) -> LevelPlan:
    return LevelPlan(name, shape, **{"requests": 3, "warmup": 1, **more})


async def prepared_texts(
    level: LevelPlan, tokenizer: CountingTokenizer | None = None, probed: Probed = PROBED, **more: object
) -> tuple[Workload, PromptTexts]:
    workload = Workload("test", "Test", (level,), **more)
    return workload, await prepare(prepared_bench(workload, probed, tokenizer or CountingTokenizer()))


def body_of(turn: Turn) -> dict:
    return json.loads(turn.head + turn.new + turn.tail)


def last_question(session: Session) -> str:
    return body_of(session.turns[-1])["messages"][-1]["content"]


@pytest.mark.parametrize("tokens", [15, 40, 60, 100, 299, 300, 301, 2048, 9000])
@pytest.mark.parametrize("kind", list(Text))
async def test_prompts_have_exactly_the_tokens_asked_for(tokens: int, kind: Text) -> None:
    """Template and all, for the shortest that there can be and for long ones."""
    level, tokenizer = plan(single(tokens, text=kind)), CountingTokenizer()
    workload, texts = await prepared_texts(level, tokenizer)
    for session in sessions(level, workload, 0, texts):
        (turn,) = session.turns
        assert tokenizer.whole(turn.head + turn.new + turn.tail) == turn.prompt_tokens == tokens


async def test_a_completion_s_prompt_counts_what_the_server_puts_in_front() -> None:
    """One begin-of-text token of the tokenizer's is a part of the prompt that was asked for."""
    level, tokenizer = plan(single(500)), CountingTokenizer()
    workload, texts = await prepared_texts(level, tokenizer, api=Api.COMPLETIONS)
    turn = sessions(level, workload, 0, texts)[-1].turns[0]
    assert tokenizer.whole(turn.head) == 500
    assert (turn.new, turn.tail) == ("", "")
    assert set(json.loads(turn.head)) >= {"model", "prompt", "max_tokens", "stream", "stream_options"}


async def test_a_body_reports_what_the_workload_pins() -> None:
    """Length, temperature, thinking, usage: what is left open differs from server to server."""
    level = plan(single())
    told = body_of(sessions(level, *(await prepared_texts(level))[:1], 0, (await prepared_texts(level))[1])[0].turns[0])
    assert told["model"] == "m"
    assert (told["max_tokens"], told["temperature"], told["stream"]) == (8, 0.0, True)
    assert told["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert told["ignore_eos"] is True
    assert told["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}


async def test_a_plain_server_is_asked_plain_questions() -> None:
    """An option that the server did not accept when it was probed is not sent to it."""
    level = plan(single())
    workload, texts = await prepared_texts(level, probed=Probed("http://x", "m"))
    told = body_of(sessions(level, workload, 0, texts)[0].turns[0])
    assert set(told) == {"model", "messages", "max_tokens", "temperature", "stream", "stream_options"}
    assert told["stream_options"] == {"include_usage": True}


async def test_thinking_can_be_left_alone() -> None:
    """`unset` sends nothing of it: the server's own default is measured."""
    level = plan(single())
    workload, texts = await prepared_texts(level, thinking=None)
    assert "chat_template_kwargs" not in body_of(sessions(level, workload, 0, texts)[0].turns[0])


async def test_no_two_prompts_begin_alike() -> None:
    """All prompts differ within 16 tokens, the least that a server caches: by number, repeat, level, seed and run."""
    level = plan(single(), requests=20)
    workload, texts = await prepared_texts(level)
    other = replace(level, name="other")
    variants = [
        sessions(level, workload, 0, texts),
        sessions(level, workload, 1, texts),
        sessions(other, workload, 0, texts),
        sessions(level, replace(workload, seed=1), 0, texts),
        sessions(level, workload, 0, replace(texts, salt="next run")),
    ]
    starts = [" ".join(last_question(one).split()[:9]) for found in variants for one in found]
    assert len(set(starts)) == len(starts) == 5 * 21


async def test_a_run_can_be_repeated_word_by_word() -> None:
    """The same seed and salt: the same bytes."""
    level = plan(single())
    workload, texts = await prepared_texts(level)
    assert sessions(level, workload, 2, texts) == sessions(level, workload, 2, texts)


async def test_lengths_and_times_stay_when_the_salt_changes() -> None:
    """Two runs send other words and are comparable: each request is as long, and comes as late."""
    shape = Single(Length(50, 900, 200), Length(1, 50))
    level = plan(shape, requests=30, pace=Pace(Arrival.POISSON, 0, 2.0))
    workload, texts = await prepared_texts(level)
    first, second = (sessions(level, workload, 0, replace(texts, salt=salt)) for salt in ("a", "b"))
    planned = [(one.turns[0].prompt_tokens, one.turns[0].output_tokens, one.at) for one in first]
    assert planned == [(one.turns[0].prompt_tokens, one.turns[0].output_tokens, one.at) for one in second]
    assert len(set(planned)) > 20
    assert {last_question(one) for one in first}.isdisjoint({last_question(one) for one in second})


async def test_warm_up_is_apart_and_marked() -> None:
    """It goes out before, in the same shape, and no row of it is counted."""
    level = plan(single(), warmup=2)
    workload, texts = await prepared_texts(level)
    before, measured = split_warmup(sessions(level, workload, 0, texts))
    assert (len(before), len(measured)) == (2, 3)
    assert all(turn.warmup for one in before for turn in one.turns)
    assert not any(turn.warmup for one in measured for turn in one.turns)
    assert [one.number for one in measured] == [0, 1, 2]


@pytest.mark.parametrize("shape", [single(output=100), replace(LOOP, output=100)])
async def test_warm_up_has_short_answers(shape: Single | Agent) -> None:
    """A slow server is not kept busy with what nobody measures; prompts are those of the level."""
    level = plan(shape)
    workload, texts = await prepared_texts(level)
    before, measured = split_warmup(sessions(level, workload, 0, texts))
    assert body_of(before[0].turns[0])["max_tokens"] == 16
    assert before[0].turns[0].prompt_tokens == measured[0].turns[0].prompt_tokens
    assert body_of(measured[0].turns[0])["max_tokens"] == 100


async def test_open_loops_have_their_times_and_warm_up_has_none() -> None:
    """Only what is measured is paced."""
    level = plan(single(), pace=Pace(Arrival.CONSTANT, 0, 2.0))
    workload, texts = await prepared_texts(level)
    before, measured = split_warmup(sessions(level, workload, 0, texts))
    assert [one.at for one in before] == [None]
    assert [one.at for one in measured] == [0.0, 0.5, 1.0]


async def test_a_cold_depth_is_one_long_prompt() -> None:
    """Context and question are sent at once, and nothing of it before."""
    level, tokenizer = plan(single(300, depth=2000)), CountingTokenizer()
    workload, texts = await prepared_texts(level, tokenizer)
    before, measured = split_warmup(sessions(level, workload, 0, texts))
    assert len(before) == 1
    turn = measured[0].turns[0]
    assert (turn.prompt_tokens, turn.cached_tokens) == (2300, 0)
    assert tokenizer.whole(turn.head + turn.new + turn.tail) == 2300


async def test_a_warm_depth_was_sent_before_to_the_token() -> None:
    """Each user's context goes out once, not counted; every request repeats it and adds a question of its own."""
    level = plan(single(300, depth=2000, warm=True), requests=5, pace=Pace(concurrency=2), warmup=0)
    tokenizer = CountingTokenizer()
    workload, texts = await prepared_texts(level, tokenizer)
    before, measured = split_warmup(sessions(level, workload, 0, texts))
    contexts = [last_question(one) for one in before]
    assert len(contexts) == 2
    assert all(body_of(one.turns[0])["max_tokens"] == 1 for one in before)
    for number, one in enumerate(measured):
        turn = one.turns[0]
        assert tokenizer.whole(turn.head + turn.new + turn.tail) == turn.prompt_tokens == 2300
        assert turn.cached_tokens == 2000
        assert last_question(one).startswith(contexts[number % 2] + "\n")
    assert len({last_question(one) for one in measured}) == 5


def history(session: Session) -> list[dict]:
    """The body of each turn, with answers of the planned length between the turns."""
    told, found = "", []
    for turn in session.turns:
        found.append(json.loads(turn.head + told + turn.new + turn.tail))
        said = json.dumps({"role": "assistant", "content": "yes" + " no" * (turn.output_tokens - 2) + "."})
        told += f"{turn.new},{said},"
    return found


@pytest.mark.parametrize("cached", [None, 0.6, 0.8, 0.95])
@pytest.mark.parametrize("cold", [False, True])
async def test_agents_turns_have_the_tokens_planned(cached: float | None, cold: bool) -> None:
    """System prompt, tools, task and every result, in this template, for any share and for the cold counterpart."""
    loop = replace(LOOP, cached=cached, cold=cold, each_turn=300)
    level, tokenizer = plan(loop), CountingTokenizer()
    workload, texts = await prepared_texts(level, tokenizer)
    session = split_warmup(sessions(level, workload, 0, texts))[1][0]
    for turn, told in zip(session.turns, history(session), strict=True):
        assert tokenizer.whole(json.dumps(told)) == turn.prompt_tokens


async def test_the_share_that_is_known_is_the_share_asked_for() -> None:
    """(prompt + answer before) / prompt: 80 % to the token's rounding, at every turn but the first."""
    level = plan(replace(LOOP, cached=0.8))
    workload, texts = await prepared_texts(level)
    turns = split_warmup(sessions(level, workload, 0, texts))[1][0].turns
    assert turns[0].cached_tokens == 0
    for before, turn in pairwise(turns):
        assert turn.cached_tokens == before.prompt_tokens + before.output_tokens
        assert turn.cached_tokens / turn.prompt_tokens == pytest.approx(0.8, abs=0.001)


async def test_a_warm_agent_repeats_itself_and_a_cold_one_never() -> None:
    """Warm: each body begins with the whole one before. Cold: tools and system prompt differ at once, same lengths."""
    warm, cold = plan(LOOP, "one"), plan(replace(LOOP, cold=True), "one cold")
    workload, texts = await prepared_texts(warm)
    known = history(split_warmup(sessions(warm, workload, 0, texts))[1][0])
    for before, now in pairwise(known):
        assert now["messages"][: len(before["messages"])] == before["messages"]
        assert now["tools"] == before["tools"]
    anew = history(split_warmup(sessions(cold, workload, 0, texts))[1][0])
    assert len({told["messages"][0]["content"][:60] for told in anew}) == LOOP.turns
    assert len({json.dumps(told["tools"])[:200] for told in anew}) == LOOP.turns
    assert all(turn.cached_tokens == 0 for turn in split_warmup(sessions(cold, workload, 0, texts))[1][0].turns)


async def test_tools_are_valid_schemas_of_the_size_asked_for() -> None:
    """The tools are those of OpenAI's interface, all parameters named and typed; the model may not call them."""
    level, tokenizer = plan(LOOP), CountingTokenizer()
    workload, texts = await prepared_texts(level, tokenizer)
    told = history(split_warmup(sessions(level, workload, 0, texts))[1][0])[0]
    bare = {key: value for key, value in told.items() if key not in ("tools", "tool_choice")}
    assert tokenizer.whole(json.dumps(told)) - tokenizer.whole(json.dumps(bare)) == LOOP.tools
    assert told["tool_choice"] == "none"
    for tool in told["tools"]:
        assert tool["type"] == "function"
        parameters = tool["function"]["parameters"]
        assert set(parameters["required"]) <= set(parameters["properties"])
        assert all("type" in one and "description" in one for one in parameters["properties"].values())


@pytest.mark.parametrize("hiding", [{"blind": True}, {"plain": True}])
async def test_tools_that_a_server_hides_are_made_up_for(hiding: dict) -> None:
    """The prompt is as long as planned, in few questions, and the run reports where those tokens are."""
    level, tokenizer = plan(LOOP), CountingTokenizer(**hiding)
    workload, texts = await prepared_texts(level, tokenizer)
    assert any("shows no tools" in doubt for doubt in texts.doubts)
    assert tokenizer.questions < 25
    session = split_warmup(sessions(level, workload, 0, texts))[1][0]
    told = history(session)[0]
    assert "tools" not in told
    assert tokenizer.whole(json.dumps(told)) == session.turns[0].prompt_tokens == 850


async def test_agents_come_in_waves_with_their_noise() -> None:
    """Next to every two counted agents run three that are not counted; the client runs five at a time."""
    level = plan(replace(LOOP, noise=3, think=1.5), requests=4, pace=Pace(concurrency=2))
    workload, texts = await prepared_texts(level)
    before, measured = split_warmup(sessions(level, workload, 0, texts))
    assert [len(one.turns) for one in before] == [1]
    assert [one.counted for one in measured] == [False] * 3 + [True] * 2 + [False] * 3 + [True] * 2
    assert [one.number for one in measured if one.counted] == [0, 1, 2, 3]
    assert len({one.number for one in measured}) == 10
    assert job_pace(level).concurrency == 5
    assert [turn.think for turn in measured[0].turns] == [0.0, 1.5, 1.5, 1.5, 1.5]
    assert [turn.answer for turn in measured[0].turns] == [True] * 4 + [False]


async def test_a_request_more_than_is_counted_is_made_up_for() -> None:
    """A server whose /tokenize and usage differ by a constant is believed in its usage."""
    level, tokenizer = plan(single(300)), CountingTokenizer(more=-1)
    workload, texts = await prepared_texts(level, tokenizer)
    turn = sessions(level, workload, 0, texts)[0].turns[0]
    assert tokenizer.whole(turn.head + turn.new + turn.tail) + tokenizer.more == 300


async def test_estimates_and_silence_are_reported() -> None:
    """Nothing that is not known is passed off as known."""
    level = plan(single(300))
    _, texts = await prepared_texts(level, CountingTokenizer(exact=False))
    assert not texts.exact
    _, texts = await prepared_texts(level, CountingTokenizer(dumb=True))
    assert any("does not report the tokens" in doubt for doubt in texts.doubts)
    _, texts = await prepared_texts(level, Merging())
    assert any("have not the tokens of their pieces" in doubt for doubt in texts.doubts)
    _, texts = await prepared_texts(level)
    assert (texts.exact, texts.doubts) == (True, ())


class Merging(CountingTokenizer):
    """A tokenizer that makes one token of a line's end and what follows it: no sum of pieces is right."""

    def tokens(self, text: str) -> int:
        return super().tokens(text) - text.count("\n") // 3
