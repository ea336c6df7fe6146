"""docs/reference/diagnose-fresh.md: how the failures were made, and the score before any rule had seen them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diagnose_fresh import FreshCase

Score = dict[str, Any]
HEAD = (
    "| cases | number | named first | in the first three | nothing named | confident and wrong | family first | "
    "explaining line shown | no cause exists | of these, something named |\n|---|---|---|---|---|---|---|---|---|---|"
)
INTRO = """# How often `diagnose` is right on logs that it has not seen

<!-- Made by `make diagnose-fresh ARGS=--page` from tests/data/failures-fresh; do not edit. -->

{number} failures of real programs, provoked one by one from a table of scenarios
(`scripts/diagnose/record_failures/scenarios`, seed 1) and recorded on 2026-11-23. The figures are the
**first** score: no rule, cause or signature had seen these logs, and none was changed before they
were scored. They do not change when the rules do; `make diagnose-fresh` prints today's next to
them. The newest fresh figures, of public failures and healthy logs of others, lead
[diagnose accuracy](diagnose-accuracy.md).

## How they were made

- Each scenario is a shell snippet that runs in namespaces of its own (network, mounts, hostname,
  processes) with the cause built in: a wrong flag, a cut checkpoint, a hub that answers 429, a
  cable pulled. The true keys of the catalogue and the line that explains the failure
  were written down with the scenario, and corrected from the log where the program did or printed
  something else; both were fixed before `diagnose` was asked. A scenario whose line does not appear is
  not recorded. Several keys are right where a log cannot separate them.
- {known} of the {number} have a cause in the catalogue. The other {unknown} do not: right is to
  name nothing, or at least nothing with confidence. They count only in the last two columns and in
  *confident and wrong*.
- SGLang and vLLM: the published wheels on 1x H100 (torch 2.11, CUDA 13), small random models,
  without FlashAttention 3 and CUDA graphs. NCCL: two ranks that share this GPU in two network
  namespaces. Everything else: one Linux machine without a GPU, Debian 12. The hub and the registry
  are servers on the machine that answer with errors (`hub.py`); nothing came from outside.
- Logs longer than 45 kB keep their start, the lines around the cause and their end. Paths of the
  machine are rewritten.
- The same cause occurs at most a few times per program, in different words. Single causes still
  weigh more than for users: most are faults of configuration, files, network and host at the start;
  few are of kernels, RDMA and long runs.
- A scenario without a second node had no network but the loopback, and its host name did not
  resolve. SGLang and vLLM report that in harmless lines ("Using the loopback address as fallback",
  "Failed to get the IP address"), and `diagnose` takes them for causes. On a normal host these lines
  are absent. With them taken out, SGLang has 33 of 69 named first (the same) and 53 in the first
  three, vLLM 24 of 39 (instead of 19). The recorder gives each scenario an address and a name since.
- One truth was corrected after the score: `nccl-plugin-missing` (NCCL_NET=IB without an RDMA
  device) has no cause in the catalogue. `docker-command-missing` has one since 2026-11-28.
- Not recorded: systemd as PID 1, two real nodes, a real registry, GB10 hardware. llama.cpp is the
  server of the xllamacpp wheel (its own parser for options, its own class for the rest).

Confident: 0.85 and more. *Family*: of the cause named first. *Explaining line shown*: it is among
the lines of proof of the first three causes; in a log with no cause of the catalogue it can hardly
be, because only causes show lines today.
"""
# Of the recordings of vLLM 0.33.0: the kinds of which nobody had seen a log before, of this version or 0.32.0.
NEW_KINDS = {
    "cache-above-gpu",
    "control-device-missing",
    "cudnn-empty",
    "experts-nvfp4-trtllm",
    "head-size",
    "nvml-library-missing",
    "python-headers",
    "same-gpu-twice",
}
NEWER = """
## vLLM 0.33.0 on a GPU, recorded on 2026-11-30

{number} starts that fail, on 1x H200 (torch 2.14, CUDA 13), whole logs, scored before anything was changed
for them. Their causes were written down before any of them ran, and none was changed afterwards
(tests/data/failures-vllm-0.33; `make diagnose-fresh ARGS="--data tests/data/failures-vllm-0.33"`
prints today's score; `make record-failures ARGS="--only vllm033 --out tests/data/failures-vllm-0.33"`
records them again).

