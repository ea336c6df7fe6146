"""Instructions: each kind's check against an answer that follows it and one that does not; scores."""

import json
from random import Random

import pytest

from sparkwright.domain.evaluation import ProbeState
from sparkwright.evals.heard import ProbeAnswer, ProbeRequest
from sparkwright.evals.instructions import Prompt, judge_prompt, loosened, outcomes, prompts
from sparkwright.evals.kinds import ALONE, KINDS, Instruction
from sparkwright.evals.score import wilson_score

# Made with seed 7: (kind, what the instruction has in it, an answer that follows it, one that just does not).
WORD = "river "
SEED = 7


def make_instruction(kind: str) -> Instruction:
    text, check = KINDS[kind](Random(SEED))
    return Instruction(kind, text, check)


def number(text: str) -> int:
    return next(int(word) for word in text.replace(".", " ").split() if word.isdigit())


def quoted(text: str) -> list[str]:
    return text.split("'")[1::2]


def answers(kind: str) -> tuple[list[str], list[str]]:
    """(followed, not followed), from the instruction's own text."""
    text = make_instruction(kind).text
    count = number(text) if any(word.strip(".,").isdigit() for word in text.split()) else 0
    marks = quoted(text)
    language = {
        "German": "Der Hund und die Katze sind nicht mit dem Ball im Garten.",
        "French": "Le chat et la souris sont dans un jardin pour les enfants.",
        "Spanish": "El perro y la gata en un patio que es de los vecinos.",
        "Italian": "Il cane e la gatta non sono in un giardino che piace.",
    }
    good: dict[str, list[str]] = {
        "words-at-least": [WORD * count],
        "words-at-most": [WORD * count],
        "sentences": ["One more. " * count],
        "paragraphs": ["\n\n".join(["Text."] * count)],
        "bullets": ["\n".join(["* a point"] * count), "Intro:\n" + "\n".join(["- a point"] * count)],
        "numbered": ["\n".join(f"{n + 1}. entry" for n in range(count))],
        "keywords": [" ".join(marks).upper()],
        "keyword-times": [f"{marks[0]}, " * count] if marks else [],
        "forbidden-words": ["A heavy veryfied thing."],
        "letter": [marks[0] * count] if marks else [],
        "without-letter": ["A common river."],
        "lower-case": ["all of it, 3 times."],
        "upper-case": ["ALL OF IT, 3 TIMES."],
        "capital-words": ["THIS " * count],
        "language": [text_of for name, text_of in language.items() if name in text],
        "json": [json.dumps(dict.fromkeys(keys_of(text), 1))],
        "end": [f"Well. {text.partition(': ')[2]}"],
        "begin": [f"{marks[0]} it is."] if marks else [],
        "repeat": [f"{text.partition(': ')[2]} And here is the answer."],
        "quoted": ['"All of it."'],
        "title": ["<<A title>>\nText."],
        "no-commas": ["One and two."],
        "placeholders": ["[name] " * count],
        "sections": ["\n".join(f"Section {n + 1}\nText." for n in range(count))],
        "postscript": ["Text.\n\nP.S. More."],
        "highlights": ["*one phrase* " * count],
        "choice": ["It depends.".lower(), "'yes, certainly'"],
    }
    bad: dict[str, list[str]] = {
        "words-at-least": [WORD * (count - 1)],
        "words-at-most": [WORD * (count + 1)],
        "sentences": ["One more. " * (count + 1)],
        "paragraphs": ["\n\n".join(["Text."] * (count - 1))],
        "bullets": ["\n".join(["* a point"] * (count + 1)), "*emphasis* " * count],
        "numbered": ["\n".join(f"{n + 2}. entry" for n in range(count))],
        "keywords": marks[:1],
        "keyword-times": [f"{marks[0]}, " * (count + 1), f"{marks[0]}s " * count] if marks else [],
        "forbidden-words": ["very small water people also because"],
        "letter": [marks[0] * (count - 1)] if marks else [],
        "without-letter": ["jqxz"],
        "lower-case": ["All of it."],
        "upper-case": ["ALL OF it."],
        "capital-words": ["A I " * count],
        "language": ["The dog and the cat are not with the ball in the garden.", "漢字 der die das"],
        "json": ['Here: {"title": 1}', '{"title": 1}', "[" * 5000, "7"],
        "end": [f"{text.partition(': ')[2]} Well."],
        "begin": ["Well, it is."],
        "repeat": [text.partition(": ")[2], "And here is the answer."],
        "quoted": ['He wrote: "All of it."'],
        "title": ["A title\n<<later>>"],
        "no-commas": ["One, two."],
        "placeholders": ["[name] " * (count - 1)],
        "sections": ["\n".join(f"Section {n + 1}\nText." for n in range(count + 1))],
        "postscript": ["Text, no P.S. here."],
        "highlights": ["* one\n* two\n* three\n* four"],
        "choice": ["It depends, I think.", "perhaps"],
    }
    return good[kind], bad[kind]


