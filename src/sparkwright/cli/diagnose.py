"""`sparkwright diagnose`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkwright.adapters.log_files import Growing, Look, arriving, chunks, log_files
from sparkwright.app.diagnose.examine import Examined, examine
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo_text
from sparkwright.cli.diagnose_text import cause_text, examined_text, explanation_text
from sparkwright.cli.failure import cause_json
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.diagnosis import Cause, Explanation, LogState
from sparkwright.domain.errors import UsageError

if TYPE_CHECKING:  # what only a deployment or --watch needs is loaded there: the start is quick
    from sparkwright.app.cluster_options import ClusterOptions
    from sparkwright.app.diagnose.log_watch import Watching
    from sparkwright.app.services import Services

SCHEMA = 1
# No deployment is called like that, a file that is not there may be.
_FILE = {".gz", ".json", ".log", ".out", ".txt"}
_LOOK = 0.1  # seconds between looks at files that grow


@click.command()
@click.argument(
    "what", nargs=-1, metavar="[FILE|FOLDER|-|DEPLOYMENT]...", shell_complete=shared.complete.deployments_and_files
)
@click.option("--watch", is_flag=True, help="Follow logs and report each cause within one second.")
@shared.cluster_options
@shared.json_option
def diagnose(what: tuple[str, ...], watch: bool, where: ClusterOptions, as_json: bool) -> None:
    """Find the root cause in logs of any engine and rank, kernel logs, nvidia-smi and client errors.

    Prints the lines that prove it, and the fix; without a known cause the line that explains most. Give the logs of all
    ranks together: the deciding line is often in another one. Plain, gzip, `journalctl -o json` and Docker's json files
    are read; `-` is standard input, a FOLDER is an incident. A DEPLOYMENT is read on its nodes, or from its last saved
    evidence when nothing of it is left there.

    Exit status: 0 no failure (the server serves, stopped in good order or still starts), 1 a failure was found, named
    or not, 2 there is no text to read, 3 a node could not be reached.

    \b
    Examples:
      sparkwright diagnose head.log worker.log
      docker logs vllm 2>&1 | sparkwright diagnose -
      sparkwright diagnose deepseek-v4-flash
      sparkwright diagnose --watch /var/log/vllm.log
    """
    targets = what or ("-",)
    if not what and sys.stdin.isatty():
        raise click.UsageError("missing argument: a log, a folder, a deployment, or `-` for standard input")
    found = _watched(targets, where, as_json) if watch else _examined(targets, where, as_json)
    if found:
        raise click.exceptions.Exit(1)


def _examined(targets: tuple[str, ...], where: ClusterOptions, as_json: bool) -> bool:
    examined = _deployment(targets[0], where) if _names_deployment(targets) else _files(targets)
    if as_json:
        shared.print_json(_document(examined))
    else:
        echo_text(examined_text(examined))
    return _failed(examined)


def _document(examined: Examined) -> dict[str, Any]:
    """The schema is in docs/reference/diagnosing.md."""
    told = examined.diagnosis
    causes = {"causes": list(map(cause_json, told.causes)), "harmless": list(map(cause_json, told.harmless))}
    notes = list(map(cause_json, told.notes))
    whole = {
        "diagnosis": {**asdict(told), **causes, "notes": notes},
        "earlier": list(map(cause_json, examined.earlier)),
    }
    return {"schema": SCHEMA, **asdict(examined), **_verdict(examined), **whole}


def _failed(examined: Examined) -> bool:
    """True if anything is wrong now: for a deployment that serves, a cause counts, and a line that only looks bad does
    not."""
    told = examined.diagnosis
    return bool(told.causes) if examined.serves else told.failure


def _verdict(examined: Examined) -> dict[str, Any]:
    """The short answer: state, since which line it serves, the failure or null, and the notes."""
    told = examined.diagnosis
    serves = examined.serves or told.state is LogState.SERVING
    failure = None
    if _failed(examined):
        first = told.named[0] if told.named else None
        line = first.proof[0] if first else told.explanation.line if told.explanation else None
        failure = {"cause": first.key if first else None, "line": asdict(line) if line else None}
    notes = [cause_json(cause) for cause in (*told.notes, *told.harmless)]
    return {
        "state": LogState.SERVING if serves else told.state,
        "serves": serves,
        "serves_since": asdict(told.serves) if told.serves else None,
        "failure": failure,
        "notes": notes,
    }


def _names_deployment(targets: tuple[str, ...]) -> bool:
    """True if the single word is no file but may be a deployment's name."""
    only, path = targets[0].partition("@")[0], Path(targets[0])
    named = len(targets) == 1 and only != "-" and is_deployment_name(only)
    return named and not path.exists() and path.suffix not in _FILE


