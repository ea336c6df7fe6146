"""Texts that go on repeating themselves, and texts that only look so."""

import json
import random
import tracemalloc

import pytest

from loops.texts import LEGITIMATE, LOOPS, looped
from sparkwright.gateway.guard import CHAT, AnswerGuard, GuardSetting
from sparkwright.gateway.loops import COUNTED, OF_BLANKS, OF_SIGNS, OF_WORDS, WINDOW, LoopFinder, TextLoop
from unit.for_each import for_each


def found_in(text: str, piece: int = 700) -> tuple[TextLoop | None, int]:
    """The loop, and the bytes after which it was found. piece: bytes that come at once."""
    finder, data = LoopFinder(), json.dumps(text)[1:-1].encode()
    for at in range(0, len(data), piece):
        if loop := finder.feed(data[at : at + piece]):
            return loop, at + piece
    return None, len(data)


@for_each("kind", LOOPS)
def test_a_true_loop_ends_soon(kind: str) -> None:
    """Guards the bound: words, sentences, paragraphs, code, blanks, and sentences that count."""
    most = {"signs": OF_SIGNS, "blanks": OF_SIGNS, "chinese": OF_SIGNS, "counter": COUNTED, "attempts": 2 * COUNTED}
    for seed in range(6):
        before, loop = looped(kind, random.Random(seed))
        found, after = found_in(before + loop)
        start = len(json.dumps(before)) - 2
        assert found and after - start <= most.get(kind, 3 * OF_WORDS) + 4096, (seed, after - start)
        assert found.times >= 5 and found.period


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2, 3))])
def test_what_repeats_with_good_reason_is_no_loop(seed: int) -> None:
    """Guards tables, lists, code, logs, poems and numbers; `python -m loops` has thousands of them."""
    for kind, make in LEGITIMATE.items():
        text = make(random.Random(f"unit {seed}"))
        assert found_in(text)[0] is None, (kind, text[:80])


@for_each(
    "why, text",
    [
        (
            "rows that count in two columns",
            "\n".join(f"Row {n} has {n * 2} items in the big store" for n in range(900)),
        ),
        ("a loop that is over", "again and again " * 200 + "x" * 9000),
        (
            "sentences of a changing number",
            "\n".join(f"Node {n * n * 37 % 1009} has answered the call" for n in range(900)),
        ),
        ("few blanks", " " * (OF_BLANKS - 1024)),
        ("less than a look", "no no no "),
        ("nothing", ""),
    ],
)
def test_what_is_close_to_a_loop_is_none(why: str, text: str) -> None:
    """Guards each border of the rule."""
    assert found_in(text)[0] is None, why


@for_each("piece", [1, 13, 1024, 100_000])
def test_pieces_do_not_matter(piece: int) -> None:
    """Guards numbers and periods that are cut by the pieces of a stream."""
    text = "".join(f"Step {n}: the gateway is asked for an answer once more.\n" for n in range(900))
    found, _ = found_in(text, piece)
    assert found and found.counts and "the gateway is asked" in found.period * 2


def test_state_is_bounded_and_cost_linear() -> None:
    """Guards the gateway: an endless answer takes no more memory, and hostile texts no more time, than others.

    Quadratic cost would take hours here, and pytest ends the test before.
    """
    finder, period = LoopFinder(), b"a" * 47 + b"b" + b"a" * 47 + b"c"
    tracemalloc.start()
    for n in range(4000):
        finder.feed((period * 11)[n % 90 :][:900] + str(n * n).encode())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert finder.found is None
    assert most < 16 * WINDOW


def chat_event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode() + b"\n\n"


@for_each("end", [b"\n\n", b"\r\n\r\n"])
@for_each("size", [7, 301, 5000])
def test_the_end_is_behind_a_whole_event(size: int, end: bytes) -> None:
    """Guards the client's parser, however the engine's bytes are cut."""
    guard = AnswerGuard(GuardSetting(end_loops=True), CHAT)
    guard.begins(stream=True, sized=False)
    data = chat_event(" again and again").replace(b"\n\n", end) * 4000
    got = b""
    for at in range(0, len(data), size):
        got += guard.saw(data[at : at + size])
        if guard.over:
            break
    assert guard.ended == "looped"
    events = [one for one in got.replace(b"\r\n", b"\n").split(b"\n\n") if one]
    assert events[-1] == b"data: [DONE]"
    assert json.loads(events[-2][6:])["choices"][0]["finish_reason"] == "length"
    assert all(json.loads(one[6:])["choices"] for one in events[:-1])


@for_each("how", ["a length is announced", "an API that is not known"])
def test_a_stream_that_cannot_be_ended_here_is_only_counted(how: str) -> None:
    """Guards answers whose length the client knows, and APIs whose last event we do not."""
    guard = AnswerGuard(GuardSetting(end_loops=True), CHAT if how.startswith("a ") else "/v1/other")
    guard.begins(stream=True, sized=how.startswith("a "))
    data = chat_event(" again") * 4000
    assert b"".join(guard.saw(data[at : at + 4096]) for at in range(0, len(data), 4096)) == data
    assert (guard.ended, guard.over) == ("looped", False)


def test_the_stricter_limit_counts() -> None:
    """Guards keys and deployments that both have a setting; 0 is none."""
    both = GuardSetting(False, 500).with_limits(True, 900)
    assert (both.end_loops, both.reasoning_tokens) == (True, 500)
    assert GuardSetting().with_limits(False, 300).reasoning_tokens == 300
    assert not GuardSetting().with_limits(False, 0).on


@for_each("seed", range(30))
def test_odd_bytes_harm_nobody(seed: int) -> None:
    """Guards the process of all clients against an engine that sends anything."""
    dice, guard = random.Random(seed), AnswerGuard(GuardSetting(True, 100), CHAT)
    guard.begins(stream=bool(seed % 2), sized=False)
    data = bytes(dice.choices(b'data:"{}\\\n,content0 \xff', k=60_000)) + b'"reasoning":"' * 900 + b"x" * 200_000
    got = b"".join(guard.saw(data[at : at + 3000]) for at in range(0, len(data), 3000))
    assert got == data or guard.ended
    assert len(guard._raw) < 128 * 1024
