"""`sparkwright build`."""

from typing import Any

import click

from sparkwright import __version__
from sparkwright.adapters.files import open_recipe
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.copy.build import BuildOptions, Built, section_of
from sparkwright.app.copy.build import build as make
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo_text
from sparkwright.domain.recipe import Build, Recipe
from sparkwright.domain.units import duration, gib
from sparkwright.domain.values import dataclass
from sparkwright.recipes.dockerfile import context, image_name, labels
from sparkwright.wiring import places


@dataclass(frozen=True, slots=True)
class BuildCall:
    """The command line of `build`. node: '' for the head. seize: of --break-lease."""

    recipe: str
    profile: str
    node: str
    no_ship: bool
    dry_run: bool
    where: ClusterOptions
    seize: bool
    as_json: bool


@click.command()
@click.argument("recipe", metavar="RECIPE[@PROFILE]", shell_complete=shared.complete.recipes)
@shared.profile_option
@click.option("--node", default="", metavar="NODE", help="Build on this node. [default: the head]")
@click.option("--no-ship", is_flag=True, help="Do not copy the image to the other nodes.")
@click.option("--dry-run", is_flag=True, help="Print the Dockerfile and its files and exit; contact no node.")
@shared.cluster_options
@shared.lease_option
@shared.json_option
def build(**given: Any) -> None:
    """Build a recipe's image from the pinned parts of its `build` section and copy it to all nodes.

    Idempotent: the image's name is the hash of its inputs, and an image that exists is not built again. Labels of the
    image and a record in the nodes' state folder list the inputs.

    \b
    Examples:
      sparkwright build deepseek-v4-flash-built --dry-run
      sparkwright build deepseek-v4-flash-built
      sparkwright build ./my-recipe.yaml --node spark-2 --no-ship
    """
    call = BuildCall(**given)
    opened = open_recipe(call.recipe, places(), call.profile)
    section = section_of(opened)
    if call.dry_run:
        _show(opened, section, call.as_json)
        return
    options = BuildOptions(call.node, not call.no_ship, call.seize)
    built = shared.with_services(call.where, lambda services: make(services, opened, options), quiet=call.as_json)
    shared.answer(call.as_json, built_json(built), built_text(opened, built))


def _show(recipe: Recipe, section: Build, as_json: bool) -> None:
    """Nothing is asked of any node: what would be built is in the recipe alone."""
    files, name = dict(context(recipe, section)), image_name(recipe, section)
    if as_json:
        marks = labels(recipe, section, __version__, 0)
        del marks["sparkwright.build.date"]
        shared.print_json({"image": name, "platform": section.platform, "labels": marks, "files": files})
        return
    echo_text(f"# image {name} for {section.platform}")
    for file, text in files.items():
        echo_text(f"\n# ---- {file}\n{text.rstrip()}")


def built_text(recipe: Recipe, built: Built) -> str:
    told = f"built in {duration(built.seconds)}" if built.built else "was there already: nothing was built"
    parts = [f"{built.name}: {told}"]
    if built.about:
        parts.append(f"id: {built.about.id}, {built.about.arch}, {gib(built.about.size)}")
    parts.append(f"on: {', '.join(built.ids)}" + (f" (copied to {', '.join(built.copied)})" if built.copied else ""))
    parts.append(f"record: {built.record}")
    if recipe.engine.image != built.name:
        parts.append(f"note: the recipe serves {recipe.engine.image}; leave `engine.image` out to serve this one")
    return "\n".join(parts)


def built_json(built: Built) -> dict[str, Any]:
    """image, built, ids {node: id}, copied, record, seconds and the record of the image."""
    return {
        "image": built.name,
        "built": built.built,
        "ids": built.ids,
        "copied": list(built.copied),
        "record": built.record,
        "seconds": round(built.seconds, 3),
        **({"about": built.about.as_record()} if built.about else {}),
    }
