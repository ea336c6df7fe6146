"""Prompts that are kept for a start: which take the place of others, which go first, and what is forgotten."""

import json
from typing import Any

import pytest

from sparkwright.gateway import prompts
from sparkwright.gateway.prompts import BLOCK, ClientPrompt, KeptPrompt, PromptShelf, best_first, prompt_to_keep

CHAT, TEXT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"
SYSTEM = "You are a careful assistant. " * 200


def chat_prompt(*turns: str, path: str = CHAT, **more: Any) -> ClientPrompt:
    roles = ("user", "assistant")
    messages = [{"role": "system", "content": SYSTEM}]
    messages += [{"role": roles[n % 2], "content": turn} for n, turn in enumerate(turns)]
    found = prompt_to_keep(path, json.dumps({"model": "m", "messages": messages, **more}).encode())
    assert found
    return found


def long_text(letter: str, blocks: int) -> str:
    return letter * (blocks * BLOCK)


def test_the_next_turn_has_the_same_beginning() -> None:
    """It does not matter what is said of the answer, or where. Another model or salt has another beginning."""
    first, second = (
        chat_prompt(long_text("a", 3)),
        chat_prompt(long_text("a", 3), long_text("b", 2), "and?", temperature=1, stream=True),
    )
    assert second.blocks[: len(first.blocks)] == first.blocks and len(second.blocks) > len(first.blocks)
    assert chat_prompt(long_text("a", 3), model="other").blocks[0] != first.blocks[0]
    assert chat_prompt(long_text("a", 3), cache_salt="x").blocks[0] != first.blocks[0]
    turned = {"messages": json.loads(first.body)["messages"], "model": "m"}
    again = prompt_to_keep(CHAT, json.dumps(turned).encode())
    assert again and again.blocks == first.blocks


@pytest.mark.parametrize(
    ("path", "body", "limit"),
    [
        (CHAT, {"messages": [{"role": "user", "content": long_text("a", 3)}], "tools": [{"type": "x"}]}, "max_tokens"),
        (TEXT, {"prompt": long_text("a", 3)}, "max_tokens"),
        (MESSAGES, {"system": long_text("a", 3), "messages": [{"role": "user", "content": "go"}]}, "max_tokens"),
        (RESPONSES, {"instructions": long_text("a", 3), "input": "go"}, "max_output_tokens"),
    ],
)
def test_it_is_asked_for_one_token(path: str, body: dict[str, Any], limit: str) -> None:
    """The prompt stays as it is; what was wanted of the answer does not matter."""
    given = {"model": "m", **body, "stream": True, "n": 4, "max_tokens": 900, "logprobs": 5, "stop": ["x"]}
    found = prompt_to_keep(path, json.dumps(given).encode())
    assert found
    again = json.loads(found.body)
    assert again.pop(limit) == 1 and again.pop("stream") is False and again.pop("temperature") == 0
    again.pop("store", None)
    assert again == {"model": "m", **body}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, b'{"model": "m", "messages": [{"role": "user", "content": "short"}]}'),
        (CHAT, b"no json at all" * 1000),
        (CHAT, b"[" * 100_000),
        (CHAT, b'["a list"]'),
        ("/v1/embeddings", json.dumps({"input": long_text("a", 4)}).encode()),
        (RESPONSES, json.dumps({"previous_response_id": "r", "input": long_text("a", 4)}).encode()),
        (CHAT, json.dumps({"messages": long_text("a", 3000)}).encode()),
    ],
)
def test_what_is_not_worth_it_is_not_kept(path: str, body: bytes) -> None:
    """Short, unreadable, too long, of another kind, or a part of what only the engine has."""
    assert prompt_to_keep(path, body) is None


