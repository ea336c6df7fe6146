"""Shell completion: the values that arguments and options complete to.

Everything comes from files of this machine: a Tab asks no node. Each function loads what it needs when a shell asks.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _begin_with(incomplete: str, names: Iterable[str]) -> "list[CompletionItem[str]]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _files() -> "CompletionItem[str]":
    """Makes the shell complete names of files, where nothing else matches."""
    from click.shell_completion import CompletionItem

    return CompletionItem("", "file")


def recipes(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete recipes and `SOURCE/NAME` of a registry, either with `@PROFILE`, and paths of files."""
    from sparkwright.adapters.files import open_recipe, recipe_names
    from sparkwright.adapters.recipe_sources import RecipeSources
    from sparkwright.domain.errors import RecipeError
    from sparkwright.wiring import places

    name, at, _profile = incomplete.partition("@")
    if not at:
        at_hand = places()
        of_sources = RecipeSources(at_hand.sources, at_hand.cwd).names()
        return [*_begin_with(incomplete, (*recipe_names(at_hand), *of_sources)), _files()]
    with suppress(RecipeError):
        return _begin_with(incomplete, (f"{name}@{one}" for one in open_recipe(name, places()).profiles))
    return []


def profiles(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete the profile of the recipe that the same line names."""
    from sparkwright.adapters.files import open_recipe
    from sparkwright.domain.errors import RecipeError
    from sparkwright.wiring import places

    words = [ctx.params.get("recipe"), *(ctx.params.get("recipes") or ()), ctx.params.get("name"), *ctx.args]
    named = next(filter(None, words), "")
    with suppress(RecipeError):
        return _begin_with(incomplete, open_recipe(named, places()).profiles) if named else []
    return []


def workloads(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete names of workloads, shipped and yours, and paths of files."""
    from sparkwright.loadgen.profiles import profile_names

    return [*_begin_with(incomplete, profile_names()), _files()]


def deployments(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete the deployments that `up`, `status` or `top` on this machine saw last."""
    from sparkwright.wiring import shell_names

    return _begin_with(incomplete, shell_names().deployments(_cluster(ctx)))


def deployments_and_files(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem[str]]":
    """Complete deployments and paths of files."""
    return [*deployments(ctx, parameter, incomplete), _files()]


def runs(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete ids and tags of runs, newest first, and `last`."""
    import asyncio

    from sparkwright.domain.errors import SparkwrightError
    from sparkwright.wiring import places, run_store

    async def listed() -> Iterable[str]:
        store = run_store()
        try:
            found = await store.list()
        finally:
            await store.aclose()
        return [*(one.id for one in found), *dict.fromkeys(tag for one in found for tag in one.tags)]

    if not (places().state / "runs.sqlite").is_file():
        return []
    with suppress(SparkwrightError):
        return _begin_with(incomplete, ["last", *asyncio.run(listed())])
    return []


def runs_and_files(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete ids and tags of runs, and paths of files."""
    return [*runs(ctx, parameter, incomplete), _files()]


def targets(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete deployments, and the beginning of a URL."""
    return [*deployments(ctx, parameter, incomplete), *_begin_with(incomplete, ["http://", "https://"])]


def targets_and_runs(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete deployments, the beginning of a URL, and ids and tags of runs."""
    return [*targets(ctx, parameter, incomplete), *runs(ctx, parameter, incomplete)]


def complete_codes(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete codes of findings in either case, and keys of causes."""
    from sparkwright.cli.explain_pages import code_pages
    from sparkwright.wiring import shell_names

    known = shell_names().codes(
        lambda: [name for one in code_pages().values() for name in (one.code, one.cause) if name]
    )
    return _begin_with(incomplete.lower(), known) or _begin_with(incomplete.upper(), known)


def clients(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete names of clients."""
    from sparkwright.gateway.clients import clients as known

    return _begin_with(incomplete, known())


def probes(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem[str]]":
    """Complete names of probes."""
    from sparkwright.evals.catalog import PROBES

    return _begin_with(incomplete, PROBES)


def _cluster(ctx: click.Context) -> str:
    """Name of the cluster that the line means; '' without a readable file."""
    from sparkwright.app.cluster_options import ClusterOptions
    from sparkwright.domain.errors import RecipeError
    from sparkwright.wiring import cluster_of

    with suppress(RecipeError):
        return cluster_of(ClusterOptions(ctx.params.get("cluster") or "")).name
    return ""
