"""`sparkwright incidents`: the command and its text."""

from dataclasses import asdict
from datetime import datetime
from operator import itemgetter
from typing import Any

import click

from sparkwright.app import incidents as use
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.incidents import Remembered, Shown
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned, echo, fold, fold_command, mark
from sparkwright.cli.kinds import Whole
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.incident import CHANGED, Incident, IncidentEvent
from sparkwright.domain.live import DeploymentState
from sparkwright.domain.units import duration

SCHEMA = 1


@click.group()
def incidents() -> None:
    """List and show incidents: what happened, what the supervisor did, and the saved evidence.

    Read from the head node, also after its supervisor is gone.

    \b
    Examples:
      sparkwright incidents list
      sparkwright incidents show 3
    """


def _deployment(_: click.Context, __: click.Parameter, value: str) -> str:
    name = value.partition("@")[0]
    if name and not is_deployment_name(name):
        raise click.BadParameter(f"{value!r} is no deployment's name")
    return name


@incidents.command("list")
@click.argument(
    "deployment", required=False, default="", callback=_deployment, shell_complete=shared.complete.deployments
)
@shared.cluster_options
@shared.json_option
def list_(deployment: str, where: ClusterOptions, as_json: bool) -> None:
    """List incidents, and restarts of its own programs, newest first.

    Exit status: 0 also when there is none, 3 a node could not be reached.

    \b
    Examples:
      sparkwright incidents list
      sparkwright incidents list deepseek-v4-flash --json
    """
    found = shared.drive(where, lambda services: use.remembered(services, deployment), quiet=True)
    rows = [{**_json(incident), "on": node} for node, incident in found.incidents]
    restarts = [{"deployment": name, **asdict(event), "on": node} for node, name, event in found.restarts]
    document = {"schema": SCHEMA, "incidents": rows, "restarts": restarts, "trouble": list(found.trouble)}
    for line in found.trouble if not as_json else ():
        echo(line, err=True)
    shared.answer(as_json, document, list_text(found) or "no incidents", 3 if found.lost else 0)


@incidents.command("show", short_help="Show one incident with its evidence, cause and fix.")
@click.argument("number", type=Whole(min=1), metavar="NUMBER")
@shared.cluster_options
@shared.json_option
def show(number: int, where: ClusterOptions, as_json: bool) -> None:
    """Show one incident: what it was, evidence, cause and fix, the actions with their times, and its end.

    \b
    Examples:
      sparkwright incidents show 3
      sparkwright incidents show 3 --json
    """
    shown = shared.drive(where, lambda services: use.incident(services, number), quiet=True)
    files = [{"name": name, "bytes": size} for name, size in shown.files]
    told = {**_json(shown.incident), "on": shown.node, "files": files, "diagnosis": shown.diagnosis}
    shared.answer(as_json, {"schema": SCHEMA, "incident": told}, shown_text(shown))


def _json(incident: Incident) -> dict[str, Any]:
    return {**asdict(incident), "open": incident.is_open, "away": incident.away, "changed": incident.changed}


_LONG, _SHORT = 400, 70
_LINES = 8


