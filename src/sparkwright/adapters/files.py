"""Finding and reading recipe, cluster and workload files: shipped ones, the user's own, and paths.

A recipe is asked for as NAME, as SOURCE/NAME of a registry that was added, as a path (with `/` or ending in .yaml), and
each with `@PROFILE`. The user's own recipes come before the shipped ones of the same name; a path that exists comes
before a registry.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sparkwright import __version__
from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.domain.homes import expand_home
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.recipes.catalogue import as_it_was_called, name_today

if TYPE_CHECKING:
    from sparkwright.domain.workload import Workload
    from sparkwright.recipes.registry import Around

SUFFIXES = (".yaml", ".yml")
ORIGINS = ("shipped", "yours", "path")
MAX_BYTES = 4_000_000
_DATA = files("sparkwright.recipes")
_MOST_ENGINES = 200
_MOST_PARSED = 100
_SOURCE = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}", re.ASCII)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of this user on this machine. They are handed in; the environment is not read here.

    xdg: values of XDG_CONFIG_HOME, XDG_STATE_HOME and XDG_CACHE_HOME by name; the default is below `home`.
    """

    cwd: Path
    home: Path
    xdg: Mapping[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self._folder("XDG_CONFIG_HOME", ".config")

    @property
    def state(self) -> Path:
        return self._folder("XDG_STATE_HOME", ".local/state")

    @property
    def cache(self) -> Path:
        return self._folder("XDG_CACHE_HOME", ".cache")

    def _folder(self, variable: str, usual: str) -> Path:
        """Folder of sparkwright. A relative path is not valid and is ignored, as the XDG specification says."""
        given = self.xdg.get(variable, "")
        return (Path(given) if given.startswith("/") else self.home / usual) / "sparkwright"

    @property
    def recipes(self) -> Path:
        return self.config / "recipes"

    @property
    def sources(self) -> Path:
        """Copies of the registries of recipes."""
        return self.state / "sources"

    @property
    def workloads(self) -> Path:
        return self.config / "workloads"

    @property
    def clusters(self) -> tuple[Path, Path]:
        """Places of the cluster file if none is named, in order of search."""
        return self.cwd / "cluster.yaml", self.config / "cluster.yaml"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file as read. source: how messages name it. origin: `shipped`, `yours`, `path`, or the name of a registry.

    around: files of the registry that it names.
    """

    name: str
    text: str
    source: str
    origin: str
    around: "Around | None" = None


def open_recipe(wanted: str, places: Places, profile: str = "") -> Recipe:
    """The recipe asked for as NAME[@PROFILE] or PATH[@PROFILE]; `profile` is the same as an option.

    Raises RecipeError: not found (with the nearest names), unreadable, or wrong inside (`FILE:LINE: ...`).
    """
    name, asked = split_profile(wanted, places)
    if asked and profile and asked != profile:
        raise RecipeError(f"{wanted}: two profiles are asked for: {asked} and {profile}", hint="name one of them")
    return recipe_of(find_recipe(name, places), places, asked or profile)


def recipe_of(found: SourceText, places: Places, profile: str = "") -> Recipe:
    """The recipe of a file that was read. Raises RecipeError."""
    engines = engines_for(found, places)

    def load() -> Recipe:
        from sparkwright.recipes.load import load_recipe  # pydantic and YAML, for a file that is new or was changed

        ours, notes = in_our_form(found)
        recipe = load_recipe(ours.text, found.source, profile, engines)
        return replace(recipe, notes=(*recipe.notes, *(f"import: {note}" for note in notes)))

    more = to_json(found.around) if found.around else ""
    own = tuple(word for file in engines for word in file)
    return _parsed(Recipe, (found.source, profile, *own), found.text + more, places, load)


def read_text(path: Path, subject: str) -> str:
    """The text of a file that a user named. Raises RecipeError with the reason."""
    return _read(path, subject)


def engine_files(places: Places) -> tuple[tuple[str, str], ...]:
    """The user's own engine files as (name, text), in the order of their names. Raises RecipeError: not readable."""
    paths = [path for path in _inside(places.config / "engines") if path.suffix == ".toml"][:_MOST_ENGINES]
    return tuple((_short(path, places), _read(path, f"engine file {_short(path, places)}")) for path in paths)


def engines_for(found: SourceText, places: Places) -> tuple[tuple[str, str], ...]:
    """The engine files that a recipe may name as (name, text): the user's own, then those of its registry."""
    more = found.around.engines if found.around else {}
    return (*engine_files(places), *((f"{found.origin}/{path}", text) for path, text in more.items()))


def in_our_form(found: SourceText) -> tuple[SourceText, tuple[str, ...]]:
    """The file itself; of a registry, imported where it is another tool's, and what that left out or assumed.

    Raises RecipeError.
    """
    if found.origin in ORIGINS:
        return found, ()
    from sparkwright.recipes.registry import ALONE, own_text

    text, notes = own_text(found.text, found.source, found.name, found.around or ALONE)
    return replace(found, text=text), notes


def open_cluster(
    given: str, from_environment: str, places: Places, check: Callable[[Cluster], object] = bool
) -> Cluster:
    """The cluster of --cluster, else of $SPARKWRIGHT_CLUSTER, else ./cluster.yaml, else the user's.

    given, from_environment: '' when not set. check: raises for one that cannot be used; called once for each text.
    Raises RecipeError.
    """
    named = given or from_environment
    if named:
        said_by = "--cluster" if given else "$SPARKWRIGHT_CLUSTER"
        text = _read(_from(named, places), f"cluster file {named} (from {said_by})")
        return _cluster(text, named, places, check)
    for path in places.clusters:
        if path.is_file():
            return _cluster(_read(path, f"cluster file {path}"), _short(path, places), places, check)
    looked = ", ".join(_short(path, places) for path in places.clusters)
    hint = (
        "`sparkwright init HOST HOST` writes one; by hand, `nodes: [spark-1, spark-2]` is enough; "
        "`sparkwright plan RECIPE --nodes 2` needs none"
    )
    raise RecipeError(f"no cluster file: looked for --cluster, $SPARKWRIGHT_CLUSTER, {looked}", hint)


def open_workload(wanted: str, places: Places) -> "Workload":
    """A shipped one by its name, the user's own by name, or any by its path. Raises RecipeError."""
    from sparkwright.loadgen import profiles
    from sparkwright.recipes.workload_file import load_workload  # pydantic, which other verbs can do without

    path = _from(wanted, places) if "/" in wanted or wanted.endswith(SUFFIXES) else places.workloads / f"{wanted}.yaml"
    if path.parent == places.workloads and not path.exists():
        if wanted not in profiles.profile_names():
            near = get_close_matches(wanted, profiles.profile_names(), n=1)
            hint = f"did you mean `{near[0]}`? " if near else ""
            message = f"no workload {wanted!r}; there are: {', '.join(profiles.profile_names())}"
            raise RecipeError(message, f"{hint}Your own is named by its path: --workload ./mine.yaml")
        return load_workload(profiles.profile_text(wanted), f"{wanted}.yaml")
    return load_workload(_read(path, f"workload {wanted}"), str(path))


def texts_of(paths: Iterable[str], places: Places) -> Mapping[str, str]:
    """Path -> text. Raises UsageError."""
    found = {}
    for name in paths:
        path = _from(name, places)
        try:
            found[name] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}, to be replayed: {getattr(error, 'strerror', None) or 'no text'}") from None
    return found


