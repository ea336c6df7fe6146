"""The source of every form, and the files that come out. No value of a secret ever enters here."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.plan import Plan, RankFile, RankSpec
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.engines.catalog import start_groups
from sparkwright.remote import docker

HERE = "\0here\0"
"""Replaces the folder of the written files in a command line until it is quoted; no argument can hold a NUL."""


@dataclass(frozen=True, slots=True)
class DeploymentSource:
    """plan: with one spec a node. signal, grace (seconds): how the engine is ended. states: node -> absolute folder

    below which ranks of the process runtime keep their files (the paths in their argv lead there). users: node -> who
    logs in there, where that is known; caches, weights and venv are that user's.
    """

    plan: Plan
    signal: str
    grace: float
    states: Mapping[str, str]
    users: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.plan.deployment

    @property
    def specs(self) -> tuple[RankSpec, ...]:
        return self.plan.specs

    def container(self, spec: RankSpec) -> str:
        return docker.container_name(self.name, spec.rank)


@dataclass(frozen=True, slots=True)
class EmittedFile:
    """One file of the result; path is relative to the folder that the user names. mode 0600: the user adds a secret."""

    path: str
    text: str
    mode: int = 0o644


def rank_title(source: DeploymentSource, spec: RankSpec | None = None) -> str:
    """`rank 1 of deepseek-v4-flash (recipe deepseek-v4-flash@1m, hash 0123) on spark-2`."""
    recipe = source.plan.recipe
    what = f"{source.name} (recipe {recipe.label}, hash {recipe.hash or 'none'})"
    simulated = ", simulated" if recipe.model.simulated or source.plan.cluster.simulated else ""
    return f"rank {spec.rank} of {what} on {spec.node}{simulated}" if spec else f"{what}{simulated}"


def comment(lines: Iterable[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def start_order(source: DeploymentSource) -> str:
    """`spark-2, spark-3, then spark-1 (head)`, as the engine wants it."""
    groups = start_groups(source.plan.recipe, source.specs)
    if len(groups) == 1:
        return source.plan.head
    named = (", ".join(spec.node if spec.rank else f"{spec.node} (head)" for spec in group) for group in groups)
    return ", then ".join(named)


def rank_files(spec: RankSpec, folder: str) -> tuple[EmittedFile, ...]:
    """The rank's own files; one that holds a secret is left for the user to fill."""

    def written(file: RankFile) -> EmittedFile:
        path = f"{folder}/files/{file.name}"
        return (
            EmittedFile(path, to_fill(file.name, file.secret), 0o600) if file.secret else EmittedFile(path, file.text)
        )

    return tuple(map(written, spec.files))


def secrets_file(spec: RankSpec, folder: str, always: bool = False) -> tuple[EmittedFile, ...]:
    """A template of names without values; always: also for a rank without secrets."""
    names = "".join(f"{name}=\n" for name in spec.secrets)
    head = (
        "Fill in; values with spaces or $ go between single quotes. Sourced by sh before the engine starts.",
        "A name takes the same value on all nodes. What the ranks share is any random text: openssl rand -hex 32",
    )
    return (EmittedFile(f"{folder}/secrets.env", comment(head) + names, 0o600),) if names or always else ()


def filling_step(source: DeploymentSource) -> tuple[str, ...]:
    """The step that is left to the user, if any."""
    secret = dict.fromkeys(f"files/{file.name}" for spec in source.specs for file in spec.files if file.secret)
    names = " and ".join(f"`{name}`" for name in (*(["secrets.env"] if secret_names(source) else []), *secret))
    text = f"In each folder fill in {names}, where it is there; it stays readable by its owner alone."
    return (text,) if names else ()


def folders_step(source: DeploymentSource) -> tuple[str, ...]:
    """The step that makes folders before Docker does so as root."""
    folders = shlex.join(dict.fromkeys(m.host for spec in source.specs for m in spec.mounts if not m.read_only))
    return (f"On every node make the folders that the engine writes to: `mkdir -p {folders}`.",) if folders else ()


def manual(source: DeploymentSource, steps: Iterable[str]) -> str:
    """README.md: what to do with the files, in order."""
    return f"# {rank_title(source)}\n\n" + "".join(f"{n}. {step}\n" for n, step in enumerate(steps, 1))


def secret_names(source: DeploymentSource) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for spec in source.specs for name in spec.secrets))


def no_docker(source: DeploymentSource, form: str) -> None:
    """Raises UsageError for a form that needs containers where the recipe has none."""
    if any(spec.runtime is not Runtime.DOCKER for spec in source.specs):
        raise UsageError(
            f"--emit {form}: the recipe's runtime is process, and {form} starts containers",
            hint="--emit shell or --emit systemd; or a profile of the recipe with runtime docker",
        )


