"""`sparkwright init`: new nodes, step by step, to a cluster file; and `--undo`."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from getpass import getpass
from pathlib import Path
from typing import Any

import click

from sparkwright.adapters.sparkrun_files import sparkrun_cluster
from sparkwright.app.check.checking import CheckReport, check_nodes
from sparkwright.app.check.fix import FixOutcome, Result, WantedFix
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.services import Services
from sparkwright.app.setup.init import InitSurvey, prepare, record_login, rights_there, survey
from sparkwright.cli import check_fix
from sparkwright.cli import options as shared
from sparkwright.cli.check_fix import leave_undone, proposal_text, results_text, summary, undone, wanted_json
from sparkwright.cli.columns import echo_text, findings_text, fold_line
from sparkwright.cli.init_login import LoginVoice, discovered, log_in_nodes
from sparkwright.cli.kinds import renamed_option
from sparkwright.domain.cluster import Cluster, Fabric, Node
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.domain.fabric_facts import WakeCard
from sparkwright.domain.finding import Rights
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts.changes import INIT
from sparkwright.planner.addressing import Layout
from sparkwright.recipes.cluster_file import load_cluster
from sparkwright.recipes.cluster_text import cluster_text, node_of
from sparkwright.recipes.edit_file import add_wake, remove_wake
from sparkwright.wiring import first_login, places

_FILE = "cluster.yaml"
_TITLES = {
    "ssh": "this machine may log in to the nodes",
    "peers": "the nodes may log in to each other",
    "fabric": "addresses and MTU on the direct link",
    "docker": "docker without sudo",
    "swap": "no swapping",
    "sysctl": "kernel settings for unified memory",
    "clock": "GPU clock cap against sudden power-offs",
    "watchdog": "a frozen node is reset by its hardware watchdog",
    "wake": "another node may switch on a node that is off (Wake-on-LAN)",
}


@dataclass(frozen=True, slots=True)
class InitOptions:
    """The command line of `init`. nodes: [NAME=]HOST each. name: of the cluster. force: the reason, '' without one."""

    nodes: tuple[str, ...]
    where: ClusterOptions
    name: str
    from_sparkrun: bool
    undo: bool
    yes: bool
    dry_run: bool
    as_json: bool
    seize: bool
    ask_become_pass: bool
    only: tuple[str, ...]
    skip: tuple[str, ...]
    force: str

    def takes(self, step: str) -> bool:
        return (not self.only or step in self.only) and step not in self.skip


@click.command()
@click.argument("nodes", nargs=-1, metavar="[[NAME=]HOST]...")
@shared.cluster_options
@renamed_option(
    "--cluster-name",
    "name",
    was="--name",
    default="",
    metavar="NAME",
    help="Name of the cluster. [default: the cluster file's]",
)
@click.option("--from-sparkrun", is_flag=True, help="Take the nodes from sparkrun's cluster; its name may follow.")
@click.option("--undo", is_flag=True, help="Revert what init has changed, the last step first.")
@click.option("--yes", is_flag=True, help="Do not ask; new host keys are accepted, changed ones never.")
@click.option("--dry-run", is_flag=True, help="Print each step with its commands and exit; change nothing.")
@renamed_option(
    "--step", "only", was="--only", multiple=True, type=click.Choice(INIT), help="Only this step; may be repeated."
)
@click.option("--skip", multiple=True, type=click.Choice(INIT), help="Without this step; may be repeated.")
@click.option("--ask-become-pass", is_flag=True, help="Ask once for the sudo password of the nodes.")
@shared.force_option
@shared.lease_option
@shared.json_option
def init(**given: Any) -> None:
    """Prepare new nodes: ssh, addresses on the direct link, docker, swap, sysctl, clock cap; write the cluster file.

    Each step is shown with its commands, asked for, recorded on its node and taken back by --undo. The fabric is kept
    only when the nodes reach each other over it within 60 s; else each node restores what it had. The interface of the
    default route and that of the ssh session are never changed. Without HOST: the nodes of the cluster file, or else
    the machines that announce ssh on this network.

    With --from-sparkrun the nodes are those of a cluster of sparkrun: the one named, else its default. Its files are
    only read.

    Exit status: 0 the nodes are prepared; 1 a step failed or is left to do by hand, or two nodes do not reach each
    other over a fabric port; 3 a node could not be reached.

    \b
    Examples:
      sparkwright init spark-1 spark-2
      sparkwright init a=ai@192.168.1.20 b=ai@192.168.1.21 --ask-become-pass
      sparkwright init --from-sparkrun --dry-run
      sparkwright init --dry-run
      sparkwright init --yes --skip clock
      sparkwright init --undo
    """
    options = InitOptions(**given)
    if not (options.yes or options.dry_run or sys.stdin.isatty()):
        hint = "--yes goes on without a question; --dry-run only shows what would change"
        raise UsageError("init asks before it changes anything, and there is no terminal to ask on", hint)
    if options.from_sparkrun:
        nodes, name = _of_sparkrun(options.nodes, options.name)
        options = replace(options, nodes=nodes, name=name)
    if options.undo:
        _undo(_cluster(options), options)
    else:
        _init(_cluster(options), options)


def _of_sparkrun(given: Sequence[str], name: str) -> tuple[tuple[str, ...], str]:
    """(hosts, name) of a cluster of sparkrun. given: its name, or nothing."""
    if len(given) > 1:
        raise UsageError(
            "--from-sparkrun takes the name of one cluster, and no hosts", "sparkwright init --from-sparkrun"
        )
    found = sparkrun_cluster(places().home, given[0] if given else "")
    return found.destinations, name or found.name


def _cluster(options: InitOptions) -> Cluster:
    """The cluster of the given nodes, else of the cluster file, else of the nodes that answer on the network."""
    given, where = options.nodes, options.where
    if not given:
        try:
            return shared.open_cluster(where)
        except RecipeError:
            if where.cluster or Path(_FILE).exists():
                raise
        given = discovered(not (options.yes or options.dry_run))
    nodes = tuple(node_of(text, number) for number, text in enumerate(given, 1))
    if len({node.name for node in nodes}) < len(nodes):
        raise UsageError("two nodes have one name", "name them: a=HOST b=HOST")
    file = where.cluster or _FILE
    return Cluster(options.name or Path(file).stem, nodes, nodes[0].name, file)


def _init(cluster: Cluster, options: InitOptions) -> None:
    where = options.where
    login = first_login(where)
    log_in_nodes(cluster, login, LoginVoice(options.yes, options.dry_run, options.takes("ssh")))
    ours = ClusterOptions(where.cluster, str(login.current or ""))
    if not options.dry_run and login.public_key():
        key = login.public_key()
        shared.drive_on(cluster, ours, lambda services: record_login(services, key), quiet=True)
    rights = _rights(cluster, ours, options)
    found = shared.drive_on(cluster, ours, lambda services: survey(services, rights, bool(options.force)), quiet=True)
    wanted = tuple(one for one in found.steps if options.takes(one.code))
    wakes = found.wakes if options.takes("wake") else {}
    if not options.as_json or not (options.yes or options.dry_run):
        _show(found, wanted, options.as_json)
        _show_wakes(wakes, options.as_json)
    chosen = () if options.dry_run else _agreed(wanted, options)
    results, after = _made(cluster, ours, options, found, chosen)
    macs = {node: card.mac for node, card in wakes.items()} if _wakes_agreed(wakes, options) else {}
    text = cluster_text(_with_wake(_with_fabric(cluster, found.layout), macs))
    wrote = _write(cluster, text, options, macs)
    _report(InitResult(found, wanted, results, after, wrote, text), options)


def _made(
    cluster: Cluster, where: ClusterOptions, options: InitOptions, found: InitSurvey, chosen: Sequence[WantedFix]
) -> tuple[tuple[Result, ...], CheckReport]:
    if not chosen:
        return (), found.checked

    async def use(services: Services) -> tuple[tuple[Result, ...], CheckReport]:
        results = await prepare(services, found, chosen, options.seize, options.force)
        await services.hosts.close(persist=False)  # a connection that is open does not have the user's new group
        return results, await check_nodes(services)

    return shared.drive_on(cluster, where, use, options.as_json)


def _rights(cluster: Cluster, where: ClusterOptions, options: InitOptions) -> dict[str, Rights]:
    """Asks for the password once; each node that wants one tries it once. Raises UsageError when none accepts it."""
    password = None
    if options.ask_become_pass and not sys.stdin.isatty():
        raise UsageError("--ask-become-pass asks for a password, and there is no terminal to ask on")
    if options.ask_become_pass:
        password = Secret(getpass("password for sudo on the nodes: "))
    rights = shared.drive_on(cluster, where, lambda services: rights_there(services, password), quiet=True)
    if password and all(one.asks for one in rights.values()):
        raise UsageError(f"sudo did not accept the password on {', '.join(rights)}", "nothing was changed; try again")
    return rights


def _show(found: InitSurvey, wanted: Sequence[WantedFix], err: bool) -> None:
    echo_text(f"{found.layout.topology}\n" if len(found.homes) > 1 else "one node\n", err=err)
    for step in INIT:
        mine = [one for one in wanted if one.code == step]
        ready = [node for node, code, _ in found.ready if code == step]
        if mine:
            echo_text(click.style(f"{step}: {_TITLES[step]}", bold=True), err=err)
            echo_text(proposal_text(mine), err=err)
        elif ready:
            echo_text(f"{step}: {_TITLES[step]}: it is so already on {', '.join(dict.fromkeys(ready))}", err=err)
    for note in found.notes:
        echo_text(fold_line(click.style("note", fg="yellow") + f"  {note}", 6), err=True)


def _agreed(wanted: Sequence[WantedFix], options: InitOptions) -> tuple[WantedFix, ...]:
    """Asks for each step that can be made from here."""
    chosen: list[WantedFix] = []
    for step in INIT:
        mine = [one for one in wanted if one.code == step]
        ready = [one for one in mine if not one.by_hand]
        where = ", ".join(dict.fromkeys(one.fix.node for one in ready))
        if mine and (options.yes or not ready or click.confirm(f"{step} on {where}?", default=True, err=True)):
            chosen += mine
    return tuple(chosen)


def _show_wakes(wakes: Mapping[str, WakeCard], err: bool) -> None:
    if wakes:
        echo_text(click.style(f"wake: {_TITLES['wake']}", bold=True), err=err)
    for node, card in wakes.items():
        off = "" if card.armed else f"; waking is off now, `sudo ethtool -s {card.interface} wol g` on {node} arms it"
        echo_text(fold_line(f'  {node}: `wake: "{card.mac}"` ({card.interface}) in the cluster file{off}', 4), err=err)


def _wakes_agreed(wakes: Mapping[str, WakeCard], options: InitOptions) -> bool:
    if options.yes or options.dry_run or not wakes:
        return bool(wakes)
    return click.confirm(f"wake for {', '.join(wakes)}?", default=True, err=True)


def _with_wake(cluster: Cluster, macs: Mapping[str, str]) -> Cluster:
    return replace(cluster, nodes=tuple(replace(one, wake=macs.get(one.name, one.wake)) for one in cluster.nodes))


def _with_fabric(cluster: Cluster, layout: Layout) -> Cluster:
    """The cluster with each node's address written down in a ring, where no network is shared by all; otherwise it is
    found."""
    shared_by = {port.link: {port.node, *(far.node for far in layout.across(port))} for port in layout.ports}
    if layout.apart or not layout.ports or any(len(nodes) == len(cluster.nodes) for nodes in shared_by.values()):
        return cluster

    def placed(node: Node) -> Node:
        first = layout.of(node.name)[0]
        return replace(node, fabric=Fabric(str(first.address.ip), first.name))

    return replace(cluster, nodes=tuple(placed(node) for node in cluster.nodes))


def _write(cluster: Cluster, text: str, options: InitOptions, macs: Mapping[str, str]) -> str:
    """The fate of the cluster file. An existing one belongs to the user: only `wake` is added. macs: to be added."""
    path = Path(cluster.source or _FILE).expanduser()
    if path.exists():
        old = path.read_text(encoding="utf-8")
        if load_cluster(old, str(path)).names != cluster.names:
            return "unchanged, but it names other nodes than these"
        if not macs or options.dry_run:
            return "unchanged"
        path.write_text(add_wake(old, macs), encoding="utf-8")
        return f"changed: `wake` of {', '.join(macs)} added"
    if options.dry_run:
        return "proposed"
    path.write_text(text, encoding="utf-8")
    return "written"


@dataclass(frozen=True, slots=True)
class InitResult:
    """The result of `init`. file: the fate of the cluster file; text: its content."""

    found: InitSurvey
    wanted: Sequence[WantedFix]
    results: Sequence[Result]
    after: CheckReport
    file: str
    text: str


def _report(done: InitResult, options: InitOptions) -> None:
    found = done.found
    if options.as_json:
        ready = [{"node": node, "step": code, "says": says} for node, code, says in found.ready]
        file = {"state": done.file, "text": done.text}
        steps = wanted_json(done.wanted, done.results)
        head = {"dry_run": options.dry_run, "topology": found.layout.topology, "steps": steps, "ready": ready}
        wakes = {node: asdict(card) for node, card in found.wakes.items()}
        more = {"notes": found.notes, "wake": wakes, "cluster_file": file, "findings": done.after.findings}
        shared.print_json({**head, **more})
    else:
        if done.results or not options.dry_run:
            echo_text(results_text(done.results) or "nothing to change")
        _ending(done.after, done.file, done.text)
    linked = found.layout.ports and not found.layout.apart
    unlinked = options.takes("fabric") and len(found.homes) > 1 and not linked
    if unlinked or any(one.outcome is not FixOutcome.DONE for one in done.results):
        raise click.exceptions.Exit(1)


def _ending(after: CheckReport, wrote: str, text: str) -> None:
    if wrote == "proposed":
        echo_text(f"cluster file that would be written:\n{text}")
        return
    echo_text(f"cluster file {wrote}" + (f":\n{text}" if "other" in wrote else ""))
    stops = [one for one in after.findings if one.severity.stops]
    if stops:
        echo_text(findings_text(stops, after.facts))
    echo_text(f"{summary(after)}; `sparkwright check` lists them")


def _undo(cluster: Cluster, options: InitOptions) -> None:
    given = options.where
    where = ClusterOptions(given.cluster, str(first_login(given).current or ""))
    steps = tuple(step for step in INIT if options.takes(step)) or ("none",)
    asked = check_fix.FixOptions(
        options.yes, options.dry_run, options.as_json, options.seize, steps, options.ask_become_pass
    )
    results, lost = undone(cluster, where, asked, of_init=True)
    if options.takes("wake") and not options.dry_run:
        _forget_wake(cluster, options)
    _forget(cluster, given, results)
    leave_undone(results, lost)


def _forget_wake(cluster: Cluster, options: InitOptions) -> None:
    """Takes the `wake` lines that init wrote out of the cluster file."""
    path = Path(cluster.source or _FILE).expanduser()
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if (new := remove_wake(old)) != old:
        path.write_text(new, encoding="utf-8")
        echo_text(f"{path}: `wake` removed", err=options.as_json)


def _forget(cluster: Cluster, where: ClusterOptions, results: Sequence[Result]) -> None:
    """The way to nodes that our key no longer opens."""
    gone = {one.wanted.fix.node for one in results if one.wanted.code == "ssh" and one.outcome is FixOutcome.DONE}
    for node in cluster.nodes:
        if node.name in gone:
            first_login(where).forget(node.ssh)
