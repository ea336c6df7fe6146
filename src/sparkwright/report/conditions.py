"""Under what a run was measured, as pairs of a name and a text."""

import shlex

from sparkwright.domain.run import Run
from sparkwright.domain.units import duration
from sparkwright.domain.workload import Slo
from sparkwright.report.texts import engine_text, limit_text, moment, percent, tokens

UNKNOWN = "not known"


def conditions(run: Run) -> list[tuple[str, str]]:
    """Every line that a stranger needs to repeat it; what is missing and should be there is marked as missing."""
    return [(name, text) for name, text in (*_served(run), *_sent(run), *_measured(run)) if text]


def _served(run: Run) -> list[tuple[str, str]]:
    known, missing = run.conditions, run.conditions.missing
    return [
        ("model", known.model or UNKNOWN),
        ("engine", _needed(engine_text(known), "engine" in missing)),
        ("image", known.image),
        ("recipe", " ".join(part for part in (known.recipe, known.recipe_hash) if part)),
        ("deployment", known.deployment),
        ("nodes", _needed("\n".join(known.nodes), "nodes" in missing)),
        ("endpoint", known.endpoint),
        ("context limit", f"{tokens(known.max_context)} tokens" if known.max_context else ""),
        ("engine's flags", _needed(shlex.join(known.flags), "flags" in missing)),
    ]


def _sent(run: Run) -> list[tuple[str, str]]:
    work = run.workload
    thinking = {None: "the server's default", True: "on", False: "off"}[work.thinking]
    return [
        ("workload", f"{work.name}@{work.version}: {work.title}"),
        ("repeats", str(work.repeats)),
        ("seed", str(work.seed)),
        ("thinking", thinking),
        ("sampling", f"temperature {work.temperature:g}{', end of text ignored' if work.ignore_eos else ''}"),
        ("limits (SLO)", slo_text(work.slo) if work.slo else ""),
        ("tokenizer", run.conditions.tokenizer or UNKNOWN),
    ]


def _measured(run: Run) -> list[tuple[str, str]]:
    known = run.conditions
    took = f", {duration(run.ended - run.began)}" if run.ended > run.began else ""
    return [
        ("run", f"{run.id}{', ' + run.state if run.state != 'done' else ''}"),
        ("imported from", run.imported),
        ("began", moment(run.began) + took),
        ("client", " on ".join(part for part in (known.client, known.client_host) if part)),
        ("clock", known.clock),
        ("tags", ", ".join(run.tags)),
        ("note", run.note),
    ]


def _needed(text: str, missing: bool) -> str:
    return text or (UNKNOWN if missing else "")


def slo_text(slo: Slo) -> str:
    """`TTFT 2 s, TPOT 50 ms, for 90 % of requests`."""
    limits = (("TTFT", slo.ttft), ("TPOT", slo.tpot), ("end to end", slo.end_to_end))
    told = [f"{name} {limit_text(limit)}" for name, limit in limits if limit]
    return f"{', '.join(told)}, for {percent(slo.share)} of requests" if told else ""