def docker_words(spec: RankSpec, name: str, folder: str) -> tuple[str, ...]:
    """`docker run` exactly as `up` calls it, without our labels and not detached; files and secrets in `folder`."""
    bare = replace(spec, labels={})
    secrets = f"{folder}/secrets.env" if spec.secrets else ""
    words = docker.run(bare, name, secrets, files_dir=f"{folder}/files").argv
    return tuple(word for at, word in enumerate(words) if not (at == 2 and word == "--detach"))


def quoted(word: str) -> str:
    """One word for sh, with HERE as `"$here"`."""
    return '"$here"'.join(shlex.quote(part) if part else "" for part in word.split(HERE)) or "''"


def lines_of_words(words: Iterable[str]) -> str:
    """A shell command, an option a line: a new line begins before each `--option`."""
    text = ""
    for word in words:
        text += (" \\\n        " if word.startswith("--") and text else " " if text else "") + quoted(word)
    return text


def as_yaml(value: Any) -> str:
    """Text of several lines as a block, everything else as PyYAML likes it."""
    import yaml  # here: every `plan` and `up` loads this module, and few write YAML

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def to_fill(name: str, secret: Secret) -> str:
    """A JSON object keeps its names, so that only values are left to fill in."""
    try:
        shape = read_json(secret.reveal())
    except ValueError:
        shape = None
    if isinstance(shape, dict):
        return json.dumps(dict.fromkeys(shape, "")) + "\n"
    return f"put the content of {name} here: it is secret and in no plan\n"


# Variables that many compose files call so; an endpoint of the same name must not be hit.
PLAIN = {"node-rank": "NODE_RANK", "headless": "HEADLESS", "master-addr": "MASTER_ADDR"}
Unit = tuple[str, ...]
Flag = tuple[str, int]
_PROGRAM: Flag = ("", 0)


@dataclass(frozen=True, slots=True)
class Varied:
    """text: words quoted for a shell, with `${NAME}`. values[rank]: NAME -> quoted words (may be empty)."""

    text: str
    values: tuple[Mapping[str, str], ...]


def merge_commands(commands: Sequence[Sequence[str]]) -> Varied | None:
    """The ranks' command lines as one; None where they cannot be: other programs, or the same flags in another order.

    Nor where a value holds a quote: Compose's versions read such a line of .env differently.
    """
    ranks = [_units(words) for words in commands]
    order = _order(ranks)
    if order is None or any(rank[_PROGRAM] != ranks[0][_PROGRAM] for rank in ranks):
        return None
    values = [dict[str, str]() for _ in ranks]
    texts = [_one(flag[0], [rank.get(flag) for rank in ranks], values) for flag in order]
    if any("'" in value for own in values for value in own.values()):
        return None
    return Varied(" ".join(text for text in texts if text), tuple(values))


def _units(words: Sequence[str]) -> dict[Flag, Unit]:
    """`--flag value...` by flag and its how-manieth time; the words before the first flag under ''."""
    found: dict[Flag, list[str]] = {_PROGRAM: []}
    current = _PROGRAM
    for word in words:
        if word.startswith("-") and len(word) > 1:
            current = (word, sum(flag == word for flag, _ in found))
            found[current] = []
        found[current].append(word)
    return {flag: tuple(unit) for flag, unit in found.items()}


def _order(ranks: Sequence[Mapping[Flag, Unit]]) -> list[Flag] | None:
    """All flags in an order that keeps each rank's own; None where two ranks contradict each other."""
    merged: list[Flag] = []
    for rank in ranks:
        at = 0
        for flag in rank:
            if flag not in merged:
                merged.insert(at, flag)
            at = merged.index(flag) + 1
    return merged if all([flag for flag in merged if flag in rank] == list(rank) for rank in ranks) else None


def _one(flag: str, mine: Sequence[Unit | None], values: list[dict[str, str]]) -> str:
    """One flag as text; where ranks differ (or everybody's files have a variable), the values are filled in."""
    first, plain = mine[0], PLAIN.get(flag.lstrip("-"))
    if first is not None and all(unit == first for unit in mine) and not (plain and len(first) == 2):
        return shlex.join(first)
    name = plain or "ARG_" + re.sub(r"\W", "_", flag.lstrip("-").upper())
    while name in values[0]:
        name += "_"
    valued = all(unit is not None and len(unit) == 2 for unit in mine)
    for unit, own in zip(mine, values, strict=True):
        own[name] = shlex.join((unit or ())[1:] if valued else unit or ())
    return f"{shlex.quote(flag)} ${{{name}}}" if valued else f"${{{name}}}"


def shared_by_all(environments: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The variables that all ranks set to the same value, in the first one's order."""
    first, *others = environments
    return {k: v for k, v in first.items() if all(k in other and other[k] == v for other in others)}
