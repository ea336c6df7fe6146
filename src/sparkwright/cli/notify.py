"""`sparkwright notify`: where the supervisor tells you what happened."""

from dataclasses import asdict

import click

from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.serve import notify as use
from sparkwright.app.services import Services
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned, echo_text
from sparkwright.domain.errors import UsageError
from sparkwright.domain.units import duration


@click.group()
def notify() -> None:
    """Send messages about incidents by ntfy, Slack, Discord, Mattermost, a webhook or mail.

    The cluster file names the channels under `notify:`, and the variables that hold their addresses. The supervisor
    sends from the head node. `up` brings the settings there.

    \b
    Examples:
      export NTFY_URL=https://ntfy.sh/a-long-random-topic
      sparkwright notify test
      sparkwright notify apply
    """


@notify.command("test", short_help="Send a test message over each channel, from the head node.")
@shared.cluster_options
@shared.json_option
def send_test(where: ClusterOptions, as_json: bool) -> None:
    """Send a test message over each channel, from the head node, as the supervisor would.

    Exit status: 0 all were taken, 1 one was not, 2 a variable is not set, 3 the head could not be reached.

    \b
    Examples:
      sparkwright notify test
      sparkwright notify test --json
    """
    found = shared.with_services(where, lambda services: use.send_test(services, services.cluster.head), quiet=as_json)
    bad = any(one.trouble for one in found)
    rows = [(one.name, "failed" if one.trouble else "sent", one.trouble or duration(one.seconds)) for one in found]
    shared.answer(as_json, {"deliveries": [asdict(one) for one in found]}, aligned(rows), int(bad))


@notify.command("apply", short_help="Bring the channels of the cluster file to the head node.")
@shared.cluster_options
@shared.json_option
def apply_channels(where: ClusterOptions, as_json: bool) -> None:
    """Bring the channels of the cluster file to the head node; its supervisors use them at once.

    `up` does the same. `notify: {channels: []}` in the cluster file ends all notifications.

    \b
    Example: sparkwright notify apply
    """

    async def go(services: Services) -> use.Applied | None:
        return await use.apply_notify(services, services.cluster.head)

    done = shared.with_services(where, go, quiet=as_json)
    if done is None:
        raise UsageError("the cluster file has no `notify:`", "`sparkwright recipes show --reference cluster` has it")
    if (why := use.missing_text(done)) and not as_json:
        echo_text(why, err=True)
    text = f"{done.node} notifies over: {', '.join(done.channels) or 'nothing'}"
    shared.answer(as_json, asdict(done), "" if done.kept else text, int(bool(done.missing)))
