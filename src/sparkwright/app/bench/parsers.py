"""Playing probes; and the few that `up` asks before it believes that an endpoint with parsers is ready."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from sparkwright.app.services import Services
from sparkwright.checks.supervision import PARSERS
from sparkwright.domain.errors import NotReady
from sparkwright.domain.evaluation import ProbeOutcome, ProbeState
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Plan
from sparkwright.domain.recipe import Parsers
from sparkwright.evals.catalog import PROBES, ProbeEntry, chosen
from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, read
from sparkwright.evals.probe import NoAnswer, ProbeInputs, Tally

_SECONDS = 120.0  # for all of them: a GB10 needs about five
_ENOUGH = 60.0
Send = Callable[[ProbeRequest], Awaitable[ProbeAnswer]]


async def play_probe(entry: ProbeEntry, given: ProbeInputs, send: Send) -> ProbeOutcome:
    """One probe to its end."""
    steps, tally = PROBES[entry.name](given), Tally()
    heard: list[ProbeAnswer] | None = None
    try:
        while True:
            asks = steps.send(heard) if heard is not None else next(steps)
            heard = await asyncio.gather(*map(send, asks))
    except StopIteration as stop:
        tally = stop.value
    except NoAnswer as error:
        return ProbeOutcome(entry.name, ProbeState.BROKEN, f"no answer: {error}")
    return entry.explained(tally.outcome(entry.name))


async def parser_findings(services: Services, plan: Plan) -> tuple[Finding, ...]:
    """Findings about the recipe's parsers: a tool call, a split of reasoning and an answer of exact length are
    tried."""
    names = parser_probes(plan.recipe.parsers)
    if not names:
        return ()
    address = "127.0.0.1" if plan.bind == "0.0.0.0" else plan.bind
    key = services.secrets.get(plan.recipe.serving.api_key_env)
    try:
        async with asyncio.timeout(_SECONDS), services.hosts[plan.head].tunnel(address, plan.port) as url:

            async def send(ask: ProbeRequest) -> ProbeAnswer:
                body = json.dumps({"model": plan.served_name, **ask.body})
                try:
                    return read(ask, await services.endpoint.post(f"{url}{ask.path}", body, key, _ENOUGH))
                except NotReady as error:
                    return ProbeAnswer(trouble=error.message)

            found = await played(chosen(names), send)
    except TimeoutError:
        services.notice(f"the parsers could not be probed within {_SECONDS:.0f} s; later: sparkwright eval probes")
        return ()
    if (first := found[0]).state is not ProbeState.PASSED:
        services.notice(f"the parsers were not judged: a one-word instruction: {first.detail}", warning=True)
        return ()
    return tuple(
        PARSERS.on(plan.deployment, f"{parser_of(plan.recipe.parsers, one.name)}: {one.detail}")
        for one in found
        if one.state not in (ProbeState.PASSED, ProbeState.SKIPPED)
    )


async def played(entries: Sequence[ProbeEntry], send: Send, seed: int = 0) -> list[ProbeOutcome]:
    """Briefly, without `chat_template_kwargs` where the server refuses those. A model that does not follow ends it."""
    given = ProbeInputs(seed, thinking=True, ignore_eos=True, brief=True)
    greeting = await send(given.short("Hello", 16, **given.whole()))
    if greeting.refused:
        given = replace(given, thinking=False, ignore_eos=False)
        greeting = await send(given.short("Hello", 16))
    given = replace(given, reasons=bool(greeting.reasoning))
    found: list[ProbeOutcome] = []
    for entry in entries:
        found.append(await play_probe(entry, given, send))
        if entry.name == "follows" and found[-1].state is not ProbeState.PASSED:
            break
    return found


def parser_probes(parsers: Parsers) -> tuple[str, ...]:
    """The probes that show whether they fit; () without any."""
    given = {"tool-call": parsers.tool, "thinking": parsers.reasoning, "length": parsers.tool or parsers.reasoning}
    return tuple(name for name, parser in given.items() if parser)


def parser_of(parsers: Parsers, probe: str) -> str:
    which = {"tool-call": f"tool parser {parsers.tool}", "thinking": f"reasoning parser {parsers.reasoning}"}
    return which.get(probe, probe)
