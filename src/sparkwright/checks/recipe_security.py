"""Checks of what a recipe gives away, and of its variables' names."""

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache

from sparkwright.checks.compat.combination import flag_text, is_switched_on, shape_of
from sparkwright.checks.reading import served_on_gb10
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.finding import BLOCK, INFO, OVERRIDE, WARN, Severity
from sparkwright.domain.power import KNOWN as KNOWN
from sparkwright.domain.power import Power, powers
from sparkwright.domain.recipe import Expose, Recipe
from sparkwright.engines.catalog import traits
from sparkwright.engines.mods import touches
from sparkwright.engines.variants import build_variables

_CLOSE = 0.86
_ADAPTERS = "env.VLLM_ALLOW_RUNTIME_LORA_UPDATING"


@cache
def _near(name: str) -> list[str]:
    """The known variable that is spelled nearly so. A search for remedies asks again for every change of a recipe."""
    return get_close_matches(name, KNOWN, 1, _CLOSE)


def misspelt_variable(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context)
    given = {*(recipe.env if recipe else ()), *(name for node in context.cluster.nodes for name, _ in node.env)}
    for name in sorted(given - KNOWN) if recipe else ():
        near = _near(name)
        if near and not (recipe and name in build_variables(recipe.engine, (name,))):
            yield Found(
                f"no library is known to read it; {near[0]} is one that does",
                title=f"{name} looks misspelt",
                fix=f"did you mean {near[0]}?",
                subject=f"env.{name}",
            )


def operator_power(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    for power in powers(recipe.env, recipe.flags) if recipe else ():
        if recipe and not power.clients:
            yield Found(
                f"it {power.gives}",
                title=f"{power.setting.partition('.')[2]} runs foreign code",
                severity=_severity(recipe, power),
                subject=power.setting,
            )


def _severity(recipe: Recipe, power: Power) -> Severity:
    """Most models of today ship code; adapters of any client's choice are code and files for all."""
    if power.setting == "flags.trust-remote-code":
        return INFO
    opened = any("lora" in route for route in recipe.serving.gateway.routes)
    everybody = power.setting == _ADAPTERS and opened and recipe.serving.expose is Expose.ALL
    return BLOCK if everybody else WARN


def client_power(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    for power in powers(recipe.env, recipe.flags) if recipe else ():
        if recipe and power.clients:
            exposed = recipe.serving.expose is Expose.ALL
            yield Found(
                f"it {power.gives}; serving.expose: {recipe.serving.expose.value}",
                title=f"{power.setting.partition('.')[2]} gives clients code or files",
                severity=BLOCK if exposed else WARN,
                subject=power.setting,
            )


def media_fetches(context: Context) -> Iterator[Found]:
    recipe, shape = context.recipe, shape_of(context)
    if recipe is None or shape is None or not shape.senses or recipe.model.simulated:
        return
    if traits(recipe).media == "files" and flag_text(recipe, "enable-multimodal") != "false":
        exposed = recipe.serving.expose is Expose.ALL
        yield _finding(
            OVERRIDE if exposed else WARN,
            "image_url may also be file:///... or a path: clients read files of the head node",
            "keep the endpoint to clients that you trust (expose: loopback or fabric), or serve the model with vLLM",
        )
    closed = flag_text(recipe, "allowed-media-domains") or is_switched_on(recipe, "language-model-only")
    if traits(recipe).media == "hosts" and not closed:
        yield _finding(
            INFO if recipe.serving.expose is Expose.LOOPBACK else WARN,
            "flags.allowed-media-domains is not set: any host that the head node can reach",
            "flags.allowed-media-domains: [HOST, ...], or flags.language-model-only: true",
        )


# Sandbox escapes of Jinja were fixed up to 3.1.6 (CVE-2024-56326, CVE-2025-27516); an image may hold an older one.
_TEMPLATE = "it decides what the model reads, and the engine's Jinja sandbox is all that holds its code"


def mod_runs(context: Context) -> Iterator[Found]:
    """Findings that name the files each mod touches and their origin."""
    for mod in context.recipe.mods if context.recipe else ():
        origin = f", from {mod.origin}" if mod.origin else ""
        if mod.files and mod.is_code:
            yield Found(
                f"{mod.script or 'nothing'} of {len(mod.files)} files ({mod.digest}{origin}): {touches(mod)}",
                title=f"mod {mod.name} runs in the container before the engine",
                subject=f"mods.{mod.name}",
            )


def mod_unread(context: Context) -> Iterator[Found]:
    """Mods whose files nobody has approved; templates too, for they shape every prompt and run in the engine."""
    for mod in context.recipe.mods if context.recipe else ():
        if mod.files and mod.approved != mod.digest:
            changed = f"approved is {mod.approved}, and " if mod.approved else ""
            does = (
                touches(mod) if mod.is_code else f"chat template only, no script: {', '.join(mod.files)}; {_TEMPLATE}"
            )
            yield Found(
                f"{changed}its digest is {mod.digest}: {does}",
                title=f"mod {mod.name} is not approved",
                fix=f"read its files, then write `approved: {mod.digest}` into mods.{mod.name}"
                " (of a registry: first sparkwright recipes import SOURCE/NAME --out NAME.yaml)",
                subject=f"mods.{mod.name}",
            )


def mod_empty(context: Context) -> Iterator[Found]:
    for mod in context.recipe.mods if context.recipe else ():
        if not mod.files:
            yield Found(
                f"the recipe names it{f', from {mod.origin},' if mod.origin else ''} and has none of its files",
                title=f"files of mod {mod.name} are missing",
                subject=f"mods.{mod.name}",
            )


def _finding(severity: Severity, evidence: str, remedy: str) -> Found:
    return Found(evidence, fix=remedy, severity=severity, subject="model")


CHECKS = explained(
    __file__,
    Check("RCP028", WARN, "misspelt environment variable", misspelt_variable),
    Check("RCP031", WARN, "recipe setting runs foreign code", operator_power),
    Check("RCP032", WARN, "recipe setting gives clients code or files", client_power),
    Check("RCP033", WARN, "engine fetches URLs that clients name", media_fetches),
    Check("RCP034", INFO, "mod runs before the engine", mod_runs),
    Check("RCP035", OVERRIDE, "mod is not approved", mod_unread),
    Check("RCP036", BLOCK, "files of a mod are missing", mod_empty),
)
