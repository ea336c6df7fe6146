"""Every probe of `eval probes` against each planted fault and against healthy servers: what fails, and false alarms.

    python scripts/evals/probe_alarms.py --healthy 200 > docs/reference/probes.md

Simulators in this process; each healthy run has a seed of its own. About four minutes on two cores. Exit 1 when a
fault is missed, another probe fails with it, or a healthy server is accused.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import comb
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from sparkwright.domain.evaluation import ProbeOutcome, ProbeState  # noqa: E402
from sparkwright.evals.catalog import PROBES  # noqa: E402
from sparkwright.simulator.link import HeadLink  # noqa: E402
from sparkwright.simulator.service import SimulatedService  # noqa: E402
from unit.evals.playing import failed, outcomes  # type: ignore[import-not-found] # noqa: E402
from unit.evals.test_probes import OWN  # type: ignore[import-not-found] # noqa: E402
from unit.simulator.inprocess import InProcessClient, MakeClient, rank_in  # type: ignore[import-not-found] # noqa: E402

SIDE = 0.05


@asynccontextmanager
async def simulators() -> AsyncIterator[MakeClient]:
    """Makes clients of simulators that end with the block."""
    running: list[asyncio.Task[None]] = []
    with tempfile.TemporaryDirectory() as folder:

        async def make(*flags: str, env: dict[str, str]) -> InProcessClient:
            rank = rank_in(Path(folder), *flags, env=env)
            service = SimulatedService(rank, HeadLink(1), asyncio.get_running_loop().create_future())
            running.append(asyncio.create_task(service.engine.run()))
            return InProcessClient(service)

        yield make
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def ask_probes(fault: str, seed: int = 1) -> dict[str, ProbeOutcome]:
    async def run() -> dict[str, ProbeOutcome]:
        async with simulators() as make:
            found: dict[str, ProbeOutcome] = await outcomes(make, set(), fault, seed)
            return found

    return asyncio.run(run())


def upper_bound(bad: int, of: int) -> float:
    """The one-sided 95 % bound of a share (Clopper and Pearson, https://doi.org/10.2307/2331986), by bisection."""
    below: Callable[[float], float] = lambda p: sum(comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(bad + 1))  # noqa: E731
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) > SIDE else (low, middle)
    return high


def alarm_page(faults: dict[str, dict[str, ProbeOutcome]], servers: dict[str, list[set[str]]]) -> str:
    lines = ["# Probes: planted faults and false alarms", ""]
    lines += ["Measured by `scripts/evals/probe_alarms.py` on simulators, all probes against each server.", ""]
    lines += ["| planted fault | probe that fails | of its cases | others that fail |", "|---|---|---|---|"]
    for fault, found in faults.items():
        own, others = found[OWN[fault]], ", ".join(sorted(failed(found) - {OWN[fault]})) or "none"
        name = OWN[fault] if own.state is ProbeState.FAILED else "NOT FOUND"
        lines.append(f"| {fault} | {name} | {own.failed} of {own.cases} | {others} |")
    lines += [
        "",
        "| servers without a fault, a seed each | runs with an alarm | single probes that fail |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {alarms(runs, 1)} | {alarms(runs, len(PROBES))} |" for name, runs in servers.items()]
    return "\n".join(lines) + "\n"


def alarms(runs: list[set[str]], each: int) -> str:
    bad, of = sum(len(run) if each > 1 else bool(run) for run in runs), len(runs) * each
    return f"{bad} of {of:,} (95 %: under {100 * upper_bound(bad, of):.2g} %)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--healthy", type=int, default=200, help="runs of servers without a fault, of either kind")
    args: Any = parser.parse_args()
    faults = {fault: ask_probes(fault) for fault in OWN}
    servers: dict[str, list[set[str]]] = {}
    for name, fault in {
        "that repeat themselves": "",
        "whose free text is never the same twice": "wrong@unsteady",
    }.items():
        servers[name] = [failed(ask_probes(fault, seed)) for seed in range(args.healthy)]
        print(f"{args.healthy} servers {name}", file=sys.stderr, flush=True)
    print(alarm_page(faults, servers), end="")
    missed = any(failed(found) != {OWN[fault]} for fault, found in faults.items())
    return int(missed or any(any(runs) for runs in servers.values()))


if __name__ == "__main__":
    sys.exit(main())
