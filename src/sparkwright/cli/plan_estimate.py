"""`sparkwright plan` without nodes: of a recipe on stock nodes, or of any model; and `recipes new`."""

import json
import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from sparkwright.adapters.files import SUFFIXES
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned, fold_line
from sparkwright.cli.kinds import Whole
from sparkwright.cli.plan_options import PlanOptions, StockOptions
from sparkwright.cli.plan_outlook import answers
from sparkwright.domain.errors import UsageError
from sparkwright.domain.ledger import Fit
from sparkwright.domain.plan import Plan, not_known, stopping
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib, parse_size
from sparkwright.domain.values import fields
from sparkwright.domain.verdict import Estimate

F = TypeVar("F", bound=Callable[..., Any])
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_MOST_NODES = 64


class _Size(click.ParamType):  # type: ignore[type-arg]
    """`110GiB` -> bytes; tokens: `128K` is 131,072 of them."""

    name = "size"

    def __init__(self, what: str, least: int = 1) -> None:
        self._what, self._least = what, least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            found = parse_size(str(value))
        except (ValueError, OverflowError):
            found = 0
        if not self._least <= found < 1 << 60:
            self.fail(f"found {value!r}; {self._what}", param, ctx)
        return found


class _Counts(click.ParamType):  # type: ignore[type-arg]
    """`2` or `1,2,4` -> counts of nodes, each once."""

    name = "counts"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        good = len(words) <= _MOST_NODES and all(word.isascii() and word.isdigit() and len(word) < 4 for word in words)
        found = tuple(dict.fromkeys(map(int, words))) if good else ()
        if not found or min(found) < 1 or max(found) > _MOST_NODES:
            self.fail(
                f"found {str(value)[:40]!r}, expected whole numbers from 1 to {_MOST_NODES}, as in 2 or 1,2,4",
                param,
                ctx,
            )
        return found


_BYTES, _TOKENS = (
    _Size("a size is a number with k, m, g, GiB or GB", least=1 << 20),
    _Size("a context is a count, as in 131072 or 128K"),
)
_OPTIONS = (
    click.option("--nodes", type=_Counts(), default=None, help="Assume so many stock nodes; ask none. Several: 1,2,4."),
    click.option("--node-type", default="", metavar="TYPE", help="Type of the assumed nodes. [default: gb10]"),
    click.option("--free", type=_BYTES, default=None, metavar="SIZE", help="Memory that is free on an assumed node."),
    click.option("--engine", default="", metavar="NAME", help="Engine for a model without a recipe. [default: vllm]"),
    click.option("--tp", type=Whole(1, 64), default=None, help="Tensor parallelism on the assumed nodes."),
    click.option("--context", type=_TOKENS, default=None, metavar="TOKENS", help="Context, as in 128K."),
    click.option("--kv", "kv_dtype", default="", metavar="TYPE", help="Type of the KV cache, as in fp8."),
)


def estimate_options(function: F) -> F:
    """The options of a plan that asks no node; the function gets them as `stock`."""

    @wraps(function)
    def packed(**given: Any) -> Any:
        stock = StockOptions(**{field.name: given.pop(field.name) for field in fields(StockOptions)})
        return function(stock=stock, **given)

    made: Any = packed
    for option in reversed(_OPTIONS):
        made = option(made)
    return made  # type: ignore[no-any-return]


def model_of(name: str) -> str:
    """The hub id or folder that the argument names, '' where it names a recipe."""
    path = Path(name).expanduser()
    if name.endswith(SUFFIXES):
        return ""
    if path.is_dir() or name.endswith(".gguf"):
        return name
    is_file = path.is_file() or name.startswith((".", "/", "~"))
    return name if _HUB_ID.fullmatch(name) and not is_file else ""


def print_comparison(targets: Sequence[tuple[str, Recipe | None]], options: PlanOptions) -> None:
    """Print one row for each recipe or model, and for each count of nodes. Exit 1 if nothing surely fits."""
    from sparkwright.app.plan.estimate import HERE
    from sparkwright.app.plan.fleet import compare_fleets
    from sparkwright.cli.plan_buyers import rows_json, rows_text

    counts = options.stock.nodes or (0,)
    every = [_asked(name, recipe, options.stock, count) for name, recipe in targets for count in counts]
    found = shared.drive_on(HERE, options.where, lambda services: compare_fleets(services, every), quiet=True)
    good = any(one.plan and not stopping(one.plan, "") and not not_known(one.plan) for one in found)
    shared.answer(options.as_json, rows_json(found), rows_text(found, every[0].kind), int(not good))


