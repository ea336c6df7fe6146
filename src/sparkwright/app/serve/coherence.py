"""The easy questions of coherence.toml, asked of an engine that has just started."""

import asyncio

from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady
from sparkwright.domain.recipe import ModelKind, Recipe
from sparkwright.evals.coherence import Judged, answer_tokens, judge_answers, questions
from sparkwright.ports import Endpoint

_SECONDS = 90.0  # for all of them: a GB10 needs two to ten


def wants_coherence(recipe: Recipe, simulated: bool) -> bool:
    """True if the answers are to be judged: those of a simulator are made up, other kinds of models do not speak."""
    return recipe.serving.coherence and recipe.model.kind is ModelKind.CHAT and not simulated


async def judged_answers(endpoint: Endpoint, url: str, model: str, key: Secret | None) -> tuple[Judged | None, int]:
    """Ask all questions at once; None where an answer is missing or made up. Also the tokens of the answers."""
    limit = answer_tokens()
    try:
        async with asyncio.timeout(_SECONDS):
            found = await asyncio.gather(*(endpoint.greedy(url, model, one.ask, limit, key) for one in questions()))
    except (NotReady, TimeoutError):
        return None, 0
    tokens = sum(answer.completion_tokens for answer in found)
    if any(answer.simulated for answer in found):
        return None, tokens
    return judge_answers([(one, answer.text) for one, answer in zip(questions(), found, strict=True)]), tokens
