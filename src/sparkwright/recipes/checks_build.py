"""What `build` must pin: nothing that moves may decide what an image holds."""

import re
from collections.abc import Iterator

from sparkwright.domain.recipe import Build, Recipe
from sparkwright.recipes.problems import Complaint
from sparkwright.recipes.values import has_control, is_secret_name, looks_secret, shown
from sparkwright.recipes.yaml_lines import dotted

_FETCHES = re.compile(r"\bgit\s+(clone|pull|fetch)\b|\b(curl|wget)\b(?!.*sha\d+sum)|\bADD\s+https?:")
_BY_DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")
_SOMEBODY = re.compile(r"://[^/\s]*@")  # https://NAME:KEY@host/...


def build_checks(recipe: Recipe) -> Iterator[Complaint]:
    if recipe.build:
        yield from _named(recipe.build)
        yield from _base(recipe.build)
        yield from _python(recipe.build)
        yield from _commands(recipe.build)
        for name, value in recipe.build.env.items():
            path = ("build", "env", name)
            if is_secret_name(name) or looks_secret(value):
                yield path, f"`build.env.{name}`: a key would stay in the image for everybody who has it; leave it out"
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or "\n" in value or has_control(value):
                yield path, f"`build.env`: found {shown(name)}; allowed: NAME to a text of one line"
        yield from _addresses(recipe.build)


def _named(build: Build) -> Iterator[Complaint]:
    """What the schema lets be empty, because it may be elsewhere."""
    if not build.base:
        yield ("build", "base"), "`build.base` is empty; it names the image to begin with"
    for index, source in enumerate(build.sources):
        for key in ("name", "repository", "commit"):
            if not getattr(source, key):
                path = ("build", "sources", index, key)
                yield path, f"`build.sources[{index}].{key}` is empty; without it nothing can be built"
        if [other.name for other in build.sources].count(source.name) > 1:
            path = ("build", "sources", index, "name")
            yield path, f"`build.sources[{index}].name`: found {shown(source.name)}; another source has it too"


def _base(build: Build) -> Iterator[Complaint]:
    if build.unpinned:
        return
    if build.base and not _BY_DIGEST.fullmatch(build.base):
        hint = "give its digest (NAME@sha256:...), or explain in `build.unpinned` why it has none"
        yield ("build", "base"), f"`build.base`: found {shown(build.base)}, a tag, which can move; {hint}"
    loose = [name for name in build.packages if "=" not in name]
    if loose:
        hint = "write name=version, or explain in `build.unpinned` why not"
        text = f"`build.packages`: found {shown(', '.join(loose))}, without a version; {hint}"
        yield ("build", "packages"), text


def _python(build: Build) -> Iterator[Complaint]:
    for index, group in enumerate(build.python):
        path = ("build", "python", index, "packages")
        count = sum("--hash=" in word for word in group.packages)
        if not all(group.packages):
            yield path, f"`build.python[{index}].packages` holds an empty text; expected `name==version`"
        if count and count != len(group.packages):
            why = "pip wants hashes of all or of none; put them into two groups"
            text = f"`build.python[{index}].packages`: found {count} of {len(group.packages)} with hashes; {why}"
            yield path, text


def _commands(build: Build) -> Iterator[Complaint]:
    """Whatever a command downloads automatically is not pinned."""
    lines: list[Complaint] = [(("build", "steps", n), line) for n, line in enumerate(build.steps)]
    for index, source in enumerate(build.sources):
        lines += [(("build", "sources", index, "prepare", n), line) for n, line in enumerate(source.prepare)]
    for path, line in lines:
        if found := _FETCHES.search(line):
            hint = "name code in `build.sources`, wheels in `build.python`, and check a download with sha256sum"
            yield path, f"a command of `build` fetches what nothing pins: {shown(found[0].strip())}; {hint}"


def _addresses(build: Build) -> Iterator[Complaint]:
    """They go into the image's labels, its scripts and the record on the nodes."""
    found: list[Complaint] = [(("sources", n, "repository"), s.repository) for n, s in enumerate(build.sources)]
    found += [(("python", n, "index"), group.index) for n, group in enumerate(build.python)]
    for path, url in found:
        if _SOMEBODY.search(url):
            where = f"`build.{dotted(path)}`"
            yield ("build", *path), f"{where}: a user or a key in an address stays in the image; use a public one"