def print_estimate(name: str, recipe: Recipe | None, options: PlanOptions) -> int:
    """Prints the plan for stock nodes; the exit code."""
    from sparkwright.app.plan.estimate import HERE, estimate  # the planner and httpcore, which other plans load later
    from sparkwright.app.plan.fleet import wants_groups

    asked = _asked(name, recipe, options.stock, _one_count(options.stock))
    replicas = options.replicas or _own_replicas(recipe, asked.nodes, options.form)
    if wants_groups(asked.nodes, asked.tp, replicas):
        return _print_fleet(asked, options, replicas)
    found = shared.drive_on(HERE, options.where, lambda services: estimate(services, asked), quiet=True)
    if options.form:
        from sparkwright.app.plan.estimate import with_specs
        from sparkwright.cli.plan_result import emit_stock

        emit_stock(found.plan, with_specs, options)
        return _exit(found.plan, options)
    others = _others(recipe, asked, found.plan, options)
    if options.as_json:
        from sparkwright.cli.plan_recipes import others_json

        shared.print_json(_estimate_json(found, options.commands) | {"other_recipes": others_json(others)})
    else:
        from sparkwright.cli.columns import echo_text
        from sparkwright.cli.plan_outlook import Shown

        echo_text(estimate_text(found, Shown(options.why, options.splits, options.commands)))
        if others:
            from sparkwright.cli.plan_recipes import others_text

            echo_text(f"\n{others_text(others)}")
    return _exit(found.plan, options)


def _exit(plan: Plan, options: PlanOptions) -> int:
    return int(bool(stopping(plan, options.force)) or not_known(plan))


def _others(recipe: Recipe | None, asked: Any, plan: Plan, options: PlanOptions) -> Sequence[Any]:
    """Other recipes of the model that fit, where this one surely does not."""
    if not recipe or not plan.verdict or not plan.verdict.known or plan.verdict.fit is not Fit.NOT:
        return ()
    from sparkwright.cli.plan_recipes import other_recipes

    return other_recipes(recipe, asked, plan.recipe.nodes, options.where)


def _estimate_json(found: Any, commands: bool) -> dict[str, Any]:
    """commands: with each rank's command line, in which folders and addresses are placeholders."""
    from sparkwright.app.plan.estimate import with_specs
    from sparkwright.cli.plan_result import plan_json  # staging, and all that a plan of nodes prints

    document = plan_json(with_specs(found.plan) if commands else found.plan, ())
    document |= {"assumed": found.assumed, "longest_context": found.longest}
    return document | {"quantizations": [{"model": one[0], "bytes": one[1], "verdict": one[2]} for one in found.others]}


def _own_replicas(recipe: Recipe | None, nodes: int, form: str | None) -> int:
    """The recipe's number of replicas, 0 without one. A plan for fewer nodes is about one replica, files are not."""
    count = recipe.serving.replicas if recipe else 1
    few = recipe and 0 < nodes < count * recipe.nodes and not form
    return 0 if count < 2 or few else count


def _print_fleet(asked: Any, options: PlanOptions, replicas: int) -> int:
    """Print the plan of one replica below what all of them are together, or write the files; the exit code."""
    from sparkwright.app.plan.estimate import HERE
    from sparkwright.app.plan.fleet import estimate_fleet
    from sparkwright.cli.plan_outlook import Shown

    form = options.form
    found = shared.drive_on(
        HERE, options.where, lambda services: estimate_fleet(services, asked, replicas, compared=not form), quiet=True
    )
    plan = found.one.plan
    if form:
        from sparkwright.app.plan.estimate import with_specs
        from sparkwright.cli.plan_result import emit_stock

        emit_stock(plan, with_specs, options, found.replicas)
        return _exit(plan, options)
    rate = found.together
    groups: dict[str, Any] = {"replicas": found.replicas, "nodes": found.size, "left": found.left}
    groups |= {"sequences": found.sequences, "decode_tokens_s": rate and rate.value, "streams": found.streams}
    document = _estimate_json(found.one, options.commands) | {
        "groups": groups,
        "other_groups": [_group_json(one) for one in found.others],
    }
    text = f"{fleet_text(found)}\n\n{estimate_text(found.one, Shown(options.why, options.splits, options.commands))}"
    shared.answer(options.as_json, document, text)
    return _exit(plan, options)


