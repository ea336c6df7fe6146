"""The engine itself, asked on its own address: its figures every second or two, and now and then for a real token."""

import asyncio

from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.site import Site
from sparkwright.domain.errors import NotReady
from sparkwright.domain.live import LiveCanary, LiveEngine
from sparkwright.facts.engine_metrics import read
from sparkwright.supervision.detect.stall import has_work

# While requests run, whether anything moves is seen sooner.
_FIGURES_EVERY, _AT_WORK = 2.0, 1.0
_LOOK_EVERY = 0.5
# Garbage cannot be told from one token; three answers at the start are what later ones are held against.
QUESTION, TOKENS, RECORDED = "Count from one to five in words.", 8, 3


async def figures(senses: Senses) -> None:
    """/metrics, again and again. A page that does not come is told, too."""
    site, before = senses.site, dict[int, int]()
    while True:
        lines = dict(site.seen.count)
        site.seen.engine, at = await shown(site), site.now()
        senses.figures = senses.figures or site.seen.engine is not None
        senses.found(senses.detectors.engine(site.seen.engine, at))
        if senses.detectors.life.proved == at:  # work came out since the look before
            site.seen.answered(before, at)
        before = lines
        await site.pause(_AT_WORK if has_work(site.seen.engine) else _FIGURES_EVERY)


async def shown(site: Site) -> LiveEngine | None:
    """What the engine tells of itself now."""
    page = await site.world.endpoint.page(site.url, site.engine.metrics_page, site.key)
    site.seen.page = page or site.seen.page  # the last one is evidence
    return read(page, site.engine.metric_names, site.now()) if page else None


async def canary(senses: Senses) -> None:
    """One small request while nothing else proves that the engine computes; at once when its figures stay away."""
    site = senses.site
    while True:
        if _due(senses):
            senses.detectors.asked(site.now())
            lines = dict(site.seen.count)
            site.seen.canary = said = await asked(site)
            if said.seconds is not None:
                site.seen.answered(lines, said.at)
            if said.seconds is not None and senses.recorded < RECORDED:
                senses.recorded += 1
                senses.detectors.record(said.said)
            senses.found(senses.detectors.canary(said, site.now()))
        await site.pause(_LOOK_EVERY)


def _due(senses: Senses) -> bool:
    site, last = senses.site, senses.site.seen.canary
    if _keyless(site):
        return False
    if senses.recorded < RECORDED or last is None or last.seconds is None:
        return True
    silent = senses.figures and site.seen.engine is None
    waited = site.now() - last.at
    hurried = silent or senses.detectors.hurries(site.now())
    return senses.detectors.wants_canary(site.now()) and (hurried or waited >= site.policy.canary_every)


def _keyless(site: Site) -> bool:
    """It would be refused for want of the key, which says nothing about the engine."""
    return bool(site.desired.recipe.serving.api_key_env) and site.key is None


async def asked(site: Site) -> LiveCanary:
    """The answer, or why there is none."""
    at, limit = site.now(), site.policy.canary_limit
    if _keyless(site):
        return LiveCanary(at, None, "not asked: its key is not known here")
    try:
        async with asyncio.timeout(limit):
            model = site.outline.served_name
            answer = await site.world.endpoint.greedy(site.url, model, QUESTION, TOKENS, site.key)
    except TimeoutError:
        return LiveCanary(at, None, f"no answer within {limit:g} s")
    except NotReady as error:
        return LiveCanary(at, None, error.message, refused=True)
    return LiveCanary(at, answer.total, answer.text)
