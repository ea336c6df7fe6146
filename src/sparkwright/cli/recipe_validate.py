"""`sparkwright recipes validate` and `recipes import`: what can be checked of a recipe without any node."""

import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkwright.adapters.files import (
    Places,
    SourceText,
    engines_for,
    find_recipe,
    in_our_form,
    is_source,
    split_profile,
)
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.checks import deployment
from sparkwright.checks.catalog import RECIPE
from sparkwright.cli import complete
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo_text
from sparkwright.cli.failure import hint_json
from sparkwright.cli.kinds import Whole, renamed_option
from sparkwright.cli.options import json_option, print_json
from sparkwright.cli.recipe_text import first_sentence
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe, RecipeState
from sparkwright.domain.units import counted
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.engines.catalog import rehearse
from sparkwright.planner.parallelism import advise
from sparkwright.recipes.engine_file import Texts
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import Beside, Folder, Imported, import_recipe, nothing_beside
from sparkwright.recipes.importers.mods import MOST_BYTES, MOST_FILES, SCRIPT, mod_content
from sparkwright.recipes.load import load_recipe, what_is_left
from sparkwright.recipes.vocabulary import in_recipe
from sparkwright.wiring import flag_store, places

if TYPE_CHECKING:
    from sparkwright.app.services import Services

# Asked before a start, not of a file: whether somebody has read a mod, and whether its files are at hand.
_BEFORE_A_START = ("RCP035", "RCP036")
_CHECKS = (
    *(check for check in deployment.CHECKS if check.code == "PAR001"),
    *(check for check in RECIPE if check.code not in _BEFORE_A_START),
)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """errors: lines that would stop a start; warnings and notes: lines that would not. Each begins with the file."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def softly(self) -> Iterator[str]:
        """Lines for warnings and notes, which stop nothing."""
        yield from (f"warning: {line}" for line in self.warnings)
        yield from (f"note: {line}" for line in self.notes)


@click.command(short_help="Check files or recipes without any node.")
@click.argument("names", metavar="FILE|NAME...", nargs=-1, required=True, shell_complete=complete.recipes)
@json_option
def validate(names: tuple[str, ...], as_json: bool) -> None:
    """Check files or recipes, each with all its profiles, without any node: keys and values, the options and
    variables that the engine's version has, the split that the model's shape allows. Exit code 0 or 2.

    \b
    Examples:
      sparkwright recipes validate ./mine.yaml
      sparkwright recipes validate deepseek-v4-flash gpt-oss-20b --json
    """
    results = [_validated(name, places()) for name in names]
    if as_json:
        print_json({"results": results})
    else:
        for result in results:
            _say(result)
    if not all(result["valid"] for result in results):
        raise click.exceptions.Exit(2)


def rehearsed(variants: Sequence[Recipe], source: str) -> Rehearsed:
    """Findings on flags, variables, the model's shape and known reports of a recipe and its profiles, each once."""
    found: dict[Finding, str] = {}
    library = flag_store().load()
    for recipe in variants:
        alone = Context(Cluster("", (), ""), recipe=recipe, advice=advise(recipe, {}))
        asked = (in_recipe(finding, recipe.engine.name) for finding in rehearse(recipe, library))
        ruled = (finding for check in _CHECKS for finding in check.findings(alone))
        for finding in (*asked, *ruled):
            found.setdefault(finding, f"@{recipe.profile}" if recipe.profile else "")
    errors, warnings, notes = list[str](), list[str](), list[str]()
    for finding, profile in found.items():
        why = f" ({finding.evidence})" if finding.evidence else ""
        remedy = f"; {finding.remedy}" if finding.remedy else ""
        lines = errors if finding.severity.stops else warnings if finding.severity is Severity.WARN else notes
        lines.append(f"{source}{profile}: {finding.code} {finding.title}{why}{remedy}")
    return Rehearsed(tuple(errors), tuple(warnings), tuple(notes))


def _validated(name: str, at: Places) -> dict[str, Any]:
    """One row: name, source, valid, profiles, hash; refused: why, or empty; errors, warnings and notes: lines."""
    base: dict[str, Any] = {"name": name, "valid": True, "profiles": [], "hash": "", **asdict(Rehearsed())}
    found: SourceText | None = None
    try:
        bare, profile = split_profile(name, at)
        found, _ = in_our_form(find_recipe(bare, at))
        recipe, *others = _variants(found.text, found.source, profile, engines_for(found, at))
    except RecipeError as error:
        more = _rest(found) if found else Rehearsed()
        errors = [*error.message.splitlines(), *more.errors]
        return base | asdict(more) | {"valid": False, "errors": errors} | hint_json(error.hint)
    said = rehearsed([recipe, *others], found.source)
    base |= {"valid": not said.errors, **asdict(said)}
    refused = first_sentence(recipe.state_reason) if recipe.state is RecipeState.REFUSED else ""
    return base | {"profiles": list(recipe.profiles), "hash": recipe.hash, "refused": refused}


