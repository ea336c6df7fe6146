"""`sparkwright wake`: a node that is off, switched on over the network."""

from dataclasses import asdict

import click

from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.setup.wake import wake_peer
from sparkwright.cli import options as shared
from sparkwright.cli.kinds import Duration
from sparkwright.domain.units import duration


@click.command("wake")
@click.argument("node", metavar="NODE")
@click.option(
    "--wait",
    type=Duration(0, 1.0, 3600, zero=True),
    default=180.0,
    help="Wait this long for its ssh; 0 does not wait. [default: 3m]",
)
@shared.cluster_options
@shared.json_option
def wake_node(node: str, wait: float, where: ClusterOptions, as_json: bool) -> None:
    """Wake a node that is off or asleep by Wake-on-LAN, and wait until it answers.

    Another node of the cluster sends the magic packet, since it is in the same network. The cluster file names the
    card (`wake`), and `sparkwright check` tells whether it is armed (HOST027) while the node is on.

    Exit status: 0 it answers, 2 the cluster file has no `wake` for it, 3 no node could send, 5 it did not answer.

    \b
    Examples:
      sparkwright wake spark-2
      sparkwright wake spark-2 --wait 0
    """
    done = shared.with_services(where, lambda services: wake_peer(services, node, wait), quiet=as_json)
    back = "" if done.seconds is None else f"; it answers after {duration(done.seconds)}"
    text = f"{done.sender} sent a magic packet for {done.mac} to {', '.join(done.networks)}{back}"
    shared.answer(as_json, asdict(done), text)
