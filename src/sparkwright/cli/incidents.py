"""`sparkwright incidents`: the command and its text."""

from dataclasses import asdict
from datetime import datetime
from operator import itemgetter
from typing import Any

import click

from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.diagnose import incidents as use
from sparkwright.app.diagnose.incidents import Remembered, ShownIncident
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned, echo_text, fold_command, fold_line, simulated_mark
from sparkwright.cli.kinds import Whole
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.incident import Incident
from sparkwright.report.incident_story import shortened, story_of

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
def list_incidents(deployment: str, where: ClusterOptions, as_json: bool) -> None:
    """List incidents, and restarts of its own programs, newest first.

    Exit status: 0 also when there is none, 3 a node could not be reached.

    \b
    Examples:
      sparkwright incidents list
      sparkwright incidents list deepseek-v4-flash --json
    """
    found = shared.with_services(where, lambda services: use.remembered(services, deployment), quiet=True)
    rows = [{**_json(incident), "on": node} for node, incident in found.incidents]
    restarts = [{"deployment": name, **asdict(event), "on": node} for node, name, event in found.restarts]
    document = {"schema": SCHEMA, "incidents": rows, "restarts": restarts, "trouble": list(found.trouble)}
    for line in found.trouble if not as_json else ():
        echo_text(line, err=True)
    shared.answer(
        as_json,
        document,
        list_text(found) or ("no incidents that can be read" if found.lost else "no incidents"),
        3 if found.lost else 0,
    )


@incidents.command("show", short_help="Show one incident with its evidence, cause and fix.")
@click.argument("number", type=Whole(min=1), metavar="NUMBER")
@shared.cluster_options
@shared.json_option
def show_incident(number: int, where: ClusterOptions, as_json: bool) -> None:
    """Show one incident: what it was, evidence, cause and fix, the actions with their times, and its end.

    \b
    Examples:
      sparkwright incidents show 3
      sparkwright incidents show 3 --json
    """
    shown = shared.with_services(where, lambda services: use.incident(services, number), quiet=True)
    files = [{"name": name, "bytes": size} for name, size in shown.files]
    told = {**_json(shown.incident), "on": shown.node, "files": files, "diagnosis": shown.diagnosis}
    shared.answer(as_json, {"schema": SCHEMA, "incident": told}, shown_text(shown))


def _json(incident: Incident) -> dict[str, Any]:
    told = {"away": incident.away, "changed": incident.changed, "unwatched_at": incident.unwatched_at}
    return {**asdict(incident), "open": incident.is_open, **told}


_SHORT = 70
_LINES = 8


def local_time(at: float) -> str:
    """The time in the user's time zone."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def list_text(found: Remembered) -> str:
    """A restart has no number."""
    rows = [(incident.opened_at, _row(incident)) for _, incident in found.incidents]
    for _, name, event in found.restarts:
        rows.append((event.at, ("", local_time(event.at), name, event.kind, "", shortened(event.text, _SHORT))))
    return aligned([row for _, row in sorted(rows, key=itemgetter(0), reverse=True)])


def _row(incident: Incident) -> tuple[str, ...]:
    away = f", {incident.away_text} away" if incident.away_text else ""
    outcome = f"{incident.outcome_text}{away}"
    kind = f"{simulated_mark(incident.simulated)}{incident.kind}"
    cause = f"; cause: {shortened(incident.cause, _SHORT)}" if incident.cause else ""
    what = f"{shortened(incident.what, _SHORT)}{cause}"
    return str(incident.number), local_time(incident.opened_at), incident.deployment, kind, outcome, what


def shown_text(shown: ShownIncident) -> str:
    """The cause with its proof and doubt, what happened and was done, how it ended, and what to do by hand."""
    incident, told = shown.incident, story_of(shown.incident, shown.diagnosis)
    code = f" [{told.code}]" if told.code else ""
    rows = [("cause", f"{told.cause}{code}{told.sureness and f' ({told.sureness})'}")]
    rows += [("proof", line) for line in told.proof]
    rows += [("doubt", f"not known: {line}") for line in told.doubts]
    rows += [("what", told.what), ("began", ", ".join(filter(None, (local_time(incident.opened_at), told.detected))))]
    rows += [("changed", told.changed)] if told.changed else []
    rows += told.noted[:_LINES]
    done = [fold_line(f"    {moment.offset:>9}  {moment.text}", 15) for moment in told.moments]
    ended = ("open", told.end) if incident.is_open else ("ended", f"{local_time(incident.closed_at)}, {told.end}")
    title = f"{simulated_mark(incident.simulated)}incident {incident.number}  {incident.deployment}: {incident.kind}"
    parts = [title, *(_row_text(*row) for row in rows), *(["  done", *done] if done else []), _row_text(*ended)]
    steps = [(told.steps_word if not n else "", step) for n, step in enumerate(told.steps)]
    steps += [("settle" if not n else "", step) for n, step in enumerate(told.settle)]
    return "\n".join([*parts, *(fold_command(f"  {word:<8}  ", step) for word, step in steps), *_kept(shown)])


def _row_text(name: str, text: str) -> str:
    return fold_line(f"  {name:<8}  {text}", 12)


def _kept(shown: ShownIncident) -> list[str]:
    """The place of the evidence, and the way to read it."""
    incident, names = shown.incident, ", ".join(name for name, _ in shown.files if name != "incident.json")
    if not names:
        return [f"  kept      {'no evidence but these lines' if shown.files else 'its evidence is no longer kept'}"]
    return [
        fold_line(f"  kept      {incident.folder} on {shown.node}: {names}", 12),
        f"  logs      sparkwright logs {incident.deployment} --incident {incident.number}",
    ]
