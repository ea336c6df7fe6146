"""The table: on a terminal, as JSON, and as docs/drills.md."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from drills.figures import BEYOND, DEAD, FROZEN, REFUSED, Row

HEADS = ("drill", "noticed", "refused", "serving again", "beyond start", "lost", "told", "answered", "false alarms", "")


def text(rows: Sequence[Row]) -> str:
    lines = [HEADS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    made = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    for one in rows:
        made += [f"{one.name}: {words}" for words in one.missed]
    return "\n".join(made)


def _cells(one: Row) -> tuple[str, ...]:
    times = tuple(seconds(t) for t in (one.detected, one.refused, one.serving, one.beyond))
    told = str(one.turned_away + one.broken)
    return (one.name, *times, str(one.lost), told, str(one.answered), str(one.false_alarms), verdict(one))


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def verdict(one: Row) -> str:
    return "ok" if one.passed else "MISSED"


def tree(rows: Sequence[Row], conditions: Mapping[str, Any], footprint: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "simulated": True,
        "conditions": dict(conditions),
        "footprint": dict(footprint),
        "drills": [asdict(one) | {"passed": one.passed} for one in rows],
    }


PAGE = """\
# Drills

Written by `make drills` from what it measured; do not edit.

Real faults on two nodes (system containers with their own systemd, sshd and dockerd; a restart of one is a reboot of a
node), under clients that send streaming requests of mixed lengths through the front door. What is simulated: the
engine is sparkwright's twin of vLLM 0.21.0 (no model runs), the nodes' GPU and memory figures follow what the twin
does, and all nodes share this machine's kernel and its {cpus} CPUs.

{conditions}

## Targets

- A dead rank is noticed in {dead:g} s and refused at the door in {refused:g} s; a frozen or spinning engine in
  {frozen:g} s beyond what it may be busy.
- Serving again within {beyond:g} s beyond the engine's own start, counted from the notice (and from when a rebooted
  node is back). The engine's own start is measured in the same run by a plain `up`: {start}.
- No request is lost: accepted, and then neither answered nor ended with an error that its client sees.
- No false restart.

## Results

{table}

`noticed`, `refused` and `serving again` count from the injection. `told`: requests refused with a 503 or ended with an
error. {passed} of {count} drills meet all their targets.

{details}

## Footprint

{footprint}
"""


def page(rows: Sequence[Row], conditions: Mapping[str, Any], footprint: Mapping[str, Any]) -> str:
    return PAGE.format(
        cpus=conditions.get("cpus", "?"),
        conditions=", ".join(f"{name} {value}" for name, value in conditions.items()) + ".",
        dead=DEAD,
        refused=REFUSED,
        frozen=FROZEN,
        beyond=BEYOND,
        start=f"{float(conditions.get('start', 0.0)):.1f} s",
        table=_markdown(rows),
        passed=sum(one.passed for one in rows),
        count=len(rows),
        details="\n".join(_detail(one) for one in rows),
        footprint="\n".join(f"- {name}: {value}" for name, value in footprint.items()) or "Not measured in this run.",
    )


def _markdown(rows: Sequence[Row]) -> str:
    lines = [(*HEADS[:-1], "targets"), tuple("---" for _ in HEADS), *map(_cells, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _detail(one: Row) -> str:
    words = [f"{one.fault}", f"Phases: {one.action or 'none'}"]
    words += [f"The supervisor's waits were scaled by {one.scale:g}"] if one.scale != 1 else []
    words += [f"Seen: {'; '.join(one.notes)}"] if one.notes else []
    words += [f"Missed: {'; '.join(one.missed)}"] if one.missed else []
    return f"- **{one.name}**: {'. '.join(words)}."
