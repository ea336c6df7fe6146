"""`sparkwright check`: what it found, and `--fix` and `--undo`: changes are shown, confirmed once, made, reported."""

import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from getpass import getpass
from typing import Any

import click

from sparkwright.app.check.checking import CheckReport, check_nodes
from sparkwright.app.check.fix import (
    FixOutcome,
    Result,
    WantedFix,
    apply_fixes,
    mendable,
    undo_fixes,
    undoable,
    with_password,
)
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.services import Services
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo_text, fold_line, severity_word, simulated_mark
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NodeError, UsageError
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import counted, duration
from sparkwright.domain.values import dataclass, replace

Taken = tuple[tuple[Result, ...], tuple[NodeError, ...]]  # how it went, and the nodes that gave no answer
_COLORS = {FixOutcome.DONE: "green", FixOutcome.SKIPPED: "blue", FixOutcome.BY_HAND: "yellow", FixOutcome.FAILED: "red"}


@dataclass(frozen=True, slots=True)
class FixOptions:
    """The options of `check --fix`. only: these codes, () for all."""

    yes: bool = False
    dry_run: bool = False
    as_json: bool = False
    seize: bool = False
    only: tuple[str, ...] = ()
    ask_password: bool = False


@dataclass(frozen=True, slots=True)
class Fixed:
    """The planned changes; results: their outcomes, () for a dry run; after: the nodes afterwards."""

    wanted: tuple[WantedFix, ...]
    results: tuple[Result, ...]
    after: CheckReport


def fix(cluster: Cluster, where: ClusterOptions, how: FixOptions) -> Fixed:
    """Looks, asks, makes the changes, looks again. Raises click.Abort when the answer is no."""
    _must_be_able_to_ask("--fix", how)
    before, wanted = shared.drive_on(cluster, where, lambda services: _look(services, how.only), quiet=True)
    wanted = _with_password(cluster, where, how, wanted)
    if not _agreed(cluster, wanted, how, "--fix"):
        return Fixed(wanted, _untouched(wanted, how), before)
    done = shared.drive_on(cluster, where, lambda services: apply_fixes(services, wanted, how.seize), how.as_json)
    return Fixed(wanted, *done)


def undone(cluster: Cluster, where: ClusterOptions, how: FixOptions, of_init: bool = False) -> Taken:
    """Takes back what is recorded and prints how it went. of_init: what `init` has made."""
    wanted, results, lost = _take_back(cluster, where, how, of_init)
    if how.as_json:
        head = {"cluster": cluster.name, "simulated": cluster.simulated, "dry_run": how.dry_run}
        changes = {"steps" if of_init else "changes": wanted_json(wanted, results)}
        shared.print_json({**head, **changes, "unreachable": {error.node: error.message for error in lost}})
    else:
        if results:
            echo_text(results_text(results))
        elif not wanted:
            by = "init" if of_init else "--fix"
            echo_text(f"{simulated_mark(cluster.simulated)}nothing is recorded that {by} has changed")
        print_lost(lost)
    return results, lost


def _take_back(
    cluster: Cluster, where: ClusterOptions, how: FixOptions, of_init: bool
) -> tuple[tuple[WantedFix, ...], tuple[Result, ...], tuple[NodeError, ...]]:
    """Undoes the recorded changes. Returns them, their results (() for a dry run), and the nodes that did not
    answer."""
    _must_be_able_to_ask("--undo", how)
    wanted, lost = shared.drive_on(cluster, where, lambda services: undoable(services, how.only, of_init), quiet=True)
    wanted = _with_password(cluster, where, how, wanted)
    if not _agreed(cluster, wanted, how, "--undo"):
        return wanted, _untouched(wanted, how), lost
    why = f"{'init' if of_init else 'check'} --undo"
    results = shared.drive_on(
        cluster, where, lambda services: undo_fixes(services, wanted, how.seize, why), how.as_json
    )
    return wanted, results, lost


def print_lost(lost: Sequence[NodeError]) -> None:
    for error in lost:
        echo_text(click.style(f"error: {error.message}", fg="red"), err=True)
        echo_text(f"hint:  {error.hint}", err=True)


