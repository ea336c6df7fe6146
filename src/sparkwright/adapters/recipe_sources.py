"""Registries of recipes on this machine: a copy of the recipe files of one commit each, and its list.

`STATE/sources/NAME/`: source.json (where from, which commit), git (a bare repository), and a folder for the pinned
commit with recipes.json and the recipe files under numbers. Whatever stands in a registry, only its recipe files are
written, by us, under names of ours.
"""

import json
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import Protocol

from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.adapters.git import Git
from sparkwright.domain.codec import Unreadable, from_json, from_tree, to_json
from sparkwright.domain.errors import RecipeError, StoreError, UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.homes import expand_home
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.recipes import registry
from sparkwright.recipes.importers.mods import MOST_BYTES, mod_content
from sparkwright.recipes.registry import ALONE, Around, Change, Check, Entry

GIT, FOLDER = "git", "folder"
_MAX_TOTAL = 8_000_000  # bytes of all recipes: reading YAML takes some 10 s a megabyte
_MAX_FILES = 20_000
_MAX_INDEX = 100_000
_URL = re.compile(
    r"(https?|ssh|git|file)://[^\s\x00-\x1f]{1,500}|[A-Za-z0-9._-]+@[A-Za-z0-9._-]+:[^\s\x00-\x1f]{1,400}"
)
_LINK, _SUBMODULE = "120000", "160000"


