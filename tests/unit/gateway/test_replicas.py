"""The choice among replicas: by what each has cached, and by its load."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.gateway import replicas
from sparkwright.gateway.replicas import (
    BLOCK,
    MOST_BLOCKS,
    MOST_BODY,
    KnownBeginnings,
    PromptBlocks,
    Replica,
    choose,
    most_under_way,
    prompt_of,
)

SYSTEM = {"role": "system", "content": "You repair programs. " * 500}
TASK = {"role": "user", "content": "The tests of the parser fail. " * 20}


def request_body(*messages: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"messages": messages, "model": "m", **more}).encode()


def messages_after(number: int, task: dict[str, Any] = TASK) -> list[dict[str, Any]]:
    """A conversation after so many turns."""
    said = ({"role": role, "content": f"{role} {n} " * 60} for n in range(number) for role in ("assistant", "tool"))
    return [SYSTEM, task, *said]


def known_to(name: str, *bodies: bytes) -> KnownBeginnings:
    known = KnownBeginnings()
    known.keep([Replica("a"), Replica("b")])
    for one in bodies:
        known.learn(name, prompt_of(one).blocks)
    return known


def test_a_conversation_begins_as_before_whatever_is_added() -> None:
    """Guards that turn 5 is seen to contain turn 4, wherever the client puts its other settings."""
    before, now = (
        prompt_of(request_body(*messages_after(4))),
        prompt_of(request_body(*messages_after(5), temperature=0.1, stream=True)),
    )
    assert now.blocks[: len(before.blocks) - 1] == before.blocks[:-1] and len(now.blocks) > len(before.blocks)
    assert now.opening == before.opening
    assert prompt_of(request_body(*messages_after(5, {"role": "user", "content": "x"}))).opening != now.opening


@pytest.mark.parametrize(
    "one",
    [
        {"prompt": "words " * 400},
        {"prompt": [1, 2, 3] * 400},
        {"input": "words " * 400, "instructions": "be brief"},
        {"input": [{"role": "user", "content": "words " * 400}]},
        {"system": [{"type": "text", "text": "words " * 400}], "messages": [{"role": "user", "content": "x"}]},
        {"tools": [{"name": "t" * 900}], "messages": [{"role": "user", "content": "x"}]},
        {"messages": {"role": "user", "content": "words " * 400}},
    ],
)
def test_every_form_has_a_prompt(one: dict[str, Any]) -> None:
    """Guards completions, responses and Anthropic's messages; tools and system text count wherever they stand."""
    found = prompt_of(json.dumps(one).encode())
    assert found.blocks and found.opening
    assert prompt_of(json.dumps(dict(reversed(one.items()))).encode()) == found


@pytest.mark.parametrize("other", [{"model": "adapter"}, {"cache_salt": "tenant"}])
def test_what_divides_an_engine_s_cache_divides_prompts(other: dict[str, str]) -> None:
    """Guards adapters and salts: their text is cached apart."""
    assert not {*prompt_of(request_body(*messages_after(3))).blocks} & {
        *prompt_of(request_body(*messages_after(3), **other)).blocks
    }


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps).map(str.encode)
)
def test_whatever_comes_is_a_prompt_or_none(data: bytes) -> None:
    """Guards that nothing a client sends fails here: its engine says what is wrong with it."""
    prompt_of(data)
    prompt_of(b'{"messages":' + data + b"}")


def test_what_a_prompt_costs_is_bounded() -> None:
    """Guards nests, and bodies of many MiB: their first bytes count, and only so many."""
    assert prompt_of(b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}") == PromptBlocks()
    long = prompt_of(request_body({"role": "user", "content": "x" * MOST_BODY})[: MOST_BODY + 1])
    assert len(long.blocks) == MOST_BLOCKS and long.opening


def test_the_replica_that_has_the_beginning_gets_the_rest() -> None:
    """Guards the reason of it all: a conversation's next turn goes where its last one was."""
    for name in ("a", "b"):
        known = known_to(name, request_body(*messages_after(4)))
        assert choose([Replica("a"), Replica("b")], prompt_of(request_body(*messages_after(5))), known).name == name


def test_a_crowded_replica_leaves_the_next_one_to_another() -> None:
    """Guards the bound: however much it has cached, it gets no more than its share, a quarter of that, and one."""
    known, prompt = known_to("a", request_body(*messages_after(40))), prompt_of(request_body(*messages_after(41)))
    assert most_under_way(7, 2) == 6 and most_under_way(63, 4) == 21
    assert choose([Replica("a", 5), Replica("b", 2)], prompt, known).name == "a"
    assert choose([Replica("a", 6), Replica("b", 1)], prompt, known).name == "b"


