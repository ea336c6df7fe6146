"""Prompts with verifiable instructions, and their scores: strict and loose, by prompt and by instruction."""

from collections.abc import Iterator, Sequence
from random import Random

from sparkwright.domain.evaluation import ProbeEvidence, ProbeOutcome, ProbeState
from sparkwright.domain.values import dataclass
from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, shortened
from sparkwright.evals.kinds import ALONE, KINDS, Instruction
from sparkwright.evals.probe import ProbeInputs, curl_text
from sparkwright.evals.score import wilson_score
from sparkwright.loadgen.texts import IDEAS, PLACES, THINGS

TOKENS = 768
_FRAMES = (
    "Describe a {thing} for a visitor of the {place}.",
    "Explain to a child what {idea} is.",
    "Write a short notice about the {thing} at the {place}.",
    "Give advice to someone who has lost a {thing}.",
)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Prompt:
    """One to two instructions about one subject."""

    subject: str
    instructions: tuple[Instruction, ...]

    @property
    def text(self) -> str:
        return " ".join([self.subject, *(one.text for one in self.instructions)])

    def ask(self, given: ProbeInputs) -> ProbeRequest:
        return given.chat(self.text, TOKENS)


def _made(kind: str, dice: Random) -> Instruction:
    text, check = KINDS[kind](dice)
    return Instruction(kind, text, check, kind in ALONE)


def prompts(seed: int, count: int) -> tuple[Prompt, ...]:
    """Every kind in turn; half of those that allow it have a second instruction."""
    dice = Random(f"{seed}/instructions")
    kinds, found = list(KINDS), []
    for number in range(count):
        first = _made(kinds[number % len(kinds)], dice)
        others = [kind for kind in ("forbidden-words", "no-commas", "postscript", "letter") if kind != first.kind]
        more = () if first.alone or dice.random() < 0.5 else (_made(dice.choice(others), dice),)
        subject = dice.choice(_FRAMES).format(
            thing=dice.choice(THINGS), place=dice.choice(PLACES), idea=dice.choice(IDEAS)
        )
        found.append(Prompt(subject, (first, *more)))
    return tuple(found)


def loosened(text: str) -> Iterator[str]:
    """The answer without what models put around it: first line, last line, both; and without emphasis."""
    lines = text.strip().split("\n")
    for part in (lines, lines[1:], lines[:-1], lines[1:-1]):
        joined = "\n".join(part).strip()
        yield joined
        yield joined.replace("*", "")


@dataclass(frozen=True, slots=True)
class JudgedPrompt:
    """strict, loose: for each instruction of the prompt. trouble: why there is no answer."""

    prompt: Prompt
    strict: tuple[bool, ...] = ()
    loose: tuple[bool, ...] = ()
    trouble: str = ""
    evidence: ProbeEvidence | None = None


def judge_prompt(prompt: Prompt, ask: ProbeRequest, heard: ProbeAnswer) -> JudgedPrompt:
    """An empty answer follows nothing, whatever it leaves out."""
    if heard.trouble:
        return JudgedPrompt(prompt, trouble=heard.trouble)
    text = heard.content
    strict = tuple(bool(text.strip()) and one.check(text) for one in prompt.instructions)
    loose = tuple(
        bool(text.strip()) and any(one.check(part) for part in loosened(text) if part) for one in prompt.instructions
    )
    missed = [one.text for one, good in zip(prompt.instructions, strict, strict=True) if not good]
    evidence = (
        ProbeEvidence(f"not followed: {' '.join(missed)}", curl_text(ask), shortened(heard.raw, 1200))
        if missed
        else None
    )
    return JudgedPrompt(prompt, strict, loose, evidence=evidence)


def outcomes(judged: Sequence[JudgedPrompt]) -> tuple[ProbeOutcome, ...]:
    """Totals, then each kind. A score is no failure: a gate decides; only prompts without an answer are broken."""
    answered = [one for one in judged if not one.trouble]
    lost = [one for one in judged if one.trouble]
    totals = {
        "prompts, strict": [all(one.strict) for one in answered],
        "prompts, loose": [all(one.loose) for one in answered],
        "instructions, strict": [good for one in answered for good in one.strict],
        "instructions, loose": [good for one in answered for good in one.loose],
    }
    found = [_outcome(name, goods) for name, goods in totals.items()]
    found += [_kind(kind, answered) for kind in KINDS if any(kind == _first(one) for one in answered)]
    if lost:
        detail = f"{len(lost)} of {len(judged)} prompts without an answer: {lost[0].trouble}"
        found.append(ProbeOutcome("answers", ProbeState.BROKEN, detail, len(judged), len(lost)))
    return tuple(found)


def _first(judged: JudgedPrompt) -> str:
    return judged.prompt.instructions[0].kind


def _outcome(name: str, goods: Sequence[bool]) -> ProbeOutcome:
    state = ProbeState.SCORED if goods else ProbeState.SKIPPED
    return ProbeOutcome(
        name, state, cases=len(goods), failed=goods.count(False), score=wilson_score(sum(goods), len(goods))
    )


def _kind(kind: str, answered: Sequence[JudgedPrompt]) -> ProbeOutcome:
    mine = [one for one in answered if _first(one) == kind]
    goods = [one.strict[0] for one in mine]
    evidence = tuple(one.evidence for one in mine if one.evidence and not one.strict[0])[:_SHOWN]
    made = _outcome(kind, goods)
    detail = evidence[0].what if evidence else ""
    return ProbeOutcome(kind, made.state, detail, made.cases, made.failed, evidence=evidence, score=made.score)
