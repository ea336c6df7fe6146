"""Verdicts of `eval same` on made-up servers: deterministic, noisy, slightly and badly changed."""

from random import Random

import pytest

from sparkwright.domain.evaluation import Evaluation, Greedy, ProbeState
from sparkwright.evals.heard import ProbeAnswer, Token
from sparkwright.evals.probe import ProbeInputs
from sparkwright.evals.same import AS_BEFORE, WITHIN, WORSE, compared, greedy, greedy_request, prompts

LENGTH = 60


def answer(prompt: str, salt: str, parting: float, noise: float) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Tokens that part from the prompt's own at each place with this chance; log-probabilities with this noise."""
    own, dice = Random(prompt), Random(f"{prompt}/{salt}")
    tokens, values, apart = [], [], False
    for _ in range(LENGTH):
        word, value = str(own.randrange(1000)), -own.random()
        apart = apart or dice.random() < parting
        tokens.append(f"x{dice.randrange(1000)}" if apart else word)
        values.append(value + dice.gauss(0, noise))
    return tuple(tokens), tuple(values)


def server_evaluation(
    name: str, parting: float = 0.0, noise: float = 0.0, count: int = 48, logprobs: bool = True
) -> Evaluation:
    """A server whose answers part by its own noise, twice asked."""
    found = []
    for prompt in prompts(1, count):
        both = [answer(prompt, f"{name}/{n}", parting, noise) for n in range(2)]
        tokens, values = tuple(one[0] for one in both), tuple(one[1] for one in both)
        texts = tuple(" ".join(one) for one in tokens)
        found.append(Greedy(prompt, texts, tokens, values) if logprobs else Greedy(prompt, texts))
    return Evaluation("same", (), tuple(found))


@pytest.mark.parametrize("logprobs", (True, False))
def test_as_before(logprobs: bool) -> None:
    """Equal texts and log-probabilities."""
    assert (
        compared(server_evaluation("a", logprobs=logprobs), server_evaluation("b", logprobs=logprobs)).verdict
        == AS_BEFORE
    )


def test_within_noise() -> None:
    """Both part from themselves as often as from each other."""
    found = compared(server_evaluation("a", 0.01, 0.02), server_evaluation("b", 0.01, 0.02))
    assert (found.verdict, found.passed) == (WITHIN, True)


def test_worse_texts() -> None:
    """A side whose own answers are stable and others: the prompts that show it come with the verdict."""
    changed = server_evaluation("b")
    others = [answer(one.prompt, "q", 0.05, 0.0) for one in changed.answers]
    answers = tuple(
        Greedy(one.prompt, (" ".join(tokens),) * 2, (tokens,) * 2, (values,) * 2)
        for one, (tokens, values) in zip(changed.answers, others, strict=True)
    )
    found = compared(server_evaluation("a"), Evaluation("same", (), answers))
    assert (found.verdict, found.passed, found.outcomes[0].state) == (WORSE, False, ProbeState.FAILED)
    assert found.outcomes[0].evidence[0].received.startswith("new: ")


def test_worse_logprobs() -> None:
    """Equal texts, but another distribution: seen before a text differs."""
    base = server_evaluation("a", noise=0.001)
    shifted = tuple(
        Greedy(one.prompt, one.texts, one.tokens, tuple(tuple(v - 0.05 for v in row) for row in one.logprobs))
        for one in server_evaluation("b", noise=0.001).answers
    )
    found = compared(base, Evaluation("same", (), shifted))
    assert (found.verdict, found.outcomes[0].state, found.outcomes[1].state) == (
        WORSE,
        ProbeState.PASSED,
        ProbeState.FAILED,
    )


@pytest.mark.full
def test_equal_settings_are_rarely_worse() -> None:
    """The rate of false alarms on equal noisy settings: of 200 at most 6 (1 % is designed)."""
    alarms = sum(
        compared(server_evaluation(f"a{n}", 0.01, 0.02), server_evaluation(f"b{n}", 0.01, 0.02)).verdict == WORSE
        for n in range(200)
    )
    assert alarms <= 6


def test_lost_answers() -> None:
    """Prompts without an answer are counted and no verdict is passed over them in silence."""
    base, new = server_evaluation("a"), server_evaluation("b")
    lost = (Greedy(new.answers[0].prompt, (), error="connection refused"), *new.answers[1:])
    found = compared(base, Evaluation("same", (), lost))
    assert (found.passed, found.outcomes[-1].state, found.outcomes[-1].failed) == (False, ProbeState.BROKEN, 1)
    none = compared(base, Evaluation("same", (), (Greedy("other", ("a",)),)))
    assert (none.passed, none.verdict, none.outcomes[0].state) == (False, "", ProbeState.SKIPPED)


def test_answers_are_kept() -> None:
    """The answers have log-probabilities if both have them; an error in place of a text is kept."""
    heard = ProbeAnswer(200, "ab", tokens=(Token(b"a", -0.5), Token(b"b", -0.25)))
    found = greedy("p", (heard, heard))
    assert (found.texts, found.tokens[0], found.logprobs[1]) == (("ab", "ab"), ("a", "b"), (-0.5, -0.25))
    assert greedy("p", (heard, ProbeAnswer(200, "ab"))).logprobs == ()
    assert greedy("p", (heard, ProbeAnswer(trouble="cut"))).error == "cut"
    assert (
        greedy_request(ProbeInputs(), "p", True).body["top_logprobs"] == 5
        and "logprobs" not in greedy_request(ProbeInputs(), "p", False).body
    )