def _group_json(one: Any) -> dict[str, Any]:
    alone, rate = one.alone, one.together
    return {
        "replicas": one.replicas,
        "nodes": one.size,
        "verdict": one.plan.verdict and one.plan.verdict.fit,
        "one_tokens_s": alone and alone.value,
        "decode_tokens_s": rate and rate.value,
    }


def fleet_text(found: Any) -> str:
    """The groups in one sentence, what they carry together if requests are spread evenly, and groups of other sizes."""
    several = found.replicas > 1
    where = ", behind one address; one of them is below" if several else "; its plan is below"
    lines = [_replicas_text(found.replicas, found.size) + where]
    if found.sequences and several:
        context = found.one.plan.recipe.serving.context
        length = f" of {context:,} tokens" if context else " of full length"
        lines.append(f"together: {int(found.sequences):,} requests{length} at once")
    if (rate := found.together) and several:
        spread = f"({rate.low:,.0f} to {rate.high:,.0f}) with {found.streams:,} streams"
        lines.append(f"together: {rate.value:,.0f} tokens/s {spread}, if requests are spread evenly")
    if found.left:
        lines.append(f"left over: {found.left} node{'s' * (found.left > 1)}")
    text = "\n".join(fold_line(line, 2) for line in lines)
    return f"{text}\n\n{_others_text(found)}" if found.others else text


def _replicas_text(replicas: int, size: int) -> str:
    each = f"{size} node{'s' * (size > 1)} each" if replicas > 1 else f"{size} node{'s' * (size > 1)}"
    return f"{replicas} replica{'s' * (replicas > 1)} of {each}"


def _others_text(found: Any) -> str:
    """The same nodes in groups of other sizes: larger ones answer one user faster, and carry fewer."""
    rows = [("these nodes as", "verdict", "tok/s, one user", "tok/s, together")]
    for one in found.others:
        verdict, alone, rate = one.plan.verdict, one.alone, one.together
        speeds = ("", "")
        if verdict and verdict.fit is not Fit.NOT and alone and rate:
            speeds = (_speed(alone), f"{_speed(rate)}, {one.streams:,} streams")
        rows.append((_replicas_text(one.replicas, one.size), str(verdict.fit) if verdict else "no plan", *speeds))
    return aligned(rows)


def _speed(rate: Estimate) -> str:
    return f"{rate.value:,.0f} ({rate.low:,.0f} to {rate.high:,.0f})"


def _one_count(stock: StockOptions) -> int:
    """0 where none was given. Raises click.UsageError for several."""
    counts = stock.nodes or (0,)
    if len(counts) > 1:
        raise click.UsageError("one count of nodes is needed here, as in --nodes 2")
    return counts[0]


def _asked(name: str, recipe: Recipe | None, stock: StockOptions, nodes: int) -> Any:
    """The request of one plan; what was not given is left to its defaults. nodes: 0 where no count was given."""
    from sparkwright.app.plan.estimate import EstimateRequest

    every = {
        "nodes": nodes,
        "kind": stock.node_type,
        "free": stock.free,
        "engine": stock.engine,
        "tp": stock.tp,
        "context": stock.context,
        "kv_dtype": stock.kv_dtype,
    }
    given: dict[str, Any] = {name: value for name, value in every.items() if value}
    if recipe:
        if stock.engine:
            raise click.UsageError("--engine goes with a model; the recipe names its own")
        return EstimateRequest(recipe=recipe, **given)
    path = Path(name).expanduser()
    folder, model = (str(path.absolute()), "") if path.exists() else ("", name)
    if name.endswith(".gguf") and not path.exists():
        raise UsageError(f"{name}: there is no such file", "give a hub id, org/model, a folder or a .gguf file")
    return EstimateRequest(folder=folder, model=model, **given)


