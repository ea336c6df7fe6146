"""The cluster file that init writes: read back by the loader as it was meant."""

from dataclasses import replace

import pytest

from sparkwright.domain.cluster import Cluster, Fabric, Node
from sparkwright.domain.errors import UsageError
from sparkwright.recipes.cluster_file import load_cluster
from sparkwright.recipes.cluster_text import cluster_text, node_of
from unit.for_each import for_each


@for_each(
    "text, name, ssh",
    [
        ("spark-1", "spark-1", "spark-1"),
        ("ai@spark-1.local", "spark-1", "ai@spark-1.local"),
        ("ai@192.168.1.20", "spark-2", "ai@192.168.1.20"),
        ("fe80::1%eth0", "spark-2", "fe80::1%eth0"),
        ("left=ai@10.0.0.5", "left", "ai@10.0.0.5"),
        ("ssh://ai@host:2222", "host", "ssh://ai@host:2222"),
    ],
)
def test_a_node_from_the_command_line(text: str, name: str, ssh: str) -> None:
    """Guards names: as given, the host's first part, or a number for an address."""
    node = node_of(text, 2)
    assert (node.name, node.ssh) == (name, ssh)


@for_each("text", ["", "-oProxyCommand=x", "a b=c", "=x", "x="])
def test_what_is_no_node_is_refused(text: str) -> None:
    """Guards ssh's command line against options, and the cluster file against names that it does not take."""
    with pytest.raises(UsageError):
        node_of(text, 1)


def test_the_loader_reads_what_was_meant() -> None:
    """Guards the way from init to check: names, destinations with odd characters, and a ring's addresses."""
    nodes = (
        Node("spark-1", "ai@192.168.1.20", Fabric("192.168.100.11", "enp1s0f0np0")),
        Node("b", "ssh://ai@host:2222"),
        Node("spark-3", "spark-3"),
    )
    cluster = Cluster("lab", nodes, "spark-1", "cluster.yaml")
    assert load_cluster(cluster_text(cluster), "cluster.yaml") == cluster
    single = replace(cluster, nodes=nodes[2:], head="spark-3")
    assert cluster_text(single) == "name: lab\nhead: spark-3\nnodes:\n  - name: spark-3\n"