def when(at: float) -> str:
    """In the user's time zone."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def list_text(found: Remembered) -> str:
    """A restart has no number."""
    rows = [(incident.opened_at, _row(incident)) for _, incident in found.incidents]
    for _, name, event in found.restarts:
        rows.append((event.at, ("", when(event.at), name, event.kind, "", _cut(event.text, _SHORT))))
    return aligned([row for _, row in sorted(rows, key=itemgetter(0), reverse=True)])


def _row(incident: Incident) -> tuple[str, ...]:
    away = "" if incident.away is None else f", {duration(incident.away)} away"
    outcome = "open" if incident.is_open else f"{incident.outcome}{away}"
    kind = f"{mark(incident.simulated)}{incident.kind}"
    cause = f"; cause: {_cut(incident.cause, _SHORT)}" if incident.cause else ""
    what = f"{_cut(incident.what, _SHORT)}{cause}"
    return str(incident.number), when(incident.opened_at), incident.deployment, kind, outcome, what


def shown_text(shown: Shown) -> str:
    """What, when, the evidence, cause and fix, what was done, and how it ended."""
    incident = shown.incident
    title = f"{mark(incident.simulated)}incident {incident.number}  {incident.deployment}: {incident.kind}"
    since = incident.changed.removeprefix(f"{CHANGED} ")
    parts = [title, *([fold(f"  changed   {_cut(since)}", 12)] if since else [])]
    parts += [fold(f"  what      {incident.what}", 12), f"  began     {_began(incident)}"]
    parts += [fold(f"  evidence  {_cut(line)}", 12) for line in incident.evidence[:_LINES]]
    parts += _cause(shown)
    done = [_event(event, incident.opened_at) for event in incident.events if event.kind != CHANGED]
    parts += ["  done", *done] if done else []
    parts += [f"  {'open' if incident.is_open else 'ended':<8}  {_end(incident)}"]
    return "\n".join([*parts, *_kept(shown)])


def _began(incident: Incident) -> str:
    """And how long it took to be found: a deployment that is drained has a fault that is known."""
    found = next((event.at for event in incident.events if event.kind == DeploymentState.DRAINING), 0.0)
    later = f", detected {duration(found - incident.opened_at)} later" if found >= incident.opened_at + 1.0 else ""
    return f"{when(incident.opened_at)}{later}"


def _cut(line: str, most: int = _LONG) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _cause(shown: Shown) -> list[str]:
    """From the diagnosis that was saved; from the incident itself where that file is gone."""
    incident, causes = shown.incident, _causes(shown.diagnosis)
    if not causes and not incident.cause:
        return ["  cause     none that is known"]
    first = causes[0] if causes else {}
    code = first.get("code") or incident.code
    lines = [fold(f"  cause     {first.get('title') or incident.cause}{f' [{code}]' if code else ''}", 12)]
    lines += [fold(f"  proof     {_proof(one)}", 12) for one in first.get("proof", ())[:3]]
    # What the supervisor is at, or has done, nobody else need do.
    word = "by hand" if incident.is_open or incident.serving_at > 0 else "fix"
    steps = enumerate(first.get("fix") or incident.fix)
    return [*lines, *(fold_command(f"  {word if n == 0 else '':<8}  ", str(step)) for n, step in steps)]


def _causes(diagnosis: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Of a whole examination (`diagnose --json`) or of the bare diagnosis; what another version wrote is no cause."""
    found = (diagnosis or {}).get("diagnosis") or diagnosis or {}
    causes = found.get("causes") if isinstance(found, dict) else None
    return [one for one in causes if isinstance(one, dict)] if isinstance(causes, list) else []


def _proof(proof: Any) -> str:
    if not isinstance(proof, dict):
        return _cut(str(proof))
    return f"{proof.get('source', '')}:{proof.get('number', '')}  {_cut(str(proof.get('text', '')))}"


def _event(event: IncidentEvent, opened: float) -> str:
    text = event.text if event.text.startswith(event.kind) else f"{event.kind}: {event.text}".removesuffix(": ")
    return fold(f"    {f'+{duration(max(0.0, event.at - opened))}':>9}  {text}", 15)


def _end(incident: Incident) -> str:
    if incident.is_open:
        return "it is being worked on, or its supervisor is gone: sparkwright status"
    away = "" if incident.away is None else f", clients got nothing for {duration(incident.away)}"
    return f"{when(incident.closed_at)}, {incident.outcome}{away}"


def _kept(shown: Shown) -> list[str]:
    """Where the evidence is, and how to read it."""
    incident, names = shown.incident, ", ".join(name for name, _ in shown.files if name != "incident.json")
    if not names:
        return [f"  kept      {'no evidence but these lines' if shown.files else 'its evidence is no longer kept'}"]
    return [
        fold(f"  kept      {incident.folder} on {shown.node}: {names}", 12),
        f"  logs      sparkwright logs {incident.deployment} --incident {incident.number}",
    ]
