# ruff: noqa: E501 (whole messages, one a line)
"""The cluster file: short and long form, and every mistake reported with its line."""

import pytest

from sparkwright.domain.cluster import Fabric, NodePaths, Transfer
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.notify import Channel, Form
from sparkwright.recipes.cluster_file import load_cluster
from unit.for_each import for_each
from unit.recipes.samples import cluster_errors

LONG = """\
name: lab
head: b
nodes:
  - name: a
    ssh: me@10.0.0.1
    fabric: {address: 192.168.100.10, interface: enp1s0f0np0, hcas: [rocep1s0f0, roceP2p1s0f0]}
    paths: {models: /data, state: ~/state}
    env: {LC_ALL: C, N: 1.50}
  - b
"""


def load(text):
    return load_cluster(text, "cluster.yaml")


def test_the_short_form():
    """One line is a cluster: names are ssh destinations, the first node is the head."""
    cluster = load("nodes: [spark-1, spark-2]")
    assert (cluster.name, cluster.head, cluster.names) == ("cluster", "spark-1", ("spark-1", "spark-2"))
    assert [n.ssh for n in cluster.nodes] == ["spark-1", "spark-2"]
    assert cluster.nodes[0].fabric == Fabric() and cluster.nodes[0].paths == NodePaths()


def test_the_long_form():
    """Everything given is taken as it is; `auto` is None."""
    cluster = load(LONG)
    node = cluster.node("a")
    assert (cluster.name, cluster.head, cluster.ordered[0].name, node.ssh) == ("lab", "b", "b", "me@10.0.0.1")
    assert node.fabric == Fabric("192.168.100.10", "enp1s0f0np0", ("rocep1s0f0", "roceP2p1s0f0"))
    assert (node.paths.models, node.paths.state, node.paths.hub) == ("/data", "~/state", NodePaths().hub)
    assert node.env == (("LC_ALL", "C"), ("N", "1.50"))


def test_auto_is_the_default():
    """Written or left out, `auto` means: find it on the node."""
    assert load("nodes: [{name: a, fabric: {address: auto, interface: auto, hcas: auto}}]").nodes[0].fabric == Fabric()


def test_no_hcas_on_purpose():
    """`hcas: []` is plain TCP, as the remedies of the fabric findings report: not the same as `auto`."""
    assert load("nodes: [{name: a, fabric: {hcas: []}}]").nodes[0].fabric == Fabric(hcas=())


@for_each("ssh", ["h", "me@h", "10.0.0.1", "ssh://me@h:2222", "local", "fe80::1", "me@::1", "spark-1.lab.local"])
def test_ssh_destinations(ssh):
    """Destinations are those of OpenSSH."""
    assert load(f"nodes: [{{name: a, ssh: '{ssh}'}}]").nodes[0].ssh == ssh


def test_local_nodes():
    """Several nodes on this machine are distinguished by their state folder (the demo)."""
    cluster = load(
        "simulated: true\nnodes:\n- {name: a, ssh: local, paths: {state: /a}, fabric: {address: 127.0.0.1}}\n- {name: b, ssh: local, paths: {state: /b}, fabric: {address: 127.0.0.1}}\n"
    )
    assert cluster.simulated and all(n.is_local for n in cluster.nodes)


SSH = "allowed: what OpenSSH takes: a host, user@host, an alias of ~/.ssh/config, ssh://user@host:port, or `local`"