def _rest(found: SourceText) -> Rehearsed:
    """Further findings of a file with mistakes: one class would otherwise hide the next."""
    try:
        return rehearsed(what_is_left(found.text, found.source), found.source)
    except RecipeError:
        return Rehearsed()


def _say(result: dict[str, Any]) -> None:
    for line in Rehearsed(warnings=result["warnings"], notes=result["notes"]).softly():
        echo_text(line, err=True)
    if result["valid"]:
        profiles = f", profiles {', '.join(result['profiles'])}" if result["profiles"] else ""
        but = f", and refused by `up`: {result['refused']}" if result.get("refused") else ""
        echo_text(f"{result['name']}: valid (hash {result['hash']}{profiles}){but}")
        return
    for line in result["errors"]:
        echo_text(line)
    hint = f"; {result['hint']}" if result.get("hint") else ""
    echo_text(f"{result['name']}: {counted(len(result['errors']), 'error')}{hint}", err=True)


@dataclass(frozen=True, slots=True)
class ImportCall:
    """The command line of `recipes import`. file, container: one of them is ''. node: '' for the head."""

    file: str
    out: str
    name: str
    version: str
    nodes: int | None
    service: str
    values: tuple[str, ...]
    container: str
    node: str
    ask: bool
    strict: bool
    where: ClusterOptions
    as_json: bool


@click.command(name="import", short_help="Convert another tool's recipe.")
@click.argument("file", metavar="FILE|SOURCE/NAME|-", required=False, default="", shell_complete=complete.recipes)
@click.option("--out", default="", metavar="NAME.yaml", help="Write the recipe to this file. [default: stdout]")
@renamed_option(
    "--recipe-name",
    "name",
    was="--name",
    default="",
    metavar="NAME",
    help="Name of the recipe. [default: the source's]",
)
@click.option("--engine-version", "version", default="", metavar="VERSION", help="Version of the engine in the image.")
@click.option("--nodes", type=Whole(1), metavar="N", help="Number of nodes. [default: the source's]")
@click.option("--service", default="", metavar="NAME", help="Service of a Compose file. [default: the only engine]")
@click.option(
    "--set", "values", multiple=True, metavar="NAME=VALUE", help="Value of a variable that the file leaves open."
)
@click.option("--from-container", "container", default="", metavar="NAME", help="Read a running container instead.")
@click.option("--node", default="", metavar="NODE", help="Node of the container or image. [default: the head]")
@click.option("--ask-image", "ask", is_flag=True, help="Run the image once on the node to read the engine's version.")
@click.option("--strict", is_flag=True, help="Exit 1 if anything was left out, assumed, or grants privileges.")
@shared.cluster_options
@json_option
def import_command(**words: Any) -> None:
    """Convert a recipe of sparkrun or vLLM, a Compose file, a systemd unit, the output of docker inspect, or a docker
    run, vllm serve, sglang.launch_server, trtllm-serve or llama-server line. `-` reads stdin, SOURCE/NAME a registry.

    Exit status: 2 if the result is not a valid recipe yet; it is written anyway, and each line gives a reason.

    \b
    Examples:
      sparkwright recipes import theirs.yaml --out mine.yaml
      sparkwright recipes import start.sh --set MODEL=Qwen/Qwen3-8B --out mine.yaml
      sparkwright recipes import - --engine-version 0.26.0 <theirs.yaml >mine.yaml
      sparkwright recipes import --from-container vllm --node spark-1 --out mine.yaml
    """
    options = ImportCall(**words)
    out, values = options.out, _values(options.values)
    given = ImportOptions(options.name, options.version, options.nodes or 0, options.service, values)
    made = _imported(given, options)
    path = out or f"{made.name}.yaml"
    said = Rehearsed(made.errors) if made.errors else rehearsed(_variants(made.text, path), path)
    if out:
        _write(Path(out), made.text)
    if options.as_json:
        print_json({"name": made.name, "text": made.text, "left_out": made.notes, **asdict(said)})
    else:
        _say_unknown(made, said, path, shown=not out)
    if said.errors or (options.strict and made.notes):
        raise click.exceptions.Exit(2 if said.errors else 1)


def _values(given: tuple[str, ...]) -> dict[str, str]:
    """The words of --set. Raises UsageError for one without a name."""
    for word in given:
        if not re.fullmatch(r"[\w.-]+=.*", word, re.DOTALL):
            raise UsageError(f"--set {word}: no NAME=VALUE", hint="as in --set MODEL=Qwen/Qwen3-8B")
    return dict(word.partition("=")[::2] for word in given)


