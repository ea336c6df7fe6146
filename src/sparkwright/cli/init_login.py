"""The first step of `init`: this machine's way to each node. Host keys are shown once, passwords go to ssh itself."""

import shlex
import sys

import click

from sparkwright.adapters.first_login import FirstLogin, LoginWay, fingerprints
from sparkwright.app.setup.init import login_fix
from sparkwright.cli.columns import echo_text
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.errors import UsageError
from sparkwright.domain.values import dataclass
from sparkwright.wiring import announced


@dataclass(frozen=True, slots=True)
class LoginVoice:
    """may: whether a key may be installed."""

    yes: bool
    dry_run: bool
    may: bool


def discovered(may_ask: bool) -> tuple[str, ...]:
    """The machines on this network that the user names, the head first. Raises UsageError."""
    names = announced()
    if not names:
        hint = "name them: sparkwright init HOST HOST; on a node, `ip neigh` lists the neighbours on its cable"
        raise UsageError("no machine on this network announces ssh by mDNS", hint)
    echo_text(f"machines that announce ssh on this network: {', '.join(names)}", err=True)
    if not may_ask:
        raise UsageError("which of them are the nodes is yours to decide", f"sparkwright init {' '.join(names[:4])}")
    chosen = click.prompt("which of them are the nodes, the head first", default=" ".join(names[:4]), err=True)
    return tuple(str(chosen).split())


def log_in_nodes(cluster: Cluster, login: FirstLogin, voice: LoginVoice) -> None:
    """Afterwards each node is reached without a question. Raises Unreachable, and Abort."""
    for node in cluster.nodes:
        if not (node.is_local or login.works(node.ssh)):
            _open(node, login, voice)


def _open(node: Node, login: FirstLogin, voice: LoginVoice) -> None:
    way = login.way(node.ssh)
    if voice.dry_run or not voice.may:
        if login.resolves(node.ssh):
            _tell(node, login, way)
        raise login.refusal(node.name, node.ssh)
    if not login.knows(way):
        _confirm(node, login, way, voice)
    login.prepare(node.ssh, way)
    if login.works(node.ssh):
        return
    if not sys.stdin.isatty():
        raise login.refusal(node.name, node.ssh)
    echo_text(f"{node.name}: ssh asks for what lets you in to {node.ssh} now; our key is installed with it", err=True)
    login.install(node.name, node.ssh, login_fix(node.name, login.public_key()).do[0])
    if not login.works(node.ssh):
        raise login.refusal(node.name, node.ssh)


def _tell(node: Node, login: FirstLogin, way: LoginWay) -> None:
    """The commands of the step, where it is not made."""
    echo_text(f"{node.name}\n  ssh  this machine may not log in to {node.ssh} yet", err=True)
    echo_text(
        f"       ssh-keyscan -p {shlex.quote(way.port)} {shlex.quote(way.host)} >>~/{_short(login)}/known_hosts",
        err=True,
    )
    echo_text(f"       ssh-copy-id -i ~/{_short(login)}/id_ed25519 {shlex.quote(node.ssh)}", err=True)


def _short(login: FirstLogin) -> str:
    return "/".join(login.folder.parts[-3:])


def _confirm(node: Node, login: FirstLogin, way: LoginWay, voice: LoginVoice) -> None:
    keys = login.host_keys(node.ssh, way)
    echo_text(f"{node.name}: host keys of {way.host} port {way.port}, seen for the first time:", err=True)
    for kind, digest in fingerprints(keys):
        echo_text(f"  {kind}  {digest}", err=True)
    echo_text("  the node's console prints the same: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub", err=True)
    if not voice.yes:
        if not sys.stdin.isatty():
            raise UsageError("a new host key must be confirmed, and there is no terminal to ask on", "--yes accepts it")
        click.confirm("are they the node's?", err=True, abort=True)
    login.trust(way, keys)
