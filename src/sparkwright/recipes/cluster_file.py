"""Cluster text -> domain Cluster. cluster-reference.yaml explains every key."""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from sparkwright.domain.cluster import Cluster, Fabric, Node, NodePaths, Transfer
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.notify import MAX_CHANNELS, Form, Notify
from sparkwright.domain.values import replace
from sparkwright.recipes.problems import Complaint, drop_unset, problems_of, report, valid_keys, validated
from sparkwright.recipes.values import (
    Matching,
    Part,
    Seconds,
    Size,
    Text,
    Within,
    domain_value,
    is_secret_name,
    looks_secret,
    shown_value,
)
from sparkwright.recipes.yaml_lines import Path, dotted, read_yaml

_NAME = Matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "letters, digits, `.`, `_` and `-`, at most 63, as in spark-1")
_SSH = Matching(
    r"ssh://[^\s/-]\S*|[^\s:@-][^\s:@]*(@[^\s:@-][^\s:@]*)?|[^\s@:-]*@?[0-9a-fA-F:]*:[0-9a-fA-F:]*:[0-9a-fA-F:%\w]*",
    "what OpenSSH takes: a host, user@host, an alias of ~/.ssh/config, ssh://user@host:port, or `local`",
)
_FOLDER = Matching(r"(/|~/)[^\n:]*", "an absolute path, or one that begins with ~/")
_CODE = Matching(r"[A-Z]{2,8}[0-9]{3}", "the code of a finding as `sparkwright check` prints it, as in MEM009")
_MAC = Matching(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", "the MAC address of a network card, as in 48:b0:2d:00:00:01")
_STREAMS = Within(0, 32, "sshd lets in ten at once, and sixteen were no faster than eight")
_VARIABLE = Matching(r"[A-Za-z_][A-Za-z0-9_]{0,63}", "the name of an environment variable, as in NTFY_URL", hide=True)
_MAILBOX = Matching(r"[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9][A-Za-z0-9.-]{0,251}", "a mail address, as in me@example.com")
_PROGRAM = Matching(r"/[^\s:]+", "the absolute path of a program that takes mail as sendmail does")
_AFTER = Within(0, 86400, "seconds of an outage before its beginning is told")
_PER_HOUR = Within(1, 3600, "messages an hour and channel, on average")
_INTERFACE = Matching(r"auto|[^\s/:]{1,15}", "auto, or a network interface as `ip link` names it, as in enp1s0f0np0")


_HUB_TOKEN = "take it out; run `hf auth login` on the node that downloads, or export it where you call sparkwright"
_API_KEY = "take it out, export it where you call sparkwright, and name the variable in `serving.api_key_env`"


def _address(value: str) -> str:
    """`auto` or an IPv4 address: NCCL over RoCE v2 is set up for IPv4."""
    try:
        ok = value == "auto" or bool(ipaddress.IPv4Address(value))
    except ValueError:
        ok = False
    if not ok or value in ("0.0.0.0", "255.255.255.255"):
        allowed = "auto, or this node's IPv4 address on the fabric, as in 192.168.100.10"
        raise ValueError(f"found {shown_value(value)}; allowed: {allowed}")
    return value


def _hcas(value: Any) -> Any:
    names = value if isinstance(value, list) else [None]
    if value == "auto" or all(isinstance(n, str) and re.fullmatch(r"[\w.-]+", n) for n in names):
        return value
    allowed = "auto, a list of RDMA devices, as in [rocep1s0f0, roceP2p1s0f0], or [] for plain TCP"
    raise ValueError(f"found {shown_value(value)}; allowed: {allowed}")


def _form(value: Any) -> Form:
    if value not in tuple(Form):
        raise ValueError(f"found {shown_value(value)}; allowed: {', '.join(Form)}")
    return Form(value)


_HCAS = {"anyOf": [{"const": "auto"}, {"type": "array", "items": {"type": "string", "pattern": r"^[\w.-]+$"}}]}


class FabricPart(Part):
    address: Annotated[Text, AfterValidator(_address)] = "auto"
    interface: Annotated[Text, _INTERFACE] = "auto"
    hcas: Annotated[Any, AfterValidator(_hcas), WithJsonSchema(_HCAS)] = "auto"


class PathsPart(Part):
    models: Annotated[Text, _FOLDER] = NodePaths().models
    hub: Annotated[Text, _FOLDER] = NodePaths().hub
    cache: Annotated[Text, _FOLDER] = NodePaths().cache
    state: Annotated[Text, _FOLDER] = NodePaths().state


class NodePart(Part):
    name: Annotated[Text, _NAME]
    ssh: Annotated[Text, _SSH] = ""
    fabric: FabricPart = FabricPart()
    paths: PathsPart = PathsPart()
    env: dict[str, Text] = Field(default_factory=dict)
    wake: Annotated[Text, _MAC] = ""


class TransferPart(Part):
    streams: Annotated[int, _STREAMS] = 0
    limit: Size = 0


class ChannelPart(Part):
    form: Annotated[Form, BeforeValidator(_form)]
    url_env: Annotated[Text, _VARIABLE] = ""
    token_env: Annotated[Text, _VARIABLE] = ""
    to: list[Annotated[Text, _MAILBOX]] = Field(default_factory=list, max_length=20)
    sender: Annotated[Text, _MAILBOX] = ""
    program: Annotated[Text, _PROGRAM] = ""


class NotifyPart(Part):
    channels: list[ChannelPart] = Field(default_factory=list, max_length=MAX_CHANNELS)
    after: Annotated[Seconds, _AFTER] = Notify().after
    per_hour: Annotated[int, _PER_HOUR] = Notify().per_hour


class ClusterPart(Part):
    name: Annotated[Text, _NAME] = ""
    head: Text = ""
    standby: Text = ""
    simulated: bool = False
    ignore: list[Annotated[Text, _CODE]] = Field(default_factory=list)
    transfer: TransferPart = TransferPart()
    notify: NotifyPart | None = None
    nodes: list[NodePart]


def load_cluster(text: str, source: str) -> Cluster:
    """The cluster in `text`. source: the file's name as messages show it.

    Raises RecipeError: one line per mistake, each beginning with `FILE:LINE:`.
    """
    document = read_yaml(text, source)
    # The file with each node written in full: `- spark-1` is short for `- name: spark-1`
    if not isinstance(document.value, Mapping):
        raise RecipeError(f"{source}:1: found {shown_value(document.value)}; a cluster file is a mapping with `nodes:`")
    tree = drop_unset(document.value)
    if isinstance(tree.get("nodes"), list):
        tree["nodes"] = [{"name": n} if not isinstance(n, Mapping) else n for n in tree["nodes"]]
    notes = _former(tree, source)
    part, found = validated(tree, ClusterPart, valid_keys(ClusterPart))
    cluster = replace(_cluster(part, source), notes=notes) if part else None
    if part and cluster and not any(path[:1] == ("nodes",) for path, _ in found):
        found += tuple(_checks(cluster, part))
    problems = problems_of(document, found)
    if problems or cluster is None:
        hint = "`sparkwright recipes show --reference cluster` explains every key"
        raise RecipeError(report(problems, source), hint=hint)
    return cluster


def _former(tree: dict[str, Any], source: str) -> tuple[str, ...]:
    """Takes out keys of earlier versions; one note for each. Copies went over plain TCP where `trusted` was true."""
    transfer = tree.get("transfer")
    if not isinstance(transfer, Mapping) or "trusted" not in transfer:
        return ()
    tree["transfer"] = {key: value for key, value in transfer.items() if key != "trusted"}
    return (f"{source}: `transfer.trusted` has no effect any more: copies go over ssh; take the line out",)


def _cluster(part: ClusterPart, source: str) -> Cluster:
    nodes = tuple(_node(node) for node in part.nodes)
    head = part.head or (nodes[0].name if nodes else "")
    name = part.name or PurePath(source).stem or "cluster"
    return Cluster(
        name,
        nodes,
        head,
        source,
        part.simulated,
        tuple(part.ignore),
        Transfer(**part.transfer.model_dump()),
        notify=domain_value(Notify, part.notify.model_dump()) if part.notify else None,
        standby=part.standby,
    )


def _node(part: NodePart) -> Node:
    given = {key: None if value == "auto" else value for key, value in part.fabric}
    hcas = None if given["hcas"] is None else tuple(given["hcas"])
    paths, fabric = NodePaths(**part.paths.model_dump()), Fabric(given["address"], given["interface"], hcas)
    return Node(part.name, part.ssh or part.name, fabric, paths, tuple(part.env.items()), part.wake.lower())


def _checks(cluster: Cluster, part: ClusterPart) -> Iterator[Complaint]:
    if not cluster.nodes:
        yield ("nodes",), "`nodes`: found an empty list; a cluster has at least one node"
    elif cluster.head not in cluster.names:
        yield ("head",), f"`head`: found {shown_value(cluster.head)}; allowed: {', '.join(cluster.names)}"
    elif cluster.standby:
        yield from _standby(cluster)
    yield from _twice(cluster)
    for index, channel in enumerate(part.notify.channels if part.notify else ()):
        yield from _channel(channel, ("notify", "channels", index))
    for index, node in enumerate(part.nodes):
        yield from env_complaints(node.env, ("nodes", index, "env"))


def _standby(cluster: Cluster) -> Iterator[Complaint]:
    others = [name for name in cluster.names if name != cluster.head]
    if not others:
        yield ("standby",), "`standby`: the cluster has one node; a standby is a second one"
    elif cluster.standby == cluster.head:
        yield ("standby",), f"`standby`: {cluster.head} is the head itself; allowed: {', '.join(others)}"
    elif cluster.standby not in others:
        yield ("standby",), f"`standby`: found {shown_value(cluster.standby)}; allowed: {', '.join(others)}"


def _channel(part: ChannelPart, path: Path) -> Iterator[Complaint]:
    """Keys that a form needs, and keys that it does not read."""
    mail = part.form == Form.MAIL
    needed, unread = ("to", ("url_env", "token_env")) if mail else ("url_env", ("to", "sender", "program"))
    unread = unread if mail or part.form == Form.NTFY else (*unread, "token_env")
    if not getattr(part, needed):
        example = "[me@example.com]" if mail else "the variable with its address, as in NTFY_URL"
        yield path, f"`{dotted(path)}`: {part.form} needs `{needed}`: {example}"
    for name in unread:
        if getattr(part, name):
            yield (*path, name), f"`{dotted((*path, name))}`: {part.form} has no such key"


def _twice(cluster: Cluster) -> Iterator[Complaint]:
    """Two nodes with one name, one machine or one fabric address: a copied block that was not edited."""
    seen: dict[tuple[str, str], int] = {}
    for index, node in enumerate(cluster.nodes):
        for kind, value, key in _identities(node):
            first = seen.setdefault((kind, value), index)
            if first != index:
                path: Path = ("nodes", index, *key)
                other = f"nodes[{first}] ({cluster.nodes[first].name})"
                yield (
                    path,
                    f"`{dotted(path)}`: found {shown_value(value)}, as in {other}; each node needs its own {kind}",
                )


def _identities(node: Node) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    yield "name", node.name, ("name",)
    if node.is_local:
        # Several nodes on this machine (the demo's) are told apart by where they keep their state.
        yield "state folder", node.paths.state, ("paths", "state")
    elif node.ssh != node.name:
        yield "ssh destination", node.ssh, ("ssh",)
    if node.fabric.address and not ipaddress.IPv4Address(node.fabric.address).is_loopback:
        yield "fabric address", node.fabric.address, ("fabric", "address")


def env_complaints(env: Mapping[str, str], path: Path) -> Iterator[Complaint]:
    """Names that are none, and literal keys, in an `env` mapping at `path`."""
    for name, value in env.items():
        place = (*path, name)
        if not (name.replace("_", "a").isalnum() and name.isascii() and not name[0].isdigit()):
            allowed = "letters, digits and `_`, no digit first"
            yield place, f"`{dotted(place)}` is no name of an environment variable: {allowed}"
        elif (is_secret_name(name) and value) or looks_secret(value):
            hint = _HUB_TOKEN if name.upper() in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN") else _API_KEY
            yield place, f"`{dotted(place)}`: a key must not be in a file (its value is not shown); {hint}"
