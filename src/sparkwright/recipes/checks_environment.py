"""Rules for what goes to the engine as it is: environment variables and flags."""

from collections.abc import Iterator

from sparkwright.domain.recipe import Recipe
from sparkwright.recipes.problems import Complaint
from sparkwright.recipes.secrets import env_complaints
from sparkwright.recipes.values import has_control, is_secret_name, looks_secret
from sparkwright.recipes.vocabulary import PER_RANK_ENV, key_of_flag


def flags_and_env(recipe: Recipe) -> Iterator[Complaint]:
    yield from env_complaints(recipe.env, ("env",))
    for name in recipe.env:
        why = _env(name)
        if why:
            yield ("env", name), f"`env.{name}` {why}"
    for name, value in recipe.flags.items():
        why = _flag_name(recipe.engine.name, name) or _flag_value(value)
        if why:
            yield ("flags", name), f"`flags.{name}`{why}"


def _env(name: str) -> str:
    if name in PER_RANK_ENV:
        hint = "leave it out; a node's interface and HCAs can be given in the cluster file"
        return f"differs from node to node and is filled in by the launcher: {hint}"
    if name == "NCCL_IB_GID_INDEX":
        why = "names an index that differs between nodes and moves when a link bounces"
        return f"{why}: leave it out; with NCCL_IB_ROCE_VERSION_NUM=2 NCCL finds the entry on each node"
    return ""


def _flag_name(engine: str, name: str) -> str:
    bare = name.lstrip("-")
    if name != bare or not bare:
        return f": write flags without dashes, as in `{bare or 'block-size'}`"
    if any(c in name for c in " =\t\n") or not name.isascii():
        return ": a flag's name is one word; its value comes after the colon"
    if is_secret_name(name):
        return ": a key on the command line is seen by every user of the node; use `serving.api_key_env`"
    why = key_of_flag(engine, name)
    return f" {why}; leave it out here" if why else ""


def _flag_value(value: object) -> str:
    if isinstance(value, str) and looks_secret(value):
        return ": a key must not be in a file (its value is not shown)"
    if isinstance(value, str) and has_control(value):
        return ": found control characters in the text; allowed: printable text"
    if isinstance(value, str) and "\n" in value.strip():
        hint = "for JSON write a mapping or a list, for long text use `>-`"
        return f": found a text of several lines; a flag takes one value: {hint}"
    return ""