@for_each(
    "text, message",
    [
        ("nodes: []", "1: `nodes`: found an empty list; a cluster has at least one node"),
        ("nodes: spark-1", "1: `nodes`: found 'spark-1'; expected a list, one `- item` a line"),
        ("head: a", "1: `nodes` is missing; it has no default"),
        ("[a]", "1: found a list of 1; a cluster file is a mapping with `nodes:`"),
        ("", "1: found nothing; a cluster file is a mapping with `nodes:`"),
        ("nodes: [a]\nhead: b", "2: `head`: found 'b'; allowed: a"),
        ("nodes: [a]\nstandby: a", "2: `standby`: the cluster has one node; a standby is a second one"),
        ("nodes: [a, b]\nstandby: a", "2: `standby`: a is the head itself; allowed: b"),
        ("nodes: [a, b]\nstandby: c", "2: `standby`: found 'c'; allowed: b"),
        ("nodes:\n- a\n- a", "3: `nodes[1].name`: found 'a', as in nodes[0] (a); each node needs its own name"),
        ("nodes:\n- {name: a, ssh: h}\n- {name: b, ssh: h}", "3: `nodes[1].ssh`: found 'h', as in nodes[0] (a); each node needs its own ssh destination"),
        ("nodes:\n- {name: a, ssh: local}\n- {name: b, ssh: local}", "3: `nodes[1].paths.state`: found '~/.local/state/sparkwright', as in nodes[0] (a); each node needs its own state folder"),
        ("nodes:\n- {name: a, fabric: {address: 10.0.0.1}}\n- {name: b, fabric: {address: 10.0.0.1}}", "3: `nodes[1].fabric.address`: found '10.0.0.1', as in nodes[0] (a); each node needs its own fabric address"),
        ("nodes: [a b]", "1: `nodes[0].name`: found 'a b'; allowed: letters, digits, `.`, `_` and `-`, at most 63, as in spark-1"),
        ("nodes: [{name: a, ssh: -oProxyCommand=x}]", f"1: `nodes[0].ssh`: found '-oProxyCommand=x'; {SSH}"),
        ("nodes: [{name: a, ssh: 'me@-h'}]", f"1: `nodes[0].ssh`: found 'me@-h'; {SSH}"),
        ("nodes: [{name: a, ssh: 'h:22'}]", f"1: `nodes[0].ssh`: found 'h:22'; {SSH}"),
        ("nodes: [{name: a, fabric: {address: 'fe80::1'}}]", "1: `nodes[0].fabric.address`: found 'fe80::1'; allowed: auto, or this node's IPv4 address on the fabric, as in 192.168.100.10"),
        ("nodes: [{name: a, fabric: {address: 10.0.0.1/24}}]", "1: `nodes[0].fabric.address`: found '10.0.0.1/24'; allowed: auto, or this node's IPv4 address on the fabric, as in 192.168.100.10"),
        ("nodes: [{name: a, fabric: {hcas: rocep1s0f0}}]", "1: `nodes[0].fabric.hcas`: found 'rocep1s0f0'; allowed: auto, a list of RDMA devices, as in [rocep1s0f0, roceP2p1s0f0], or [] for plain TCP"),
        ("nodes: [{name: a, fabric: {hcas: [1]}}]", "1: `nodes[0].fabric.hcas`: found a list of 1; allowed: auto, a list of RDMA devices, as in [rocep1s0f0, roceP2p1s0f0], or [] for plain TCP"),
        ("nodes: [{name: a, paths: {models: models}}]", "1: `nodes[0].paths.models`: found 'models'; allowed: an absolute path, or one that begins with ~/"),
        ("nodes: [{name: a, env: {HF_TOKEN: x}}]", "1: `nodes[0].env.HF_TOKEN`: a key must not be in a file (its value is not shown); take it out; run `hf auth login` on the node that downloads, or export it where you call sparkwright"),
        ("nodes: [{name: a, adress: x}]", "1: unknown key `nodes[0].adress`; did you mean `nodes[0].fabric.address`?"),
        ("nodes: [a]\nhed: a", "2: unknown key `hed`; did you mean `head`?"),
        ("nodes: [a]\nnodes: [b]", "2: key `nodes` is there twice: on line 1 and on line 2"),
    ],
)  # fmt: skip
def test_mistakes(text, message):
    """Found, allowed and why, with the line."""
    assert cluster_errors(text) == [f"cluster.yaml:{message}"]


def test_free_keys_and_shared_blocks():
    """A repeated block is written once."""
    cluster = load(
        "x-paths: &p {models: /data}\nnodes:\n- {name: a, paths: *p}\n- {name: b, paths: {<<: *p, hub: /hub}}\n"
    )
    assert [n.paths.models for n in cluster.nodes] == ["/data", "/data"]


def test_all_mistakes_together():
    """One run shows all."""
    assert len(cluster_errors("hed: x\nnodes:\n- {name: a, ssh: 'x y'}\n- {name: b, fabric: {address: nope}}\n")) == 3


def test_a_key_of_an_earlier_version_loads_with_a_note() -> None:
    """Recorded cluster files name `transfer.trusted`; copies over plain TCP are gone."""
    cluster = load_cluster("transfer: {trusted: true, streams: 4}\nnodes: [spark-1]\n", "c.yaml")
    assert cluster.transfer == Transfer(streams=4)
    note = "c.yaml: `transfer.trusted` has no effect any more: copies go over ssh; take the line out"
    assert cluster.notes == (note,)
    assert load_cluster("nodes: [spark-1]\n", "c.yaml").notes == ()


def test_notifications():
    """Channels with the variables that hold their addresses; without the key the head keeps what it has."""
    text = "notify: {after: 2min, channels: [{form: ntfy, url_env: U}, {form: mail, to: [me@example.com]}]}\nnodes: [a]"
    notify = load(text).notify
    assert notify.channels == (Channel(Form.NTFY, "U"), Channel(Form.MAIL, to=("me@example.com",)))
    assert (notify.after, notify.per_hour) == (120.0, 20)
    assert load("nodes: [a]").notify is None and load("notify: {channels: []}\nnodes: [a]").notify.channels == ()


@for_each(
    "channel, expected",
    [
        ("form: pager, url_env: U", "found 'pager'; allowed: ntfy, slack"),
        ("form: slack", "slack needs `url_env`"),
        ("form: slack, url_env: 'https://hooks.slack.com/SECRET'", "a text that is not shown"),
        ("form: slack, url_env: U, token_env: T", "slack has no such key"),
        ("form: mail", "mail needs `to`"),
        ("form: mail, to: ['-oQ/tmp@x']", "a mail address"),
        ("form: mail, to: [a@b.c], program: sendmail", "absolute path"),
    ],
)
def test_channels_that_cannot_work(channel, expected):
    """Each is refused with its line, and an address that was written in the wrong place is not shown."""
    with pytest.raises(RecipeError) as raised:
        load(f"nodes: [a]\nnotify:\n  channels:\n    - {{{channel}}}")
    assert expected in raised.value.message and "SECRET" not in raised.value.message
