"""The table: on a terminal, and as docs/reference/drills.md."""

from collections.abc import Sequence

from drills.figures import BEYOND, DEAD, FROZEN, GONE, LEFT, REFUSED, FigureRow
from drills.outage import BEYOND as BACK
from drills.outage import CLOSE, PATIENCE, TRUTH, View
from drills.outage_drill import EVERY
from drills.results import DrillResult

# Processes of results.json by another name.
_PROGRAMS = {"door": "gateway"}
HEADS = (
    "drill",
    "noticed",
    "refused",
    "serving again",
    "beyond start",
    "lost",
    "failed",
    "answered",
    "false alarms",
    "",
)


def results_text(found: Sequence[DrillResult]) -> str:
    lines = [HEADS, *(_cells(one.row) for one in found if one.view is None)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    made = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    for one in found:
        made += [" | ".join(_outage(one))] if one.view else [f"{one.row.name}: {words}" for words in one.row.missed]
    return "\n".join(made)


def _outage(one: DrillResult) -> tuple[str, ...]:
    """The cells of a drill that watched clients and `status`."""
    seen = one.view or View()
    away = ", ".join("not back" if each is None else f"{each:.1f} s" for each in seen.away)
    verdict = "ok" if one.row.passed else f"MISSED: {'; '.join(one.row.missed)}"
    cells = (one.row.name, away or "-", seen.got, seen.status or "-", " / ".join(seen.incidents) or "none", verdict)
    return tuple(cell.replace("|", "/") for cell in cells)


def _cells(one: FigureRow) -> tuple[str, ...]:
    times = tuple(seconds(t) for t in (one.detected, one.refused, one.serving, one.beyond))
    failed = str(one.turned_away + one.broken)
    return (one.name, *times, str(one.lost), failed, str(one.answered), str(one.false_alarms), verdict(one))


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def verdict(one: FigureRow) -> str:
    return "ok" if one.passed else "MISSED"


PAGE = """\
# Drills

Written by `make drills` from what it measured; do not edit.

Real faults on two nodes (system containers with their own systemd, sshd and dockerd; a restart of one is a reboot of a
node), under clients that send streaming requests of mixed lengths through the gateway. What is simulated: the
engine is sparkwright's simulator of vLLM 0.21.0 (no model runs), the nodes' GPU and memory figures follow what it
does, and all nodes share this machine's kernel and its {cpus} CPUs (Python {python}). Drills that name llama.cpp run
the real one, with a model of random weights. The hardware watchdog needs a machine that freezes: `make vm-watchdog`.

`make drills` runs all of it, `ARGS="--only garbage,leak"` some, `ARGS="--resume"` what has not met its targets yet.
Each drill's last result is saved in tools/drills/results.json, and this page is made of those: with when it was
measured, at which commit (`+`: with changes), at what load of the machine (the drills' own is in it), and at what
niceness, if any: below 0 the drills and their nodes went before what else ran.

## Outages as clients and the operator see them

A client sends a chat completion every {every:g} s through the gateway, over a new connection each time, and gives
up after {patience:g} s. `away` is from the first request that got nothing useful until the first good answer; `-`:
none. Next to it `status` is called again and again, a second after the last call has ended: each state with its exit
code and the seconds from the fault between which it was printed. `ARGS="--outages"` runs these alone.

Targets: from {truth:g} s into an outage `status` does not print `ready`; `away` of the incident is what clients had, to
{close:g} s; what and cause name the fault, and nothing that is not it; each 503 has a reason and a Retry-After; after a
first SIGKILL clients are away for the engine's own start and {back:g} s at most; restarts are recorded; at the end it
serves.

A program of the gateway that hangs and keeps its port may be called `ready` for longer: up to 3 s until the next probe,
3 s for it, a look at the head, 2 s, and 5 s for a second probe. One probe in vain proves nothing, for a program that
was killed is back within a second. So 13 s and the look are the bound, and the drill of the key check misses 5 s.

| fault | away for clients | what clients got | what `status` printed | incident | targets |
| --- | --- | --- | --- | --- | --- |
{outages}

{outages_verdict}

## Targets of the supervisor

- A dead rank is noticed in {dead:g} s and refused at the gateway in {refused:g} s; a frozen or spinning engine is
  noticed in {frozen:g} s beyond what it may be busy. What a node that reboots reports counts from when it
  is back.
- A leak is announced when a tenth of the headroom is gone ({gone:.0%} at most), with {left:g} minutes left or more.
- Serving again within {beyond:g} s beyond the engine's own start, from its first rank's start to a token, as a plain
  `up` takes it in the same run. It counts from the notice, and where something has to be there again first (a node that
  boots, an image, a port, a cable) from when it is; where the supervisor is killed, too, from that.
- No request is lost: accepted, and then neither answered nor ended with an error that its client sees.
- No false restart.

A second fault within ten minutes waits for its back-off (5 s, 30 s, 2 min), on purpose: so each drill begins with a
new deployment, whose supervisor has not launched anything yet. Where one is scaled, so is the time in which it may be
noticed: that column is the scaled one.

## Results of the supervisor

| drill | noticed | refused | serving again | beyond start | lost | failed | answered | false alarms | targets |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
{table}

`noticed`, `refused` and `serving again` count from the injection. `failed`: requests refused with a 503 or ended with
an error. {verdict}

## Each of them

{details}

## Footprint

`run` is the supervisor, `gateway` the service behind Caddy, `helpers` are the supervisor's ssh sessions and what
samples the head's node, whose nvidia-smi is a Python script here.

{footprint}
"""


def results_page(found: Sequence[DrillResult], names: Sequence[str]) -> str:
    """names: of all drills. The page of a part reports what is not in it."""
    rows = [one.row for one in found if one.view is None]
    seen = [one for one in found if one.view]
    footprint = [f"- {_PROGRAMS.get(name, name)}: {value}" for one in found for name, value in one.footprint.items()]
    last = max((one.when for one in found), key=lambda when: when.at)
    return PAGE.format(
        cpus=last.cpus,
        python=last.python,
        dead=DEAD,
        refused=REFUSED,
        frozen=FROZEN,
        gone=GONE,
        left=LEFT / 60,
        beyond=BEYOND,
        every=EVERY,
        patience=PATIENCE,
        truth=TRUTH,
        close=CLOSE,
        back=BACK,
        outages="\n".join("| " + " | ".join(_outage(one)) + " |" for one in seen),
        outages_verdict=f"{sum(one.row.passed for one in seen)} of {len(seen)} meet all their targets.",
        table="\n".join("| " + " | ".join(_cells(one)) + " |" for one in rows),
        verdict=_verdict(rows) + _unmeasured(found, names),
        details="\n".join(map(_detail, found)),
        footprint="\n".join(footprint) or "Not measured yet.",
    )


def _verdict(rows: Sequence[FigureRow]) -> str:
    return f"{sum(one.passed for one in rows)} of {len(rows)} drills meet all their targets."


def _unmeasured(found: Sequence[DrillResult], names: Sequence[str]) -> str:
    missing = [name for name in names if name not in {one.row.name for one in found}]
    return f" Not measured: {', '.join(missing)}." if missing else ""


def _detail(one: DrillResult) -> str:
    row, when = one.row, one.when
    words = [row.fault, f"Phases: {row.action or 'none'}"]
    words += [f"The supervisor's waits were scaled by {row.scale:g}"] if row.scale != 1 else []
    words += [f"Seen: {'; '.join(row.notes)}"] if row.notes else []
    words += [f"Missed: {'; '.join(row.missed)}"] if row.missed and one.view is None else []
    here = [f"load {when.load:g}", *([f"niceness {when.nice}"] if when.nice else [])]
    here += [f"the engine's own start {when.start:.1f} s"] if when.start else []
    words += [f"Measured {when.at} UTC at {when.commit or 'no commit'}, {', '.join(here)}"]
    return f"- **{row.name}**: {'. '.join(sentence.rstrip('.') for sentence in words)}."