def test_unread_prompts_count_against_a_replica() -> None:
    """Guards the first token: 40 KB of cached text are not worth a wait behind 100 KB of others."""
    known, prompt = known_to("a", request_body(*messages_after(20))), prompt_of(request_body(*messages_after(21)))
    assert choose([Replica("a"), Replica("b")], prompt, known).name == "a"
    assert choose([Replica("a", unread=100_000), Replica("b")], prompt, known).name == "b"


def test_without_a_prompt_the_least_loaded_one_is_asked() -> None:
    """Guards embeddings, forms and short questions."""
    loads = [Replica("a", 2), Replica("b", 1), Replica("c", 2)]
    assert choose(loads, PromptBlocks(), KnownBeginnings()).name == "b"


def test_new_conversations_spread_and_find_back() -> None:
    """Guards equal replicas: each gets its part, and each choice is the same in another process, after a restart."""
    code = """if True:
        import sys
        from sparkwright.gateway.replicas import KnownBeginnings, Replica, choose, prompt_of
        four = [Replica(name) for name in "abcd"]
        for body in sys.stdin.buffer.read().splitlines():
            print(choose(four, prompt_of(body), KnownBeginnings()).name)
        """
    environ = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "random"}
    bodies = b"\n".join(map(new_conversation, range(100)))
    found = subprocess.run([sys.executable, "-c", code], input=bodies, capture_output=True, check=True, env=environ)
    chosen = spread()
    assert found.stdout.decode().split() == chosen
    assert all(chosen.count(name) >= 15 for name in "abcd")


def spread() -> list[str]:
    four = [Replica(name) for name in "abcd"]
    return [choose(four, prompt_of(new_conversation(n)), KnownBeginnings()).name for n in range(100)]


def new_conversation(number: int) -> bytes:
    return request_body(SYSTEM, {"role": "user", "content": f"task {number}"})


def test_few_conversations_move_when_a_replica_comes() -> None:
    """Guards scaling up: of a hundred, about every fifth goes to the new one, and no other moves."""
    four = [Replica(name) for name in "abcd"]
    prompts = (prompt_of(new_conversation(n)) for n in range(100))
    moved = [choose([*four, Replica("e")], one, KnownBeginnings()).name for one in prompts]
    assert all(new in (old, "e") for old, new in zip(spread(), moved, strict=True))
    assert 8 <= moved.count("e") <= 35


def test_a_replica_that_was_started_again_has_nothing_cached() -> None:
    """Guards the memory after a restart, and for replicas that are gone."""
    known, prompt = known_to("b", request_body(*messages_after(4))), prompt_of(request_body(*messages_after(5)))
    known.keep([Replica("a"), Replica("b", generation=7.0)])
    assert known.matched("b", prompt.blocks) == 0
    known.learn("b", prompt.blocks)
    known.keep([Replica("a"), Replica("b", generation=7.0)])
    assert known.matched("b", prompt.blocks) == len(prompt.blocks)
    known.keep([Replica("a")])
    known.keep([Replica("a"), Replica("b", generation=7.0)])
    assert known.matched("b", prompt.blocks) == 0


def test_memory_is_bounded_and_keeps_beginnings_longest() -> None:
    """Guards the process on the head: what was not seen for longest goes first, and of one prompt its end."""
    known = KnownBeginnings(most=100)
    known.keep([Replica("a"), Replica("b")])
    first, second = tuple(range(40)), tuple(range(100, 130))
    known.learn("a", first)
    known.learn("a", second)
    assert (known.matched("a", first), known.matched("a", second)) == (20, 30)
    assert len(known._sent["a"]) == 50
    assert replicas.REMEMBERED * BLOCK == 128 * 1024**2


@given(st.lists(st.integers(0, 60), min_size=1, max_size=16), st.integers(0, 15))
def test_there_is_always_one_and_never_too_full(loads: list[int], cached: int) -> None:
    """Guards the choice at any load: some replica is below the bound, and the chosen one is."""
    found = [Replica(str(n), load) for n, load in enumerate(loads)]
    known = KnownBeginnings()
    known.keep(found)
    prompt = prompt_of(request_body(*messages_after(5)))
    known.learn(str(cached % len(loads)), prompt.blocks)
    assert choose(found, prompt, known).under_way < most_under_way(sum(loads), len(loads))
