"""`sparkwright switch`."""

from typing import Any

import click

from sparkwright.cli import options as shared
from sparkwright.cli.up import UpOptions, bring_up_recipe


@click.command()
@click.argument("deployment", callback=shared.deployment_if_given, shell_complete=shared.complete.deployments)
@click.argument("recipe", metavar="RECIPE[@PROFILE]", shell_complete=shared.complete.recipes)
@shared.profile_option
@shared.name_option
@shared.cluster_options
@shared.force_option
@shared.lease_option
@shared.drain_option
@shared.replicas_option
@click.option("--dry-run", is_flag=True, help="Print the plan and exit; change nothing.")
@click.option("--allow-reboot", is_flag=True, help="Allow the supervisor to reboot the nodes as a last resort.")
@click.option("--verbose", is_flag=True, help="Also print the engine's own figures.")
@shared.json_option
def switch(deployment: str, **given: Any) -> None:
    """Replace a running deployment by another recipe, or roll back.

    Image and weights are staged while the old one serves. Then the gateway answers 503 with the reason and Retry-After
    until the new one has answered a real request, on the same address. Where it does not become ready, or you press
    Ctrl-C, the old one is started again as it was. Other deployments serve on meanwhile. The replicas of a model are
    replaced one after the other.

    \b
    Examples:
      sparkwright switch gpt-oss-120b deepseek-v4-flash
      sparkwright switch gpt-oss-120b ./my-recipe.yaml --dry-run
    """
    bring_up_recipe(UpOptions(**given, replace=deployment))
