"""Images as the node's Docker reports them: an engine's version, and images that sparkwright built."""

import re
from collections.abc import Mapping
from shlex import quote

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import EngineFound, Unknown
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.image import own_labels
from sparkwright.domain.values import dataclass
from sparkwright.facts.fact import not_understood, sections, whole_number
from sparkwright.remote.host import script, script_texts
from sparkwright.remote.staging import copied_tag

_sh = script_texts(__name__)

# `version: 11549 (0f1e2d3)` of llama-server and its kin.
_VERSION = re.compile(r"^version: (\d+)\b", re.MULTILINE)
_LINE = 300
_ROW = re.compile(r"([A-Za-z0-9_.-]+) (\S+)")
# Without --force-rm a failed or interrupted step of the classic builder leaves its container behind.
_BUILD = 'exec docker build --force-rm "$@" - 2>&1'
# Importing an engine takes ten seconds; what pip wrote beside it tells its version at once. A program's first line
# names the Python that it belongs to, which need not be the first one on PATH.
_VERSIONS = """
import sys
from importlib import metadata, util
for name in sys.argv[1:]:
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        print(name, "?") if util.find_spec(name) else None
"""
_ASK = f"ask() {{ {_sh('ask')} }}\n"
_HOME = 'own=$(x "$1"); program=$(x "$2"); shift 2; set -- "$own" "$program" "$@"\n'


def parse_found(done: Completed) -> EngineFound | Unknown | None:
    """Parses engine_of_image and its kin; None if there is no image, or nothing is known of it yet."""
    parts = sections(done.stdout)
    if done.ok and not parts:
        return None
    if "end" not in parts:
        return not_understood(done, "docker")
    rows = [match for line in parts.get("found", "").splitlines() if (match := _ROW.fullmatch(line))]
    versions = {row[1]: row[2] for row in rows if row[1] != "program"}
    program = next((row[2] for row in rows if row[1] == "program"), "")
    if printed := _VERSION.search(parts.get("printed", "")):
        versions[program.rpartition("/")[2]] = printed[1]
    return EngineFound(parts.get("arch", ""), versions, program, parts.get("broken", "").strip()[:_LINE])


def build(tag: str, labels: Mapping[str, str], context: bytes) -> Command:
    """`docker build` of a tar on stdin, with BuildKit or without; its lines come as they are made. Exit: docker's."""
    words = ["--tag", tag, *(word for name, value in labels.items() for word in ("--label", f"{name}={value}"))]
    made = script(_BUILD, *words, timeout=12 * 3600, changes=f"docker build {tag}", stdin=context)
    return Command(made.argv, {"BUILDKIT_PROGRESS": "plain"}, made.stdin, made.timeout, made.changes)


def describe(tag: str, base: str, freeze: str) -> Command:
    """Sections image, arch, size, labels, base (id and digests), packages (`freeze`: file in the image; may be absent).

    Exit 1 when the image is not there.
    """
    return script(_sh("describe"), tag, base, freeze, timeout=60)


@dataclass(frozen=True, slots=True)
class Question:
    """The search for an engine: its Python packages, its own first, and the program that starts it.

    says_version: the program itself prints it (`--version`), there is no package. own: the interpreter to ask first.
    imports: `own` alone runs the engine, and is to import the first package: only for those that take a second.
    """

    program: str
    packages: tuple[str, ...] = ()
    says_version: bool = False
    own: str = ""
    imports: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.own, self.program, *self.packages)


def known_engine(image: str, question: Question, cache: str) -> Command:
    """The command like `engine_of_image`, but only for earlier results; nothing is started."""
    return _probe(image, question, cache, ("", ""))


def engine_of_image(image: str, question: Question, cache: str, gpu: bool = False) -> Command:
    """Sections arch, found (`NAME VERSION` lines, `?` where only the code is there), the output of
    the program, end; empty: no such image.

    Runs the image once; the answer is kept below `cache` for as long as the image's id is the same.
    gpu: the program links the driver's libraries, which are not in the image.
    """
    return _probe(image, question, cache, ("run", "--gpus all" if gpu else ""))


def _probe(image: str, question: Question, cache: str, how: tuple[str, str]) -> Command:
    ask = _sh("ask_program") if question.says_version else _ASK + _sh("ask_image")
    kind = "-".join((*question.packages, question.program.strip("/").replace("/", "_")))
    words = (image, copied_tag(image), cache, kind, *how, ask, *question.arguments)
    return script(f"VERSIONS={quote(_VERSIONS)}\n{_sh('probe')}", *words, timeout=120)


def engine_of_node(question: Question) -> Command:
    """The same of the node itself, for the process runtime: no arch, nothing kept."""
    if question.says_version:
        return script(_HOME + _sh("ask_program"), *question.arguments)
    if question.imports:
        return script(f"VERSIONS={quote(_VERSIONS)}\n{_HOME}{_sh('ask_own')}", *question.arguments, timeout=120)
    text = f"VERSIONS={quote(_VERSIONS)}\n{_ASK}printf '@@ found\\n'; ask \"$@\"; printf '@@ end\\n'"
    return script(_HOME + text, *question.arguments)


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """labels: ours, without prefix. base: id and digests of the image it began with, as far as the node has it.

    packages: `pip freeze` of the image, one `name==version` each; () where it has no Python.
    """

    id: str
    arch: str
    size: int
    labels: Mapping[str, str]
    base: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def as_record(self) -> dict[str, object]:
        """The record for the nodes."""
        return {
            "id": self.id,
            "architecture": self.arch,
            "size": self.size,
            "provenance": dict(self.labels),
            "base": list(self.base),
            "packages": list(self.packages),
        }


def parse(done: Completed) -> BuiltImage | Unknown:
    """Parses `describe`."""
    parts = sections(done.stdout)
    size = whole_number(parts.get("size", ""))
    try:
        name, found = read_json(parts.get("image", "")), read_json(parts.get("labels", ""))
    except ValueError:
        return not_understood(done, "docker")
    if not isinstance(name, str) or not isinstance(found, dict) or size is None:
        return not_understood(done, "docker")
    labels = own_labels({str(key): str(value) for key, value in found.items()})
    base, packages = parts.get("base", "").split(), parts.get("packages", "").splitlines()
    return BuiltImage(name, parts.get("arch", ""), size, labels, tuple(base), tuple(packages))
