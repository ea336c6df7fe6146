"""Counting tokens through servers that answer in different ways."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkwright.adapters.tokenizers import ANCHOR, TokenizeServer, shared_out, tokenizer
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.probed import Reply

Answer = Callable[[str, dict], object | None]
WORDS = ["One two.\n", "Three.\n", "Four five six.\n"]


class AnsweringEndpoint:
    """ports.Endpoint that answers by a function of path and body; None is 404."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.asked, self.keys = answer, [], []

    async def get(self, url: str, key: Secret | None, seconds: float) -> Reply:
        raise AssertionError("nothing is fetched")

    async def post(self, url: str, body: str, key: Secret | None, seconds: float) -> Reply:
        path, told = url.removeprefix("http://x"), json.loads(body)
        self.asked.append((path, told))
        self.keys.append(key)
        found = self.answer(path, told)
        return (
            Reply(404, body="{}")
            if found is None
            else Reply(200, body=found if isinstance(found, str) else json.dumps(found))
        )


def pieces(text: str) -> list[str]:
    """Words with the space before them, stops and line breaks apart."""
    return text.replace(" ", "\0 ").replace(".", "\0.").replace("\n", "\0\n\0").strip("\0").split("\0")


def usage_answer(body: dict) -> dict:
    text = body.get("prompt") or "".join(one["content"] for one in body["messages"])
    return {"usage": {"prompt_tokens": 7 + len(pieces(text))}}


def answer_vllm(path: str, body: dict) -> object | None:
    if path != "/tokenize":
        return usage_answer(body)
    if "messages" in body:
        return {"count": 100}
    if "prompt" not in body:
        return None
    found = pieces(body["prompt"])
    return {"count": len(found), "token_strs": [one.replace(" ", "Ġ").replace("\n", "Ċ") for one in found]}


def answer_llama(path: str, body: dict) -> object | None:
    if path == "/apply-template":
        return {"prompt": "user: " + body["messages"][0]["content"]}
    if path != "/tokenize":
        return usage_answer(body)
    if "content" not in body:
        return None
    found = pieces(body["content"])
    return (
        {"tokens": [{"id": 1, "piece": one} for one in ["▁" + found[0], *found[1:]]]}
        if body.get("with_pieces")
        else {"tokens": found}
    )


def without(form: Answer, *names: str) -> Answer:
    """The same server, which does not report the text of tokens."""

    def answer(path: str, body: dict) -> object | None:
        return form(path, {key: value for key, value in body.items() if key not in names})

    return answer


def counted_only(path: str, body: dict) -> object | None:
    found = answer_vllm(path, body)
    return {"count": found["count"]} if isinstance(found, dict) and "count" in found else found


@pytest.mark.parametrize("form", [answer_vllm, answer_llama])
async def test_many_texts_are_one_question(form: Answer) -> None:
    """A server that reports each token's text also reports which text a token belongs to."""
    server = AnsweringEndpoint(form)
    counter = await tokenizer(TokenizeServer(server, "http://x", "m", Secret("k")))
    before = len(server.asked)
    assert await counter.counts(WORDS * 20) == (4, 3, 5) * 20
    assert len(server.asked) == before + 1
    assert counter.name == "/tokenize of the server"
    assert all(key.reveal() == "k" for key in server.keys)


@pytest.mark.parametrize("form", [counted_only, without(answer_llama, "with_pieces")])
async def test_without_their_texts_tokens_are_counted_one_by_one(form: Answer) -> None:
    """More questions, the same figures: what the anchor in front takes is taken off."""
    server = AnsweringEndpoint(form)
    counter = await tokenizer(TokenizeServer(server, "http://x", "m"))
    assert await counter.counts(WORDS) == (4, 3, 5)
    assert any("Three." in json.dumps(body) and "One" not in json.dumps(body) for _, body in server.asked)


async def test_a_text_without_a_line_break_is_no_neighbour_of_another() -> None:
    """Its last token could be one with the next text's first."""
    server = AnsweringEndpoint(answer_vllm)
    counter = await tokenizer(TokenizeServer(server, "http://x", "m"))
    assert await counter.counts(["No end", "One.\n"]) == (2, 3)
    assert not any("endOne" in json.dumps(body) for _, body in server.asked)