def _cluster(text: str, source: str, places: Places, check: Callable[[Cluster], object]) -> Cluster:
    def load() -> Cluster:
        from sparkwright.recipes.cluster_file import load_cluster

        check(found := load_cluster(text, source))
        return found

    return _parsed(Cluster, (source,), text, places, load)


def _parsed(kind: type[T], named: tuple[str, ...], text: str, places: Places, load: Callable[[], T]) -> T:
    """Return `load` of a file, or its stored result for the same text: pydantic takes 0.2 s to load and check.

    Only for files without a mistake. named: what `load` depends on besides the text.
    """
    path = places.cache / "parsed" / _digest(kind.__name__, *named)
    made_from = _digest(__version__, str(_newest_source()), *named, text)
    with suppress(OSError, UnicodeDecodeError, Unreadable, RecursionError):
        before, _, content = path.read_text(encoding="utf-8").partition("\n")
        if before == made_from:
            return from_json(kind, content)
    made = load()
    content = to_json(made)
    with suppress(OSError, Unreadable):
        if from_json(kind, content) == made:
            # All of it or nothing, for this user only.
            private_folder(path.parent)
            there = list(path.parent.iterdir())
            for old in there if len(there) >= _MOST_PARSED else ():
                old.unlink(missing_ok=True)
            write(path, f"{made_from}\n{content}".encode(), sync=False)
    return made


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _newest_source() -> int:
    """Nanoseconds of the newest file that decides what a text means: a checkout changes without a new version."""
    ours = Path(__file__).parent.parent
    return max(path.stat().st_mtime_ns for name in ("recipes", "domain") for path in (ours / name).glob("*.py"))