def keys_of(text: str) -> tuple[str, ...]:
    return tuple(text.rpartition("are ")[2].rstrip(".").split(", "))


@pytest.mark.parametrize("kind", KINDS)
def test_checks(kind: str) -> None:
    """An answer that follows passes, one that misses by one does not, an empty one never does."""
    check = make_instruction(kind).check
    good, bad = answers(kind)
    assert good and bad
    assert [answer for answer in good if not check(answer)] == []
    assert [answer for answer in bad if check(answer)] == []
    prompt = Prompt("s", (make_instruction(kind),))
    assert judge_prompt(prompt, ProbeRequest({}), ProbeAnswer(200, "  \n")).strict == (False,)


def test_prompts_are_seeded() -> None:
    """The same for a seed, others for another; every kind is asked; nothing next to what sets the whole form."""
    ours = [prompt.text for prompt in prompts(1, 108)]
    assert ours == [prompt.text for prompt in prompts(1, 108)] != [prompt.text for prompt in prompts(2, 108)]
    assert {one.kind for prompt in prompts(1, 108) for one in prompt.instructions} == set(KINDS)
    assert [
        prompt.text for prompt in prompts(3, 540) if len(prompt.instructions) > 1 and prompt.instructions[0].alone
    ] == []
    assert set(KINDS) >= ALONE


def test_strict_and_loose() -> None:
    """Loose forgives a first line and emphasis; strict does not; what has no answer is broken, not wrong."""
    prompt = Prompt("s", (make_instruction("lower-case"),))
    one = judge_prompt(prompt, ProbeRequest({}), ProbeAnswer(200, "Sure! Here it is:\nall of **it**"))
    assert (one.strict, one.loose) == ((False,), (True,))
    assert "all of it" in list(loosened("First\nall of **it**"))
    lost = judge_prompt(prompt, ProbeRequest({}), ProbeAnswer(trouble="connection refused"))
    found = {outcome.name: outcome for outcome in outcomes((one, lost))}
    assert found["prompts, loose"].score == wilson_score(1, 1)
    assert found["prompts, strict"].score == wilson_score(0, 1)
    assert found["answers"].state is ProbeState.BROKEN
    assert found["lower-case"].evidence[0].what == "not followed: Use lower-case letters only."
    assert all(outcome.state is not ProbeState.PASSED for outcome in found.values())


def test_intervals() -> None:
    """Wilson's, as tabled: 8 of 10 is 49 to 94 %; nothing known is 0 to 1."""
    found = wilson_score(8, 10)
    assert (round(found.low, 3), round(found.high, 3), found.share) == (0.490, 0.943, 0.8)
    assert (wilson_score(0, 0).low, wilson_score(0, 0).high) == (0.0, 1.0)
    assert (wilson_score(0, 20).low, round(wilson_score(20, 20).low, 2)) == (0.0, 0.84)