async def test_long_lots_are_cut() -> None:
    """A question stays well under what a server takes at once."""
    server = AnsweringEndpoint(answer_vllm)
    counter = await tokenizer(TokenizeServer(server, "http://x", "m"))
    assert await counter.counts(["Word " * 5000 + "end.\n"] * 9) == (5003,) * 9
    assert max(len(json.dumps(body)) for _, body in server.asked) < 120_000


async def test_a_whole_request_is_counted_as_the_server_would_write_it() -> None:
    """vLLM takes the messages themselves; llama.cpp writes the template out; else a real request reports."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi there"}]})
    assert await (await tokenizer(TokenizeServer(AnsweringEndpoint(answer_vllm), "http://x", "m"))).asked(body) == 100
    assert await (await tokenizer(TokenizeServer(AnsweringEndpoint(answer_llama), "http://x", "m"))).asked(body) == 3
    counter = await tokenizer(TokenizeServer(AnsweringEndpoint(answer_llama), "http://x", "m"))
    assert await counter.used(body) == 9


async def test_without_tokenize_the_ratio_comes_from_usage() -> None:
    """Two questions with a known difference: the template's tokens drop out. The name reports that it is an
    estimate."""
    server = AnsweringEndpoint(
        lambda path, body: (
            None
            if path == "/tokenize"
            else {"usage": {"prompt_tokens": 50 + sum(len(m["content"]) for m in body["messages"]) // 5}}
        )
    )
    counter = await tokenizer(TokenizeServer(server, "http://x", "m"))
    assert not counter.exact
    assert counter.name.startswith("estimate, ")
    assert (await counter.counts(["a" * 1000]))[0] == pytest.approx(200, abs=2)
    assert all(body["max_tokens"] == 1 for path, body in server.asked if path != "/tokenize")


@pytest.mark.parametrize("odd", ["no json", {"usage": None}, {"usage": {"prompt_tokens": "many"}}, [1], {}])
async def test_a_server_that_reports_nothing_gets_the_usual_ratio(odd: object) -> None:
    """Four characters a token, reports it; nothing that it answers breaks the run."""
    counter = await tokenizer(TokenizeServer(AnsweringEndpoint(lambda path, body: odd), "http://x", "m"))
    assert counter.name == "estimate, 4.00 characters a token"
    assert await counter.asked('{"messages": []}') is None


async def test_a_server_that_stops_counting_is_reported() -> None:
    """It counted at first: a half-counted workload would be a wrong one."""
    server = AnsweringEndpoint(answer_vllm)
    counter = await tokenizer(TokenizeServer(server, "http://x", "m"))
    server.answer = lambda path, body: None
    with pytest.raises(NotReady, match="does not any more"):
        await counter.counts(WORDS)


@pytest.mark.parametrize(
    ("tokens", "texts", "found"),
    [
        (["Note", "Ċ", "Two", "Ġwords", "Ċ"], ["Note\n", "Two words\n"], [2, 3]),
        (["▁Note", "<0x0A>", "Two", "▁words", "<0x0A>"], ["Note\n", "Two words\n"], [2, 3]),
        (["No", "te\nTwo", "Ġwords", "Ċ"], ["Note\n", "Two words\n"], None),
        (["Note", "Ċ"], ["Note\n", "Two words\n"], None),
        (["<s>", "Note", "Ċ"], ["Note\n"], None),
    ],
)
def test_tokens_are_shared_out_or_not_at_all(tokens: list[str], texts: list[str], found: list[int] | None) -> None:
    """A token that lies over two texts, or text that is missing or too much: then nothing is guessed."""
    assert shared_out(tokens, texts) == found


async def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    """Missing, or something else: one message with its path."""
    served = TokenizeServer(AnsweringEndpoint(answer_vllm), "http://x", "m")
    (tmp_path / "tokenizer.json").write_text("{}")
    for path in (tmp_path, tmp_path / "absent.json"):
        with pytest.raises(UsageError, match=str(tmp_path)):
            await tokenizer(served, path)


def test_the_anchor_ends_a_line() -> None:
    """Every tokenizer we know cuts the text after a line break apart from it."""
    assert ANCHOR.endswith(".\n")