def _deployment(word: str, where: ClusterOptions) -> Examined:
    """Examines the deployment's nodes; if the cluster has nothing of it, or is missing, its last evidence on this
    machine."""
    from sparkwright.app.diagnose.diagnosing import examine_deployment  # start-up
    from sparkwright.wiring import last_evidence

    name = word.partition("@")[0]
    try:
        return shared.with_services(where, lambda services: examine_deployment(services, name), quiet=True)
    except UsageError as error:
        folder = last_evidence(name)
        if folder is None:
            raise UsageError(f"{word}: no such file, and {error.message}", error.hint) from None
        echo_text(f"nothing of {name} is on the nodes; this is its last saved evidence, {folder}", err=True)
        return _files((str(folder),))


def _files(targets: tuple[str, ...]) -> Examined:
    """Raises UsageError where none of them holds any text: nothing was examined, and that is no good news."""
    looks = [(Look(name), path) for word in targets for name, path in _sources(word)]
    found = examine(((look.name, look.pass_on(chunks(path))) for look, path in looks), datetime.now().year, {})
    odd = [look for look, _ in looks if look.trouble]
    if len(odd) == len(looks):
        told = ", ".join(f"{look.name} {look.trouble}" for look in odd[:3])
        raise UsageError(f"nothing to diagnose: {told}", "docker logs CONTAINER 2>&1 | sparkwright diagnose -")
    for look in odd:
        echo_text(f"{look.name} {look.trouble}", err=True)
    return Examined(found)


def _sources(word: str) -> Iterator[tuple[str, Path | None]]:
    """(name to show, path) of a file, of standard input, or of the logs in a folder, by their names there."""
    given = Path(word)
    if word == "-":
        yield "standard input", None
    else:
        yield from ((str(path.relative_to(given)) if given.is_dir() else word, path) for path in log_files(given))


def _watched(targets: tuple[str, ...], where: ClusterOptions, as_json: bool) -> bool:
    """Watches until the end or Ctrl-C. True if any cause was found."""
    if _names_deployment(targets):
        return shared.with_services(where, lambda services: _watch_nodes(services, targets[0], as_json), quiet=True)
    if "-" in targets and len(targets) > 1:
        raise click.UsageError("--watch follows either standard input or files")
    from sparkwright.app.diagnose.log_watch import Watching  # start-up

    watching = Watching(datetime.now().year, {})
    found = 0
    for found, one in enumerate(_from_stdin(watching) if targets == ("-",) else _from_files(watching, targets), 1):
        _tell(one, as_json, found)
    return found > 0


async def _watch_nodes(services: Services, word: str, as_json: bool) -> bool:
    from sparkwright.app.diagnose.log_watch import watch_deployment  # start-up

    found = 0
    async for cause in watch_deployment(services, word.partition("@")[0]):
        found += 1
        _tell(cause, as_json, found)
    return found > 0


def _from_stdin(watching: Watching) -> Iterator[Cause | Explanation]:
    look = Look("standard input")
    for chunk in look.pass_on(arriving()):
        yield from watching.feed("standard input", chunk)
    yield from watching.close()
    if look.trouble:
        raise UsageError(f"nothing to diagnose: standard input {look.trouble}")


def _from_files(watching: Watching, targets: tuple[str, ...]) -> Iterator[Cause | Explanation]:
    """Causes from growing files; at Ctrl-C without any cause, the line that explains."""
    files = {str(path): Growing(path) for word in targets for path in log_files(Path(word))}
    try:
        for name, file in files.items():
            yield from watching.feed(name, file.new())
        echo_text(f"following {', '.join(files)}; Ctrl-C ends it", err=True)
        yield from _growing(watching, files)
    except KeyboardInterrupt:
        yield from watching.close()
        raise


def _growing(watching: Watching, files: Mapping[str, Growing]) -> Iterator[Cause]:
    from sparkwright.app.diagnose.log_watch import QUIET  # start-up

    heard = time.monotonic()
    while True:
        news = [(name, chunk) for name, file in files.items() if (chunk := file.new())]
        for name, chunk in news:
            yield from watching.feed(name, chunk)
        heard = time.monotonic() if news else heard
        if not news:
            if time.monotonic() - heard > QUIET:
                yield from watching.quiet()
            time.sleep(_LOOK)


def _tell(one: Cause | Explanation, as_json: bool, number: int) -> None:
    if isinstance(one, Explanation):
        shared.print_line({"schema": SCHEMA, "explanation": asdict(one)}) if as_json else echo_text(
            explanation_text(one)
        )
    elif as_json:
        shared.print_line({"schema": SCHEMA, **cause_json(one)})
    else:
        echo_text(cause_text(one, number))
