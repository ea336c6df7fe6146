"""Probes against a simulator in this process, without sockets."""

from random import Random

from sparkwright.app.bench.parsers import play_probe
from sparkwright.domain.evaluation import ProbeOutcome, ProbeState
from sparkwright.domain.probed import Reply
from sparkwright.evals.catalog import entries
from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, read
from sparkwright.evals.probe import ProbeInputs
from sparkwright.loadgen.texts import paragraph
from unit.simulator.inprocess import MakeClient

PARSERS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3")


def filler(tokens: int, salt: int) -> str:
    return "".join(paragraph(Random(f"{salt}/{n}"), 40) for n in range(tokens // 60))


def probe_inputs(seed: int = 1) -> ProbeInputs:
    return ProbeInputs(
        seed,
        32768,
        8000,
        thinking=True,
        ignore_eos=True,
        filler=filler,
        choose=lambda texts: {"structured_outputs": {"choice": list(texts)}},
    )


async def outcomes(make_client: MakeClient, names: set[str], fault: str = "", seed: int = 1) -> dict[str, ProbeOutcome]:
    """The outcomes of these probes, with those skipped because of another; all without names."""
    client = await make_client(*PARSERS, env={"SPARKWRIGHT_SIMULATOR_FAULT": fault})

    async def send(ask: ProbeRequest) -> ProbeAnswer:
        reply = await client.post(ask.path, {"model": "tiny-qwen3", **ask.body})
        return read(ask, Reply(reply.status, body=reply.text))

    found: dict[str, ProbeOutcome] = {}
    for entry in entries():
        if names and entry.name not in names:
            continue
        lacking = [name for name in entry.needs if name in found and found[name].state is not ProbeState.PASSED]
        found[entry.name] = (
            ProbeOutcome(entry.name, ProbeState.SKIPPED)
            if lacking
            else await play_probe(entry, probe_inputs(seed), send)
        )
    return found


def failed(found: dict[str, ProbeOutcome]) -> set[str]:
    return {name for name, outcome in found.items() if outcome.state not in (ProbeState.PASSED, ProbeState.SKIPPED)}