@dataclass(frozen=True, slots=True)
class KeptSource:
    """A registry as it was added. commit: the pinned one; of a folder the hash of its recipes.

    at: seconds since the epoch of the last change.
    """

    name: str
    url: str
    kind: str
    commit: str
    title: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A registry at one commit: recipes, name -> (entry, text), and the files that each names, if any."""

    source: KeptSource
    recipes: Mapping[str, tuple[Entry, str]]
    around: Mapping[str, Around]

    @property
    def broken(self) -> tuple[Entry, ...]:
        return tuple(entry for entry, _ in self.recipes.values() if entry.errors)


@dataclass(frozen=True, slots=True)
class Update:
    """An update that was fetched and checked and has not taken effect. rewritten: the pinned commit is gone."""

    old: Snapshot
    new: Snapshot
    changes: tuple[Change, ...]
    rewritten: bool = False


Told = Callable[[int, int], None]  # recipes checked, of how many


class RecipeSources:
    """All registries of this user. Methods raise UsageError, RecipeError, StoreError."""

    def __init__(self, root: Path, cwd: Path, interactive: bool = False) -> None:
        """interactive: whether git may ask for a password on the terminal."""
        self._root, self._cwd, self._interactive = root, cwd, interactive

    def all(self) -> tuple[KeptSource, ...]:
        """The registries by name; a damaged one is left out, so that the others can be used."""
        found = sorted(self._root.glob("*/source.json")) if self._root.is_dir() else []
        return tuple(one for path in found if (one := _read_source(path)))

    def source(self, name: str) -> KeptSource:
        known = {one.name: one for one in self.all()}
        if name not in known:
            raise UsageError(f"no recipe source {name!r}", "sparkwright recipes source list shows them")
        return known[name]

    def add(self, where: str, name: str, check: Check, told: Told = lambda done, of: None) -> Snapshot:
        """Fetch and check a registry; it is stored whole or not at all.

        where: URL, or the path of a folder. name: '' takes the one in its index, or the end of the address.
        """
        kind, url = self._address(where)
        with self._workplace() as place:
            files, commit = self._fetched(kind, url, place)
            index, texts, around = _recipes_of(files)
            name = name or index.name or _usual_name(url)
            self._free(name)
            source = KeptSource(name, url, kind, commit, index.title, time.time())
            made = Snapshot(source, _judged(texts, around, check, told), around)
            _write_snapshot(place, made)
            try:
                place.rename(self._root / name)
            except OSError as error:  # another process was quicker, or the disk is full
                raise UsageError(f"{self._root / name}: cannot be made: {error.strerror or error}") from None
        return made

    def update(self, name: str, check: Check, told: Told = lambda done, of: None) -> Update:
        """The changes an update would make. Nothing takes effect."""
        old = self.snapshot(name)
        source = old.source
        if source.kind == GIT:
            git = Git(self._root / name / "git", self._interactive)
            commit = _explained(source, lambda: git.fetch(source.url))
            files: _Files = _GitFiles(git, commit)
            rewritten = not git.is_ancestor(source.commit, commit)
        else:
            files, rewritten = _FolderFiles(Path(source.url)), False
            commit = files.commit()
        index, texts, around = _recipes_of(files)
        made = KeptSource(name, source.url, source.kind, commit, index.title, time.time())
        new = Snapshot(made, _judged(texts, around, check, told), around)
        return Update(old, new, registry.changes(old.recipes, new.recipes), rewritten)

    def apply(self, update: Update) -> None:
        """Make an update take effect: the files first, then the one line that names their commit."""
        folder, old = self._root / update.new.source.name, update.old.source.commit
        _write_snapshot(folder, update.new)
        if old != update.new.source.commit:
            shutil.rmtree(folder / old, ignore_errors=True)

    def remove(self, name: str) -> KeptSource:
        found = self.source(name)
        shutil.rmtree(self._root / name)
        return found

    def snapshot(self, name: str) -> Snapshot:
        source = self.source(name)
        folder = self._root / name / source.commit
        try:
            rows = read_json((folder / "recipes.json").read_text(encoding="utf-8"))
            entries = [from_tree(Entry, row) for row in rows]
            texts = [(folder / f"{n}.yaml").read_text(encoding="utf-8") for n in range(len(entries))]
        except (OSError, ValueError, Unreadable):
            raise StoreError(f"{folder}: the copy of {name} is damaged", _again(source)) from None
        return Snapshot(source, {entry.name: (entry, text) for entry, text in zip(entries, texts, strict=True)}, {})

    def names(self) -> tuple[str, ...]:
        """SOURCE/NAME of every recipe that can be used; a damaged source has none."""
        found = list[str]()
        for one in self.all():
            with suppress(OSError, ValueError, KeyError, TypeError):
                rows = read_json((self._root / one.name / one.commit / "recipes.json").read_text(encoding="utf-8"))
                found += [f"{one.name}/{row['name']}" for row in rows if not row["errors"]]
        return tuple(found)

    def engines(self) -> tuple[tuple[str, str], ...]:
        """The engine files that recipes of registries name, as (SOURCE/PATH, text); a damaged one is left out."""
        found = dict[str, str]()
        for one in self.all():
            for path in sorted((self._root / one.name / one.commit).glob("*.json")):
                with suppress(OSError, ValueError, Unreadable):
                    around = from_json(Around, path.read_text(encoding="utf-8")) if path.stem.isdecimal() else ALONE
                    found |= {f"{one.name}/{file}": text for file, text in around.engines.items()}
        return tuple(found.items())

    def recipe(self, name: str, wanted: str) -> tuple[Entry, str, Around]:
        """One recipe by its name in a source, or by its path there, as hints for the next command name it."""
        source = self.source(name)
        folder = self._root / name / source.commit
        try:
            rows = read_json((folder / "recipes.json").read_text(encoding="utf-8"))
            number = next((n for n, row in enumerate(rows) if wanted in (row["name"], row["path"])), -1)
            if number >= 0:
                text = (folder / f"{number}.yaml").read_text(encoding="utf-8")
                beside = folder / f"{number}.json"
                around = from_json(Around, beside.read_text(encoding="utf-8")) if beside.exists() else ALONE
                return from_tree(Entry, rows[number]), text, around
        except (OSError, ValueError, KeyError, TypeError, Unreadable):
            raise StoreError(f"{folder}: the copy of {name} is damaged", _again(source)) from None
        hint = f"sparkwright recipes list --source {name} shows its recipes"
        raise RecipeError(f"recipe {wanted!r} does not exist in {name}", hint)

    def _address(self, where: str) -> tuple[str, str]:
        """(kind, URL or absolute path). A URL with a password in it is refused: it would be stored."""
        if _URL.fullmatch(where):
            if re.match(r"[a-z]+://[^/@]*:[^/@]+@", where):
                hint = "leave it out: git asks its credential helper, as for any other repository"
                raise UsageError("the URL has a password in it, which would be stored", hint)
            return GIT, where
        path = (self._cwd / expand_home(where, str(Path.home()))).resolve()
        if not path.is_dir():
            if where.startswith(("/", ".", "~")):
                raise UsageError(f"{where[:200]}: there is no such folder", "check the path")
            known = "an https, ssh, git or file URL, user@host:path, or a folder"
            raise UsageError(f"{where[:200]!r} is no source: expected {known}")
        return FOLDER, str(path)

    @contextmanager
    def _workplace(self) -> Iterator[Path]:
        """A folder next to the final one; gone again unless it was renamed."""
        private_folder(self._root)
        place = Path(mkdtemp(prefix=".new-", dir=self._root))
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _fetched(self, kind: str, url: str, place: Path) -> "tuple[_Files, str]":
        if kind == FOLDER:
            folder = _FolderFiles(Path(url))
            return folder, folder.commit()
        git = Git(place / "git", self._interactive)
        git.create()
        commit = git.fetch(url)
        return _GitFiles(git, commit), commit

    def _free(self, name: str) -> None:
        if not registry.NAME.fullmatch(name):
            raise UsageError(f"{name[:60]!r} is no name: small letters, digits, `.`, `_`, `-`", "--name NAME")
        if (self._root / name).exists():
            raise UsageError(f"there is a source {name} already", f"--name NAME, or recipes source update {name}")


class _Files(Protocol):
    """Files of a registry by path."""

    def listing(self) -> Mapping[str, int]:
        """Path -> bytes. Raises RecipeError for symbolic links and the like in a recipe folder."""

    def contents(self, paths: tuple[str, ...]) -> Mapping[str, bytes]:
        """Path -> bytes. Raises RecipeError."""


class _GitFiles:
    def __init__(self, git: Git, commit: str) -> None:
        self._git = git
        self._entries = {entry.path: entry for entry in git.listing(commit)}

    def listing(self) -> Mapping[str, int]:
        return {path: -1 if entry.mode in (_LINK, _SUBMODULE) else entry.size for path, entry in self._entries.items()}

    def contents(self, paths: tuple[str, ...]) -> Mapping[str, bytes]:
        found = self._git.contents([self._entries[path].blob for path in paths], _MAX_TOTAL) if paths else []
        return dict(zip(paths, found, strict=True))


class _FolderFiles:
    """A folder of this machine, read without following a link."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sizes = dict(self._walk())

    def _walk(self) -> Iterator[tuple[str, int]]:
        if not self._root.is_dir():
            raise UsageError(f"{self._root}: the folder is gone", "recipes source remove NAME forgets it")
        for folder, folders, files in os.walk(self._root, followlinks=False):
            at = Path(folder)
            links = [name for name in folders if (at / name).is_symlink()]
            folders[:] = sorted(name for name in folders if name not in links and name != ".git")
            for name in (*links, *files):
                path = at / name
                mode = path.lstat()
                size = mode.st_size if stat.S_ISREG(mode.st_mode) else -1
                yield path.relative_to(self._root).as_posix(), size

    def listing(self) -> Mapping[str, int]:
        return self._sizes

    def contents(self, paths: tuple[str, ...]) -> Mapping[str, bytes]:
        found = {}
        for path in paths:
            try:
                handle = os.open(self._root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                with os.fdopen(handle, "rb") as file:
                    found[path] = file.read(MOST_BYTES + 1)
            except OSError as error:
                raise RecipeError(f"{path}: cannot be read: {error.strerror or error}") from None
        return found

    def commit(self) -> str:
        """A hash of what is read of it, in place of a commit."""
        _, texts, around = _recipes_of(self)
        told = "\0".join(f"{name}\0{path}\0{text}" for name, (path, text) in texts.items())
        told += "".join(f"\0{name}\0{to_json(files)}" for name, files in around.items())
        return sha256(told.encode("utf-8", "replace")).hexdigest()[:40]


def _text(path: str, content: bytes) -> str:
    """Raises RecipeError."""
    if len(content) > registry.MAX_BYTES:
        raise RecipeError(f"{path}: larger than {registry.MAX_BYTES // 1000} kB; such a file has a few")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise RecipeError(f"{path}:{line}: is not UTF-8 text") from None


_Texts = Mapping[str, tuple[str, str]]  # name -> (path, text)


def _recipes_of(files: _Files) -> tuple[registry.Index, _Texts, Mapping[str, Around]]:
    """The index, each recipe, and the files that it names. Raises RecipeError for what must not be read."""
    sizes = files.listing()
    if len(sizes) > _MAX_FILES:
        raise RecipeError(f"it holds {len(sizes):,} files; at most {_MAX_FILES:,} are taken")
    there = [path for path in (registry.OURS, registry.SPARKRUN) if path in sizes]
    _plain_files(there, sizes)
    roots = {path.partition("/")[0] for path in sizes if "/" in path}
    index = registry.read_index(_texts(files, tuple(there)), roots)
    begins = tuple(f"{folder}/" for folder in index.folders)
    _plain_files([path for path in sizes if path.startswith(begins) or path in index.folders], sizes)
    paths = registry.recipe_paths(index, sizes)
    if not paths:
        raise RecipeError(f"no recipe file in {', '.join(index.folders)}")
    for path in paths:
        if sizes[path] > registry.MAX_BYTES:
            raise RecipeError(f"{path}: has {sizes[path]:,} bytes; at most {registry.MAX_BYTES:,} are taken")
    if (total := sum(sizes[path] for path in paths)) > _MAX_TOTAL:
        raise RecipeError(f"its recipes have {total:,} bytes together; at most {_MAX_TOTAL:,} are taken")
    texts = _texts(files, paths)
    named = {name: (path, texts[path]) for name, path in registry.names_of(paths).items()}
    engines = registry.engine_paths(sizes)
    _plain_files(list(engines), sizes)
    large = next((path for path in engines if sizes[path] > registry.MAX_BYTES), "")
    if large:
        raise RecipeError(f"{large}: has {sizes[large]:,} bytes; at most {registry.MAX_BYTES:,} are taken")
    around = _around(files, registry.mods_of(index, sizes), named, texts)
    described = _texts(files, engines)
    for name, (_, text) in named.items() if described else ():
        if found := registry.engines_named(text, described):
            around[name] = replace(around.get(name, ALONE), engines=found)
    return index, named, around


def _texts(files: _Files, paths: tuple[str, ...]) -> dict[str, str]:
    return {path: _text(path, content) for path, content in files.contents(paths).items()}


def _around(
    files: _Files, mods: Mapping[str, Mapping[str, str]], named: _Texts, texts: Mapping[str, str]
) -> dict[str, Around]:
    """The files that each recipe names, where it names any; each mod is read once."""
    pairs = {name: registry.named_by(path, text, texts, mods) for name, (path, text) in named.items()}
    wanted = {folder for _, folders in pairs.values() for folder in folders.values()}
    read = files.contents(tuple(path for folder in sorted(wanted) for path in mods[folder].values()))
    content = {folder: {name: mod_content(read[path]) for name, path in mods[folder].items()} for folder in wanted}
    made = {name: Around({file: texts[path] for file, path in beside.items()},
                         {mod: content[folder] for mod, folder in folders.items()})
            for name, (beside, folders) in pairs.items()}  # fmt: skip
    return {name: around for name, around in made.items() if around != ALONE}


def _plain_files(paths: list[str], sizes: Mapping[str, int]) -> None:
    """Raises RecipeError for a link or a submodule: neither is followed."""
    odd = next((path for path in paths if sizes[path] < 0), "")
    if odd:
        raise RecipeError(f"{odd[:200]}: is a symbolic link, a submodule or no plain file; none of these is followed")


def _judged(texts: _Texts, around: Mapping[str, Around], check: Check, told: Told) -> Mapping[str, tuple[Entry, str]]:
    found = {}
    for number, (name, (path, text)) in enumerate(texts.items(), 1):
        found[name] = registry.judged(name, path, text, check, around.get(name, ALONE)), text
        told(number, len(texts))
    return found


def _write_snapshot(folder: Path, made: Snapshot) -> None:
    """All files of a commit, then source.json, which makes it the one that counts. Raises StoreError."""
    place = folder / made.source.commit
    try:
        private_folder(place)
        rows = []
        for number, (entry, text) in enumerate(made.recipes.values()):
            write(place / f"{number}.yaml", text.encode(), sync=False)
            if entry.name in made.around:
                write(place / f"{number}.json", to_json(made.around[entry.name]).encode(), sync=False)
            rows.append(asdict(entry))
        write(place / "recipes.json", json.dumps(rows).encode(), sync=False)
        write(folder / "source.json", json.dumps(asdict(made.source), indent=1).encode())
    except OSError as error:
        raise StoreError(
            f"{place}: cannot be written: {error.strerror or error}", "make room, or make it writable"
        ) from None


def _read_source(path: Path) -> KeptSource | None:
    with suppress(OSError, ValueError, Unreadable):
        found = from_tree(KeptSource, read_json(path.read_text(encoding="utf-8")))
        if found.name == path.parent.name and registry.NAME.fullmatch(found.name) and found.commit.isalnum():
            return found
    return None


def _explained(source: KeptSource, fetch: Callable[[], str]) -> str:
    """A registry that is gone or out of reach leaves the copy as it is, and the message says so."""
    try:
        return fetch()
    except UsageError as error:
        kept = f"{source.name} stays at commit {source.commit[:12]}, which works offline"
        raise UsageError(f"{source.url}: {error.message}", error.hint or kept) from None


def _usual_name(url: str) -> str:
    last = PurePosixPath(url.rstrip("/").replace(":", "/")).name.removesuffix(".git").lower()
    return re.sub(r"[^a-z0-9._-]+", "-", last).strip("-._")[:40]


def _again(source: KeptSource) -> str:
    return f"sparkwright recipes source remove {source.name}; sparkwright recipes source add {source.url}"