def leave_undone(results: Sequence[Result], lost: Sequence[NodeError]) -> None:
    """Ends with the exit code that it deserves, unless all is taken back."""
    if lost:
        raise click.exceptions.Exit(max(error.exit_code for error in lost))
    if any(one.outcome is not FixOutcome.DONE for one in results):
        raise click.exceptions.Exit(1)


async def _look(services: Services, only: tuple[str, ...]) -> tuple[CheckReport, tuple[WantedFix, ...]]:
    checked = await check_nodes(services)
    heeded = tuple(f for f in checked.findings if f.code in only or f.code not in services.cluster.ignore)
    return checked, await mendable(services, replace(checked, findings=heeded), only)


def _untouched(wanted: Sequence[WantedFix], how: FixOptions) -> tuple[Result, ...]:
    """The results if nothing can be done from here."""
    return () if how.dry_run else tuple(Result(one, FixOutcome.BY_HAND, one.by_hand) for one in wanted)


def _must_be_able_to_ask(option: str, how: FixOptions) -> None:
    if not (how.yes or how.dry_run or sys.stdin.isatty()):
        hint = "--yes goes on without a question; --dry-run only shows what would change"
        raise UsageError(f"{option} asks before it changes anything, and there is no terminal to ask on", hint)
    if how.ask_password and not sys.stdin.isatty():
        hint = f"{option} --dry-run prints the commands to type on the nodes; sudoers with NOPASSWD needs no password"
        raise UsageError("--ask-become-pass asks for a password, and there is no terminal to ask on", hint)


def _with_password(
    cluster: Cluster, where: ClusterOptions, how: FixOptions, wanted: tuple[WantedFix, ...]
) -> tuple[WantedFix, ...]:
    """Asks once, and only where sudo on a node wants a password. Raises UsageError when none of them accepts it."""
    nodes = list(dict.fromkeys(one.fix.node for one in wanted if one.rights.asks))
    if not (how.ask_password and nodes) or how.dry_run:
        return wanted
    password = Secret(getpass(f"password for sudo on {', '.join(nodes)}: "))
    wanted = shared.drive_on(cluster, where, lambda services: with_password(services, wanted, password), quiet=True)
    refused = list(dict.fromkeys(one.fix.node for one in wanted if one.rights.asks))
    if refused == nodes:
        raise UsageError(f"sudo did not accept the password on {', '.join(nodes)}", "nothing was changed; try again")
    return wanted


def _agreed(cluster: Cluster, wanted: Sequence[WantedFix], how: FixOptions, option: str) -> bool:
    """Shows what would be done; whether it is to be done."""
    ready = [one for one in wanted if not one.by_hand]
    if wanted and not (how.as_json and (how.yes or how.dry_run)):
        echo_text(simulated_mark(cluster.simulated) + proposal_text(wanted), err=how.as_json)
    if how.dry_run or not ready:
        return False
    nodes = len({one.fix.node for one in ready})
    what = f"{counted(len(ready), 'change')} on {counted(nodes, 'node')}"
    back = "; `sparkwright check --undo` takes them back" if option == "--fix" else ""
    return how.yes or click.confirm(f"{what}{back}. Make them?", err=True, abort=True)


def proposal_text(wanted: Sequence[WantedFix]) -> str:
    """Node by node what would change, with the commands as they would be typed there; nodes that are alike once."""
    bodies: dict[str, list[str]] = {}
    for node in dict.fromkeys(one.fix.node for one in wanted):
        mine = [one for one in wanted if one.fix.node == node]
        lines = [line for one in mine if not one.by_hand for line in _proposed(one)]
        if hand := [one for one in mine if one.by_hand]:
            lines.append(fold_line(f"  not done from here, these need root: {hand[0].by_hand}. By hand:", 2))
            lines += [line for one in hand for line in _proposed(one)]
        bodies.setdefault("\n".join(lines), []).append(node)
    return "\n".join(f"{click.style(', '.join(nodes), bold=True)}\n{body}" for body, nodes in bodies.items())


def _proposed(one: WantedFix) -> list[str]:
    says, change = one.fix.says, one.change
    if change:
        says = f"back from: {says} ({change.who}, {_date(change.at)}{'' if change.done else ', cut off'})"
    return [fold_line(f"  {one.code}  {says}", 11), *(f"             {line}" for line in typed_commands(one))]