{table}

- 69 were planned. 19 did not show their line, most of them because they had not failed yet after two
  minutes. Nine more died of something that was not planned (a `cuda-python` of 12.6 had been unpacked
  over `cuda-bindings` of 13.5), and are left out although their line occurs among the arguments that vLLM prints.
- Most of these kinds had been recorded before, with vLLM 0.32.0 on a CPU or in a first try on a GPU, and
  four causes were written from those logs: the first row is no wholly unseen one. The second row is.
- Both that are confident and wrong: plain weights loaded as sharded ones, whose cause came into the
  catalogue after the label (`checkpoint-not-presharded`), and a file of tool parsers that is not
  there, which vLLM, too, reports as an unknown parser.
"""
REPEAT = """
## Halves

The hash of its id puts each case into one half. Rules may be developed from `develop`; the logs of
`unseen` are not read for rules, only scored.

{table}

## What was not named, in the half to develop from

| case | true cause | named |
|---|---|---|
{misses}

## How to repeat it

`make record-failures ARGS="--only hf ssh"` records again those whose ids begin so (root, Linux; the
programs on PATH; `--list` prints all ids, `--seed N` draws other values). For an engine, on a
machine with a GPU that has it on PYTHONPATH and MODELS (see `scripts/diagnose/record_failures/models.sh`):
`python -m record_failures --only sglang --raw raw --out out`, then here `make record-failures
ARGS="--only sglang --taken raw"`. `make diagnose-fresh ARGS=--first` scores new cases and adds
them; `ARGS="--half develop"` also lists the misses of that half.
"""


def fresh_page(first: Sequence[Score], cases: Sequence[FreshCase], newer: Sequence[Score]) -> str:
    """newer: the first scores of vLLM 0.33.0."""
    truth = {case.id: case for case in cases}
    known = sum(one["known"] for one in first)
    intro = INTRO.format(number=len(first), known=known, unknown=len(first) - known)
    programs = sorted({one["program"] for one in first})
    versions = {case.program: case.version for case in cases}
    table = [HEAD, score_row("**all**", first)]
    table += [score_row(f"{name} ({versions[name]})", [o for o in first if o["program"] == name]) for name in programs]
    halves = [HEAD, *(score_row(half, [one for one in first if one["half"] == half]) for half in ("develop", "unseen"))]
    misses = [describe_miss(one, truth[one["id"]]) for one in first if one["half"] == "develop" and missed(one)]
    scores = "\n".join(["\n## First score\n", *table])
    kinds = [one for one in newer if one["id"].removeprefix("vllm033-") in NEW_KINDS]
    table = [HEAD, score_row("all", newer), score_row("kinds of which no log had been seen", kinds)]
    scores += "\n" + NEWER.format(number=len(newer), table="\n".join(table))
    return intro + scores + "\n" + REPEAT.format(table="\n".join(halves), misses="\n".join(misses))


def score_row(title: str, scores: Sequence[Score]) -> str:
    known = [one for one in scores if one["known"]]
    other = [one for one in scores if not one["known"]]
    cells = [
        *(score_share(known, _flag(name)) for name in ("first", "three")),
        score_share(known, lambda one: not one["named"]),
        *(score_share(scores, _flag(name)) for name in ("wrong", "family", "line")),
        str(len(other)),
        score_share(other, lambda one: bool(one["named"])),
    ]
    return f"| {title} | {len(scores)} | {' | '.join(cells)} |"


def _flag(name: str) -> Callable[[Score], bool]:
    return lambda one: bool(one[name])


def score_share(scores: Sequence[Score], test: Callable[[Score], bool]) -> str:
    return f"{sum(map(test, scores))} ({sum(map(test, scores)) / len(scores):.0%})" if scores else "-"


def missed(one: Score) -> bool:
    return not one["first"] if one["known"] else bool(one["named"])


def describe_miss(one: Score, case: FreshCase) -> str:
    named = ", ".join(f"{key} {sure:.2f}" for key, sure in one["named"]) or "nothing"
    return f"| {one['id']} | {' or '.join(case.keys) or f'none ({case.family})'} | {named} |"
