"""Evidence first: what is stopped can no longer be asked."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace

from sparkwright.app import incident as evidence
from sparkwright.app.supervise.live import view
from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.site import Site
from sparkwright.app.supervise.words import announce
from sparkwright.domain.codec import to_json
from sparkwright.domain.incident import Incident, IncidentEvent
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.sample import GpuSample
from sparkwright.domain.unknown import Unknown
from sparkwright.supervision.effects import Capture
from sparkwright.supervision.events import Captured
from sparkwright.supervision.recovery import NOTHING, Needs, of_diagnosis
from sparkwright.supervision.state import State

# A diagnosis that takes longer is not worth the wait; the evidence stays.
_DIAGNOSIS = 10.0
_EXITED = re.compile(r"rank (\d+) on (\S+) (?:exited with code (?!1(?:29|30|37|43)\b)|ended)")


async def capture(senses: Senses, state: State, wanted: Capture) -> Captured:
    """Opens the incident, or goes on with it, and fills its folder."""
    site = senses.site
    opened = await site.keep.store.open(
        Incident(
            deployment=site.name,
            kind=wanted.kind,
            what=wanted.what,
            opened_at=wanted.since or site.now(),
            number=wanted.incident,
            evidence=wanted.evidence,
            simulated=site.simulated,
        )
    )
    site.seen.folder, site.seen.incidents = opened.folder, await site.keep.store.counts(site.name)
    if site.seen.opening:
        announce(site, site.seen.opening, state, opened.number)
    await senses.let_go()
    ranks = [evidence.Rank(s.rank, s.node, s.runtime, site.handle(s.rank)) for s in site.outline.specs]
    found = await evidence.collect(site.world, site.name, ranks)
    found.files.update(_own(senses, state, wanted))
    found.logs.update({f"nvidia-smi dmon on {node}": _busy(readings) for node, readings in site.seen.gpus.items()})
    found.seen.extend(_seen(senses, wanted))
    ended = wanted.kind == "rank-exited" or (found.ended and wanted.kind != "launch-failed")
    outage = evidence.Outage(wanted.what if ended else "", site.seen.good_at, _heard(site), dict(state.boots))
    senses.explaining = asyncio.create_task(_finish(site, found, opened, outage if ended else None))
    return Captured(site.now(), opened.number, senses.detectors.asks().recovery, _dockerless(site, found, wanted.what))


def _dockerless(site: Site, found: evidence.Evidence, what: str) -> str:
    """The true thing before its consequence: a rank that lost its peer, because that one's Docker is away."""
    if site.desired.recipe.engine.runtime is not Runtime.DOCKER or not found.dockerless:
        return ""
    return "; ".join([*(why for why in sorted(found.dockerless) if why not in what), what])


def _seen(senses: Senses, wanted: Capture) -> Iterator[str]:
    """Stopped processes, links that were down, and a disk that was full where a rank ended."""
    frozen, exited = wanted.kind == "frozen", _EXITED.match(wanted.what)
    yield from (line for line in wanted.evidence if frozen and line.startswith("rank "))
    for line in senses.detectors.seen(senses.site.seen.good_at - senses.site.policy.sample_every):
        full = line.startswith("disk full on ")
        if not full:
            yield line
        elif exited and line.startswith(f"disk full on {exited[2]}:"):
            yield f"{line}; rank {exited[1]} ended there"


def _heard(site: Site) -> dict[str, evidence.Heard]:
    return {site.label(rank): site.seen.since_good(rank) for rank in range(len(site.nodes))}


async def _finish(site: Site, found: evidence.Evidence, opened: Incident, outage: evidence.Outage | None) -> Needs:
    """The rest, while the ranks are stopped: the stop waits for what the diagnosis asks for, and nobody else does."""
    await evidence.complete(site.world, found, site.nodes)
    needs = await _explained(site, found, opened.number, outage)
    trouble = await evidence.save(site.world, site.head, opened.folder, found.files) if opened.folder else ()
    await site.keep.store.trim(opened.number)
    saved = IncidentEvent(site.now(), "captured", f"{len(found.files)} files of evidence")
    await site.keep.store.note(site.name, saved, opened.number)
    for sentence in (*found.trouble, *trouble):
        site.say(f"incident {opened.number}: {sentence}", warning=True)
    return needs


async def _explained(site: Site, found: evidence.Evidence, number: int, outage: evidence.Outage | None) -> Needs:
    """What the first cause is called, and what recovery all of them ask for."""
    try:
        async with asyncio.timeout(_DIAGNOSIS):
            told = await evidence.explain(site.world, found, site.words, outage)
    except TimeoutError:
        found.trouble.append(f"the diagnosis took longer than {_DIAGNOSIS:.0f} s")
        return NOTHING
    found.files["diagnosis.json"] = json.dumps(asdict(told), indent=1)
    if not told.causes:
        return NOTHING
    first = told.causes[0]
    what = outage.said(found.boots) if outage else ""
    await site.keep.store.explain(number, first.title, first.code, first.fix, what)
    return replace(of_diagnosis(told), why=first.title)


def _busy(readings: Iterable[GpuSample]) -> str:
    """The last minute of a GPU as `nvidia-smi dmon` would have told it: asking now would take seconds."""
    rows = [f"    0 {g.utilization:5.0f} {g.memory_busy:5.0f}\n" for g in readings if _is_told(g)]
    return "".join(("# gpu    sm   mem\n", *rows)) if rows else ""


def _is_told(gpu: GpuSample) -> bool:
    return not isinstance(gpu.utilization, Unknown) and not isinstance(gpu.memory_busy, Unknown)


def _own(senses: Senses, state: State, wanted: Capture) -> dict[str, str]:
    """What the supervisor itself knew."""
    site = senses.site
    files = {"live.json": to_json(view(senses, state), indent=1), "state.json": to_json(state, indent=1)}
    files["fault.txt"] = "\n".join((wanted.what, *wanted.evidence)) + "\n"
    files |= {f"gpu-busy-{node}.txt": _busy(readings) for node, readings in site.seen.gpus.items()}
    files["metrics.txt"] = site.seen.page
    return {name: text for name, text in files.items() if text}
