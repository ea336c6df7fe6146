"""Judges the first answers after a start. Only language becomes the reference of later answers."""

from sparkwright.app.serve.coherence import judged_answers, wants_coherence
from sparkwright.evals.coherence import Coherence
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.event_bus import EventBus

GARBLED = "garbled"
_AGAIN = 300.0


def is_judged(context: DeploymentContext) -> bool:
    """True if this deployment's answers are judged at each start."""
    recipe = context.desired.recipe
    keyless = bool(recipe.serving.api_key_env) and context.key is None
    return wants_coherence(recipe, context.simulated) and not keyless


async def watch_answers(bus: EventBus) -> None:
    """Ask after a start, and again while the answers are garbled; a restart would not change them."""
    while not bus.speaks:
        await ask_once(bus)
        await bus.context.pause(_AGAIN)


async def ask_once(bus: EventBus) -> None:
    """One round of questions. Answers that cannot be judged count as language."""
    context = bus.context
    with context.own_request():
        found = await judged_answers(context.services.endpoint, context.url, context.outline.served_name, context.key)
    judged, tokens = found
    bus.detectors.canaries.own += tokens  # nobody's traffic
    garbled = judged is not None and judged.coherence is Coherence.GARBLED
    bus.speaks, bus.detectors.garbage.born = not garbled, judged.why if judged and garbled else ""
    bus.set_trouble(GARBLED, f"its answers are garbled: {judged.why}" if judged and garbled else "")
