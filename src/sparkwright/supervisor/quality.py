"""Now and then one of the short probes of `eval` follows a canary, where the recipe has parsers."""

import asyncio
import json

from sparkwright.domain.errors import NotReady
from sparkwright.domain.evaluation import ProbeOutcome, ProbeState
from sparkwright.supervisor.event_bus import EventBus

PARSER = "parser"
_LOOK_EVERY, _SECONDS = 1.0, 60.0


async def watch_quality(bus: EventBus) -> None:
    """Nothing is stopped for what it finds: a parser that fails does so after a restart, too."""
    while bus.quality.names:
        await bus.context.pause(_LOOK_EVERY)
        if name := bus.quality.due():
            await run_probe(bus, name)


async def run_probe(bus: EventBus, name: str) -> None:
    """One probe; a trouble while it fails turn after turn."""
    from sparkwright.app.bench.parsers import parser_of

    outcome = await _outcome(bus, name)
    proves = outcome is not None and outcome.state in (ProbeState.PASSED, ProbeState.FAILED)
    failed = outcome is not None and outcome.state is ProbeState.FAILED
    bus.quality.judge(name, outcome.detail if outcome and failed else "" if proves else None)
    parsers, wrong = bus.context.desired.recipe.parsers, bus.quality.wrong
    what = "; ".join(f"{parser_of(parsers, name)}: {why}" for name, why in wrong.items())
    bus.set_trouble(PARSER, f"answers are wrong (SUP009): {what}; sparkwright eval probes shows more" if what else "")


async def _outcome(bus: EventBus, name: str) -> ProbeOutcome | None:
    """None where nothing was judged: it is busy, or the model does not follow."""
    from sparkwright.app.bench.parsers import played
    from sparkwright.evals.catalog import chosen
    from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, read

    context = bus.context

    async def send(ask: ProbeRequest) -> ProbeAnswer:
        body = json.dumps({"model": context.outline.served_name, **ask.body})
        try:
            url = f"{context.url}{ask.path}"
            with context.own_request():
                heard = read(ask, await context.services.endpoint.post(url, body, context.key, _SECONDS))
        except NotReady as error:
            return ProbeAnswer(trouble=error.message)
        bus.detectors.canaries.own += heard.output_tokens  # its tokens are nobody's traffic
        return heard

    try:
        async with asyncio.timeout(_SECONDS):
            found = await played(chosen((name,)), send, bus.quality.asked + 1)
    except TimeoutError:
        return None
    return found[-1] if found[-1].name == name else None
