"""Servers that do not repeat themselves, and models that follow nothing: what the real vLLM and SGLang answered."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkwright.app.bench.evaluate import skip_reason
from sparkwright.domain.evaluation import ProbeOutcome, ProbeState
from sparkwright.domain.probed import Reply
from sparkwright.evals.catalog import PROBES
from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, Token, read
from sparkwright.evals.text import unjoined
from unit.evals.playing import failed, outcomes
from unit.evals.scripted import REFUSED, played, streamed, whole_reply
from unit.simulator.inprocess import MakeClient

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "evals" / "recorded.json").read_text())
JOINED: list[dict[str, Any]] = RECORDED["joined"]
(TWICE,) = RECORDED["unsteady"]  # one greedy prompt, asked twice of one vLLM with random weights
CUT: list[dict[str, Any]] = RECORDED["cut"]  # a forced call that SGLang's random weights never ended
LESS = [text if number % 7 else "" for number, text in enumerate(TWICE["tokens"][0])]
NEVER_ENDED = '<tool_call>\n{"name": "find_notebook", "arguments": { ' + " \n" * 200


def probe_answer(one: dict[str, Any], text: str) -> ProbeAnswer:
    tokens = tuple(Token(token.encode(), -0.5) for token in one["tokens"])
    return ProbeAnswer(200, text, finish="length", tokens=tokens, usage={"completion_tokens": len(tokens)})


@pytest.mark.parametrize("one", JOINED, ids=lambda one: one["engine"])
def test_tokens_of_real_engines_join(one: dict[str, Any]) -> None:
    """Special tokens that are not shown, parts of characters as nothing or U+FFFD: no fault; a lost letter is one."""
    text = one["text"]
    assert unjoined(probe_answer(one, text)) == ""
    assert unjoined(probe_answer(one, text.strip())) == ""
    at = next(place for place in range(len(text) // 2, len(text)) if text[place : place + 2].isalnum())
    for damaged in (text[:at] + text[at + 1 :], text[:at] + text[at - 4 :], text[:-9], text[9:]):
        assert "do not join" in unjoined(probe_answer(one, damaged))


def test_bytes_of_a_character_are_joined() -> None:
    """A character of several tokens, with the bytes that OpenAI's field is for; and the token that ends the answer."""
    parts = [list("漢".encode())[:2], list("漢".encode())[2:], list(b"<|im_end|>")]
    rows = [{"token": "\ufffd", "bytes": part, "logprob": -0.1, "top_logprobs": []} for part in parts]
    choice = {"message": {"content": "漢"}, "finish_reason": "stop", "logprobs": {"content": rows}}
    usage = {"completion_tokens": 3}
    found = read(ProbeRequest({}), Reply(200, body=json.dumps({"choices": [choice], "usage": usage})))
    assert unjoined(found) == ""
    assert found.tokens[0].text != found.tokens[1].text


def unsteady(ask: ProbeRequest, number: int, lossy: bool = False, refuses: bool = False) -> Reply:
    """Never the same twice in a row, as the recorded server under another batch."""
    if "logprobs" in ask.body and refuses:
        return REFUSED
    tokens = [*TWICE["tokens"][number % 2], str(number)]
    if ask.streamed:
        texts = [*LESS, str(number)] if lossy else tokens
        return streamed(tokens if not lossy else [*TWICE["tokens"][0], str(number)], "logprobs" in ask.body, texts)
    return whole_reply({"content": "".join(tokens)}, tokens=tokens if "logprobs" in ask.body else ())


async def test_a_stream_is_not_blamed_for_the_server() -> None:
    """Answers that part from themselves: the stream is compared with its own tokens, and that is in the detail."""
    found = await played("stream", unsteady)
    assert (found.state, "own tokens" in found.detail) == (ProbeState.PASSED, True), found


async def test_a_stream_is_not_blamed_for_its_place_in_a_batch() -> None:
    """The real vLLM answered the second of two simultaneous requests in another way, each time the same."""
    first, second = ("".join(tokens) for tokens in TWICE["tokens"])

    def replied(text: str, ask: ProbeRequest) -> Reply:
        return streamed([text]) if ask.streamed else whole_reply({"content": text})

    found = await played("stream", lambda ask, _: replied(first, ask), lambda ask, _: replied(second, ask))
    assert found.state is ProbeState.PASSED, found


async def test_lost_pieces_are_found_all_the_same() -> None:
    """A stream that loses pieces on a server that does not repeat itself."""
    found = await played("stream", lambda ask, number: unsteady(ask, number, lossy=True))
    assert (found.state, "do not join" in found.detail) == (ProbeState.FAILED, True), found