def test_a_conversation_is_kept_once() -> None:
    """Its last turn takes the place of those before; one that branches off stays, and an old turn asked again does not
    replace the newest."""
    shelf = PromptShelf(10**9, 3600.0)
    one, two = chat_prompt(long_text("a", 3)), chat_prompt(long_text("a", 3), long_text("b", 2), long_text("c", 1))
    branch = chat_prompt(long_text("a", 3), long_text("x", 2), long_text("y", 1))
    for at, prompt in enumerate((one, two, branch, one)):
        shelf.add(prompt, 1000, float(at))
    kept = shelf.sort(10.0)
    assert {row.prompt.blocks for row in kept} == {two.blocks, branch.blocks}
    assert max(kept[0].uses) == 4, "the beginning was asked four times"
    assert max(row.at for row in kept) == 3.0


def test_what_many_share_goes_first() -> None:
    """One request brings the common beginning back; the rest of it counts by its own uses."""
    shelf = PromptShelf(10**9, 3600.0)
    for n in range(20):
        shelf.add(chat_prompt(long_text(chr(ord("a") + n), 2)), 2000, float(n))
    long = chat_prompt(long_text("Z", 40))
    for at in range(30, 33):
        shelf.add(long, 30_000, float(at))
    kept = shelf.sort(40.0)
    assert kept[0].prompt.blocks == long.blocks or kept[1].prompt.blocks == long.blocks
    assert len(kept) == 21


def test_there_is_an_end_of_size_and_time() -> None:
    """The least used has no room; what nobody has used for the lifetime goes, with its counts."""
    size = len(chat_prompt(long_text("a", 4)).body)
    shelf = PromptShelf(2 * size + 100, 100.0)
    for at, letter in ((0.0, "a"), (50.0, "b"), (51.0, "b"), (52.0, "c"), (53.0, "c"), (54.0, "d")):
        shelf.add(chat_prompt(long_text(letter, 4)), 1, at)
    kept = shelf.sort(60.0)
    assert {row.prompt.blocks for row in kept} == {chat_prompt(long_text(n, 4)).blocks for n in "bc"}
    assert shelf.sort(152.5) == shelf.sort(152.5) and len(shelf) == 1
    assert shelf.sort(1000.0) == () and not shelf._uses


def test_counts_outlive_the_process() -> None:
    """Stored prompts are loaded with their uses, and are found again by the next request."""
    shelf = PromptShelf(10**9, 3600.0)
    prompt = chat_prompt(long_text("a", 4))
    for at in range(5):
        shelf.add(prompt, 9, float(at))
    later = PromptShelf(10**9, 3600.0)
    later.load(shelf.sort(5.0))
    later.add(prompt, 9, 6.0)
    (kept,) = later.sort(7.0)
    assert set(kept.uses) == {6} and kept.at == 6.0


def test_many_long_prompts_are_sorted_with_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the time of the thread that does it: 256 prompts of 4 MiB, each looked at twice and not once for each
    other."""
    worth, looks = prompts._worth, []

    def counted(one: KeptPrompt, covered: set[int] | frozenset[int]) -> tuple[float, int]:
        looks.append(one)
        return worth(one, covered)

    monkeypatch.setattr(prompts, "_worth", counted)
    rows = [
        KeptPrompt(ClientPrompt(CHAT, tuple(range(n * 10**6, n * 10**6 + 2048))), 0.0, 1, tuple(range(2048, 0, -1)), 1)
        for n in range(256)
    ]
    assert len(best_first(rows)) == 256
    assert len(looks) == 2 * 256


def test_a_clock_that_jumps_keeps_no_text_beyond_its_time() -> None:
    """Guards the promise of `remember_hours`: a year ahead and back again, a text is forgotten an hour after its use.

    One that jumps ahead costs the texts, and nothing else.
    """
    year, hour = 365 * 86_400.0, 3600.0
    shelf = PromptShelf(1 << 20, hour)
    shelf.add(chat_prompt("hello"), 100, year)
    assert [one.at for one in shelf.sort(0.0)] == [0.0]
    assert len(shelf.sort(hour)) == 1 and shelf.sort(hour + 1.0) == ()
    shelf.add(chat_prompt("hello"), 100, 0.0)
    assert shelf.sort(year) == () and len(shelf) == 0