def _imported(given: ImportOptions, options: ImportCall) -> Imported:
    """The text of a file, of stdin or of a container; with --ask-image again, for the version that the image has."""
    file = options.file
    if bool(file) == bool(options.container):
        hint = "sparkwright recipes import --help"
        raise UsageError("give a FILE, `-`, SOURCE/NAME, or --from-container NAME", hint=hint)
    text, beside, folder = _opened(options)
    source = options.container or (file if file != "-" else "stdin")
    made = import_recipe(text, source, given, beside, folder)
    if not options.ask or made.errors:
        return made
    from sparkwright.app.plan.import_sources import version_in_image  # start-up

    recipe = load_recipe(made.text, source)
    if version := _on_node(options, lambda services, node: version_in_image(services, node, recipe)):
        return import_recipe(text, source, replace(given, version=version), beside, folder)
    return replace(made, notes=(*made.notes, "engine.version: the image did not tell which version it holds"))


def _opened(options: ImportCall) -> tuple[str, Beside, Folder]:
    """The text of a file, stdin, a container or a registry's recipe, with what gives the files that it names."""
    at, file = places(), options.file
    if options.container:
        from sparkwright.app.plan.import_sources import inspect_container  # start-up

        inspected = _on_node(options, lambda services, node: inspect_container(services, node, options.container))
        return inspected, nothing_beside, nothing_beside
    if file == "-":
        return _text(file), nothing_beside, nothing_beside
    if not Path(file).exists() and is_source(file.removeprefix("@").partition("/")[0], at):
        found = find_recipe(file, at)
        if found.around:
            return found.text, found.around.beside.get, found.around.mod
        return found.text, nothing_beside, nothing_beside
    return _text(file), beside_of(Path(file)), mods_of(Path(file))


def _on_node(options: ImportCall, ask: Callable[["Services", str], Awaitable[str]]) -> str:
    """An answer of the node that --node names. Raises UsageError for one that the cluster does not have."""
    cluster = shared.open_cluster(options.where)
    node = options.node or cluster.head
    if node not in cluster.names:
        raise UsageError(f"--node: {node!r} is not in the cluster", hint=f"its nodes: {', '.join(cluster.names)}")
    return shared.drive_on(cluster, options.where, lambda services: ask(services, node), quiet=True)


def _variants(text: str, path: str, profile: str = "", engines: Texts = ()) -> list[Recipe]:
    """The recipe with that profile; without one, also with each of its profiles. Raises RecipeError."""
    recipe = load_recipe(text, path, profile, engines)
    return [recipe, *(load_recipe(text, path, name, engines) for name in recipe.profiles if not profile)]


_MOST_BYTES = 1024 * 1024


def _text(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read(_MOST_BYTES)
        with Path(file).open(encoding="utf-8-sig") as opened:
            return opened.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is not UTF-8 text"
        raise RecipeError(f"{file}: cannot be read: {why}", hint="check the path") from None


def beside_of(file: Path) -> Callable[[str], str | None]:
    """Reads a file of the same folder for what names it (`include`, `.env`); never one that leads out of it."""

    def read(name: str) -> str | None:
        found = file.parent / name
        if not name or not found.is_file():
            return None
        if found.resolve().parent != file.parent.resolve():
            raise RecipeError(f"{file}: {name} is not in the same folder, or a link out of it", hint="copy it there")
        return _text(str(found))

    return read


def mods_of(file: Path) -> Callable[[str], Mapping[str, str] | None]:
    """Reads the folder of a mod: next to the recipe, in `mods` there, or in `mods` of the folder above."""

    def read(name: str) -> Mapping[str, str] | None:
        if not re.fullmatch(r"[\w.+-]+(/[\w.+-]+)*", name) or ".." in name:
            return None
        here = file.resolve().parent
        places = (here / name, here / "mods" / name, here.parent / "mods" / name)
        return next((_folder(place) for place in places if (place / SCRIPT).is_file()), None)

    return read


def _folder(place: Path) -> dict[str, str]:
    """Every file below. Raises RecipeError for a link out of it, and for more than a mod may hold."""
    found, size = dict[str, str](), 0
    for path in sorted(place.rglob("*")):
        if not path.is_file():
            continue
        if not path.resolve().is_relative_to(place.resolve()):
            raise RecipeError(f"{path}: is a link out of its mod", hint="put the file itself there")
        size += path.stat().st_size
        if size > MOST_BYTES or len(found) >= MOST_FILES:
            most = f"{MOST_FILES} files or {MOST_BYTES // 1024} KiB"
            raise RecipeError(f"{place}: more than {most}", hint="build an image with it: sparkwright build")
        found[path.relative_to(place).as_posix()] = mod_content(path.read_bytes())
    return found


def _write(path: Path, text: str) -> None:
    if path.exists():
        raise UsageError(f"{path}: exists already", hint="give another --out, or remove it first")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}", hint="give another --out") from None


def _say_unknown(made: Imported, said: Rehearsed, path: str, shown: bool) -> None:
    if shown:
        click.echo(made.text, nl=False)
    for note in made.notes:
        echo_text(f"note: {note}", err=True)
    for line in (*said.softly(), *said.errors):
        echo_text(line, err=True)
    todo = f"{len(said.errors)} error(s); edit the file, then `sparkwright recipes validate {path}`"
    good = "valid, state documented: nobody has served it with sparkwright"
    echo_text(f"{path}: {todo if said.errors else good}", err=True)