async def test_what_cannot_be_judged_is_no_pass() -> None:
    """Nothing shows which of two answers is right without log-probabilities: skipped, with the reason."""
    found = await played("stream", lambda ask, number: unsteady(ask, number * 3 + number // 2, refuses=True))
    assert (found.state, "cannot be judged: prose" in found.detail) == (ProbeState.SKIPPED, True), found


async def test_a_stop_string_of_another_answer() -> None:
    """The string is of an answer that does not come again: neither kept nor ignored."""

    def other(ask: ProbeRequest, number: int) -> Reply:
        return streamed(f"{number} " * 40) if ask.streamed else whole_reply({"content": f"{number} " * 40})

    found = await played("stop", other)
    assert (found.state, "another answer" in found.detail) == (ProbeState.SKIPPED, True), found


@pytest.mark.parametrize("name", ("batch", "cached"))
async def test_answers_that_part_at_once(name: str) -> None:
    """Answers that part at the first word, without log-probabilities, are a fault only if the server repeats itself
    alone."""

    def sampled(ask: ProbeRequest, number: int) -> Reply:
        return REFUSED if "logprobs" in ask.body else whole_reply({"content": f"{number} is the number"})

    found = await played(name, sampled)
    assert (found.state, "does not repeat itself" in found.detail) == (ProbeState.SKIPPED, True), found
    first = {"batch": range(1, 6), "cached": (1, 2, 6)}[name]

    def mixed_up(ask: ProbeRequest, number: int) -> Reply:
        if "logprobs" in ask.body:
            return REFUSED
        alone = name == "batch" and (number in first or number > 22)
        return whole_reply({"content": "one" if alone or number in first else "two"})

    assert (await played(name, mixed_up)).state is ProbeState.FAILED


async def test_a_call_that_is_never_streamed_twice_alike() -> None:
    """Other white space each time, but the same call: nothing is lost; a comma that is missing is."""

    def spaced(ask: ProbeRequest, number: int, comma: str = ",") -> Reply:
        text = ask.body["messages"][0]["content"]
        name, wanted = text.split()[3], json.loads(text.split("arguments: ")[1])
        arguments = json.dumps(wanted, indent=number).replace(",", comma if ask.streamed else ",")
        call = {"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}}
        if not ask.streamed:
            return whole_reply({"content": None, "tool_calls": [call]}, "tool_calls")
        event = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
        return Reply(200, body=f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n")

    good = await played("tool-stream", spaced)
    assert (good.state, "compared by its values" in good.detail) == (ProbeState.PASSED, True), good
    assert (await played("tool-stream", lambda ask, number: spaced(ask, number, ""))).state is ProbeState.FAILED


def cut_reply(number: int) -> Reply:
    if number < len(CUT):
        return Reply(200, body=json.dumps(CUT[number]["body"]))
    return whole_reply({"content": NEVER_ENDED})


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(("plain", "state"), (("gibberish", ProbeState.SKIPPED), ("Lantern", ProbeState.FAILED)))
async def test_an_answer_without_end(number: int, plain: str, state: ProbeState) -> None:
    """Random weights fill a forced call with white space: no evidence. A model that follows would have ended."""

    def answer(ask: ProbeRequest, _: int) -> Reply:
        if "tools" not in ask.body:
            return whole_reply({"content": plain}, "stop")
        return whole_reply({"content": "Good."}, "stop") if ask.body["tool_choice"] == "none" else cut_reply(number)

    found = await played("tool-choice", answer)
    assert found.state is state, found
    assert state is ProbeState.FAILED or "follows no plain instruction" in found.detail


async def test_an_ignored_choice_is_found_of_any_model() -> None:
    """Free text up to the limit: llama.cpp with random weights and a template without tools."""
    text = "".join(TWICE["tokens"][0])
    for name in ("tool-choice", "json-schema"):
        found = await played(name, lambda ask, _: streamed([text]) if ask.streamed else whole_reply({"content": text}))
        assert found.state is ProbeState.FAILED, found


async def test_json_without_end() -> None:
    """The JSON is judged like a forced call's."""
    never = '{"color": "red",' + " \n" * 200
    found = await played(
        "json-schema", lambda ask, _: whole_reply({"content": never}) if not ask.streamed else streamed(never)
    )
    assert (found.state, "no end within" in found.detail) == (ProbeState.SKIPPED, True), found


async def test_a_part_of_the_stop_string() -> None:
    """An answer that is cut within the stop string: its beginning must not be there."""

    def answer(ask: ProbeRequest, _: int) -> Reply:
        text = "".join(TWICE["tokens"][0])
        word = next(iter(ask.body.get("stop", ())), "")
        shown = text[: text.index(word) + 2] if word else text
        return streamed(shown) if ask.streamed else whole_reply({"content": shown}, "stop" if word else "length")

    found = await played("stop", answer)
    assert (found.state, "a part of the stop string" in found.detail) == (ProbeState.FAILED, True), found


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
async def test_an_unsteady_server_fails_nothing(make_client: MakeClient, seed: int) -> None:
    """All probes against a simulator whose free text is never the same twice, at near ties."""
    found = await outcomes(make_client, set(), "wrong@unsteady", seed)
    assert (failed(found), set(found)) == (set(), set(PROBES))
    assert "cannot be judged" in found["stop"].detail


def test_why_a_probe_is_skipped() -> None:
    """Down to the one that failed, not only its neighbour."""
    failed_one = ProbeOutcome("follows", ProbeState.FAILED)
    skipped = ProbeOutcome("tool-call", ProbeState.SKIPPED, skip_reason("follows", failed_one))
    assert skip_reason("tool-call", skipped) == "needs tool-call, which needs follows: failed"