def estimate_text(found: Any, shown: Any) -> str:
    """The questions first, each with one figure; then the ledger, the outlook, splits, findings and what does fit."""
    from sparkwright.cli.plan_outlook import (
        advice_text,
        answers_text,
        found_text,
        memory_text,
        more_text,
        outlook_text,
        remedies_text,
    )

    plan, why = found.plan, shown.why
    title = f"{plan.recipe.label}: {plan.recipe.model.label} on {plan.recipe.engine.label}"
    assumed = "\n".join(fold_line(f"assumed: {line}", 2) for line in found.assumed)
    others = [(name, gib(size), str(fit)) for name, size, fit in found.others]
    parts = (
        f"{fold_line(title, 2)}\n{assumed}",
        answers_text(plan, found.longest),
        memory_text(plan.ledgers[:1], why),
        outlook_text(plan, why),
        advice_text(plan.advice) if plan.advice and shown.splits else "",
        found_text(plan.findings, shown),
        remedies_text(plan.remedies) if plan.remedies else "",
        f"other checkpoints of the model, by their bytes\n{aligned(others)}" if others else "",
        _commands_text(plan) if shown.commands else "",
        more_text(shown, plan, True),
    )
    return "\n\n".join(filter(None, parts))


def _commands_text(plan: Plan) -> str:
    """Each rank's command line with placeholders, as no node was asked."""
    from sparkwright.app.plan.estimate import with_specs
    from sparkwright.cli.plan_result import PLACEHOLDERS
    from sparkwright.cli.text import ranks_text

    return "\n".join((ranks_text(with_specs(plan).specs), *PLACEHOLDERS))


@click.command("new", short_help="Write a recipe for a model, with comments.")
@click.argument("model", metavar="ORG/MODEL|FOLDER")
@click.option("--out", default="", metavar="FILE", help="Write the recipe to this file. [default: stdout]")
@shared.cluster_options
@estimate_options
@shared.json_option
def write_new_recipe(model: str, out: str, where: ClusterOptions, stock: StockOptions, as_json: bool) -> None:
    """Write a commented recipe for a model of the hub or of a folder, as `plan` would serve it on stock nodes.

    \b
    Examples:
      sparkwright recipes new Qwen/Qwen3-30B-A3B --nodes 2 --out qwen3.yaml
      sparkwright recipes new ./my-model --engine sglang
    """
    from sparkwright.app.plan.estimate import HERE, estimate

    if not model_of(model):
        raise UsageError(f"{model}: names no model", "give a hub id, org/model, a folder or a .gguf file")
    asked = _asked(model, None, stock, _one_count(stock))
    found = shared.drive_on(HERE, where, lambda services: estimate(services, asked), quiet=True)
    text = recipe_yaml(found)
    if not out:
        if as_json:
            shared.print_json({"file": None, "text": text})
        else:
            click.echo(text, nl=False)
        return
    try:
        with Path(out).open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error.strerror}", "give another --out") from None
    told = f"{out} (check it: sparkwright recipes validate {out if out.startswith('/') else f'./{out}'})"
    shared.answer(as_json, {"file": out, "text": text}, told)


def recipe_yaml(found: Any) -> str:
    """The recipe that was planned, each choice with its reason; the longest context that surely fits, if less."""
    recipe, longest = found.plan.recipe, found.longest
    model, engine, s, p = recipe.model, recipe.engine, recipe.serving, recipe.parallelism
    split = ", ".join(f"{name}: {count}" for name, count in (("tp", p.tp), ("pp", p.pp), ("dp", p.dp)) if count > 1)
    context = f"{min(s.context, longest)} # the longest that surely fits: {longest}" if longest else f"{s.context}"
    lines = (
        f"# Made by `sparkwright recipes new` for {found.assumed[0]}.",
        f"# Estimate: {'; '.join(answers(found.plan))}.",
        f"name: {recipe.name}",
        f"title: {json.dumps(recipe.title)}",
        "\nmodel:",
        f"  id: {model.id}" if model.id else f"  path: {json.dumps(model.path)}",
        f"  size: {model.size} # bytes of the files that the engine loads" if model.size else "",
        "\nengine:",
        f"  name: {engine.name}",
        f"  version: {engine.version} # the newest whose options are known here",
        "  runtime: process # what is on the nodes' PATH; for a container: image: NAME:TAG@sha256:...",
        f"\nnodes: {recipe.nodes}",
        f"parallelism: {{{split}}}" if split else "",
        "\nserving:",
        f"  context: {context}",
        f"  sequences: {s.sequences} # users at once",
        f"  batched_tokens: {s.batched_tokens} # more is faster to read prompts and takes more memory",
        f"  kv_dtype: {s.kv_dtype}" if s.kv_dtype else "",
        f"  memory_fraction: {s.memory_fraction:g} # of the pool of CPU and GPU" if s.memory_fraction else "",
    )
    return "\n".join(filter(None, lines)) + "\n"