def split_profile(wanted: str, places: Places) -> tuple[str, str]:
    """`name@256k` -> (`name`, `256k`). A file whose name holds an @ is taken as it is."""
    name, at, profile = wanted.rpartition("@")
    if not at or (_is_path(wanted) and (_from(wanted, places).is_file() or "/" in profile)):
        return wanted, ""
    return name, profile


def find_recipe(name: str, places: Places) -> SourceText:
    """The text of one recipe, by name, SOURCE/NAME or path (without profile). Raises RecipeError."""
    source, _, wanted = name.removeprefix("@").partition("/")
    if wanted and is_source(source, places) and not _from(name, places).exists():
        from sparkwright.adapters.recipe_sources import RecipeSources

        entry, text, around = RecipeSources(places.sources, places.cwd).recipe(source, wanted)
        return SourceText(wanted, text, f"{source}/{entry.path}", source, around)
    if _is_path(name):
        return SourceText(Path(name).stem, _read(_from(name, places), f"recipe {name}"), name, "path")
    known = dict(_listed(places))
    if name in known:
        return known[name]()
    if today := name_today(name):
        found = known[today]()
        return replace(found, name=name, text=as_it_was_called(found.text, name))
    here = next((f"./{name}{s}" for s in SUFFIXES if (places.cwd / f"{name}{s}").is_file()), "")
    near = get_close_matches(name, recipe_names(places), n=1, cutoff=0.5)
    instead = f"; {here} is here: write it with ./" if here else f"; did you mean {near[0]}?" if near else ""
    hint = "`sparkwright recipes list` shows all; or give a path, ./NAME.yaml"
    raise RecipeError(f"recipe {name!r} does not exist{instead}", hint)


def is_source(name: str, places: Places) -> bool:
    """Return whether a registry of that name was added."""
    return bool(_SOURCE.fullmatch(name)) and (places.sources / name / "source.json").is_file()


def recipe_names(places: Places) -> tuple[str, ...]:
    """Every shipped recipe and every one of the user's, by name."""
    return tuple(sorted(dict(_listed(places))))


def reference(which: str = "recipe") -> str:
    """The annotated reference: of the `recipe` or of the `cluster` file."""
    return (_DATA / ("cluster-reference.yaml" if which == "cluster" else "reference.yaml")).read_text(encoding="utf-8")


def _listed(places: Places) -> Iterator[tuple[str, Callable[[], SourceText]]]:
    """Each is read when asked for: a broken neighbour must not hide the requested one.

    Shipped ones first: in a dict the user's then replace them.
    """

    def shipped(name: str) -> SourceText:
        text = (_DATA / "shipped" / f"{name}.yaml").read_text(encoding="utf-8")
        return SourceText(name, text, f"shipped/{name}.yaml", "shipped")

    def own(path: Path) -> SourceText:
        source = _short(path, places)
        return SourceText(path.stem, _read(path, f"recipe {source}"), source, "yours")

    for entry in (_DATA / "shipped").iterdir():
        if entry.name.endswith(".yaml"):
            name = entry.name.removesuffix(".yaml")
            yield name, partial(shipped, name)
    for path in _inside(places.recipes):
        if path.suffix in SUFFIXES:
            yield path.stem, partial(own, path)


def _inside(folder: Path) -> list[Path]:
    """The entries of a folder, sorted; none where there is none, or where this user may not look."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _is_path(name: str) -> bool:
    file = name if name.endswith(SUFFIXES) else name.rpartition("@")[0]
    return "/" in name or file.endswith(SUFFIXES)


def _from(name: str, places: Places) -> Path:
    return places.cwd / expand_home(name, str(places.home))


def _short(path: Path, places: Places) -> str:
    """`./cluster.yaml` and `~/.config/...` instead of long paths."""
    if path.is_relative_to(places.cwd) and path.parent == places.cwd:
        return f"./{path.name}"
    return f"~/{path.relative_to(places.home)}" if path.is_relative_to(places.home) else str(path)


def _read(path: Path, subject: str) -> str:
    """The file's text. Raises RecipeError with the file and the reason."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise RecipeError(f"{subject}: there is no such file", hint="check the path") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RecipeError(f"{subject}: cannot be read: {why}", hint="check the path and its rights") from None
    if len(content) > MAX_BYTES:
        said = f"larger than {MAX_BYTES} bytes; such a file is a few kilobytes"
        raise RecipeError(f"{subject}: {said}", hint="check the path")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise RecipeError(f"{subject}: line {line} is not UTF-8 text", hint="save it as UTF-8") from None