def typed_commands(one: WantedFix) -> list[str]:
    """The commands as a person would type them on the node."""
    lines = []
    for command in one.commands:
        sudo = "sudo " if one.fix.root else ""
        text = command.typed or sudo + shlex.join(command.argv)
        lines += (text.replace("sudo ", "") if one.rights.root else text).splitlines()
    return lines


def results_text(results: Sequence[Result]) -> str:
    """A line for each change; nodes where it went alike in one."""
    nodes: dict[tuple[FixOutcome, str, str, str], list[str]] = {}
    for one in results:
        nodes.setdefault((one.outcome, one.wanted.code, one.wanted.fix.says, one.why), []).append(one.wanted.fix.node)
    lines = []
    for (outcome, code, says, why), names in nodes.items():
        line = fold_line(f"{outcome:<8} {code}  {', '.join(names)}: {says}{f': {why}' if why else ''}", 9)
        lines.append(click.style(line[:8], fg=_COLORS[outcome]) + line[8:])
    return "\n".join(lines)


def wanted_json(wanted: Sequence[WantedFix], results: Sequence[Result]) -> list[dict[str, Any]]:
    """An object for each: node, code, text, root, commands as typed, outcome (`proposed`: nothing was done), why."""
    told = {id(one.wanted): one for one in results}
    return [_row(one, told.get(id(one))) for one in wanted]


def _row(one: WantedFix, result: Result | None) -> dict[str, Any]:
    outcome = result.outcome.value if result else "by hand" if one.by_hand else "proposed"
    why = result.why if result else one.by_hand
    fix = one.fix
    head = {"node": fix.node, "code": one.code, "says": fix.says, "root": fix.root}
    return {**head, "commands": typed_commands(one), "outcome": outcome, "why": why}


_ORDER = tuple(Severity)


def least_severe(findings: Sequence[Finding], least: Severity) -> list[Finding]:
    """The findings that weigh at least so much."""
    return [one for one in findings if _ORDER.index(one.severity) <= _ORDER.index(least)]


def quiet_lines(checked: CheckReport) -> list[str]:
    """A line for each event that an earlier check has shown, and one for all that is ignored."""
    old = [f"{one.code}  {one.subject}: {one.evidence} (first seen {_date(at)})" for one, at in checked.old]
    codes = ", ".join(sorted({one.code for one in checked.ignored}))
    ignored = [f"{len(checked.ignored)} ignored: {codes}"] if codes else []
    return [*(fold_line(f"seen before  {line}", 13) for line in old), *ignored]


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def summary(checked: CheckReport, least: Severity = Severity.INFO, tried: Sequence[Result] = ()) -> str:
    """The last line of a check: how many nodes answered and how fast, what was found, what --fix can do about it.

    tried: how a --fix just went.
    """
    answered, findings = checked.asked - len(checked.lost), checked.findings
    if not answered:
        return f"none of {checked.asked} nodes answered: nothing was checked"
    nodes = "all " if answered == checked.asked else f"{answered} of "
    told = [f"{nodes}{checked.asked} nodes answered in {duration(checked.seconds)}: {_counts(findings)}"]
    if hidden := len(findings) - len(least_severe(findings, least)):
        told.append(f"{hidden} not shown (--severity info)")
    # What is left for --fix, and what it could not do.
    left = {(one.code, one.fix): one.fix.root for one in findings if one.fix}
    went = {(one.wanted.code, one.wanted.fix): one for one in tried}
    new = [root for key, root in left.items() if key not in went]
    hand = [went[key].wanted for key in left if key in went and went[key].outcome is FixOutcome.BY_HAND]
    asked = sum(one.rights.asks for one in hand)
    as_root = f" ({sum(new)} as root)" if any(new) else ""
    lines = [f"`sparkwright check --fix` fixes {len(new)}{as_root}"] if new else []
    lines += [f"{asked} need root: run with --ask-become-pass"] if asked else []
    return "; ".join([*told, *lines + ([f"{len(hand) - asked} need root: by hand"] if len(hand) > asked else [])])


def _counts(findings: Sequence[Finding]) -> str:
    count = Counter(one.severity for one in findings)
    each = ", ".join(f"{count[severity]} {severity_word(severity)}" for severity in Severity if count[severity])
    return f"{counted(len(findings), 'finding')} ({each})" if findings else "no findings"
