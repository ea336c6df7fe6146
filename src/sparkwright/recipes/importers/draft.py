"""A recipe in the making: our keys so far, and what of the source has no place in them."""

import re
from collections.abc import Mapping
from typing import Any

from sparkwright.domain.power import pointers, powers
from sparkwright.domain.values import dataclass, field
from sparkwright.recipes.importers.commands import PROGRAMS, Started
from sparkwright.recipes.importers.shell import unresolved
from sparkwright.recipes.values import is_secret_name, looks_secret
from sparkwright.recipes.vocabulary import PER_RANK_ENV

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The user's options besides the file; 0 and '' leave it to the source. service: of a Compose file.

    values: of variables and holes that the file leaves to its caller.
    """

    name: str = ""
    version: str = ""
    nodes: int = 0
    service: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Draft:
    """tree: keys of a recipe file. notes: one sentence for each thing that was left out or assumed."""

    tree: Tree = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def put(self, path: str, value: Any) -> None:
        """Sets `serving.context` and the like; nothing for an empty text."""
        *sections, last = path.split(".")
        place = self.tree
        for section in sections:
            place = place.setdefault(section, {})
        if value != "":
            place[last] = value

    def get(self, path: str, default: Any = None) -> Any:
        place: Any = self.tree
        for part in path.split("."):
            place = place.get(part) if isinstance(place, Mapping) else None
        return default if place is None else place

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def put_engine(draft: Draft, name: str, image: str) -> None:
    """Name and image; the version is settled once all options are known."""
    draft.put("engine.name", name)
    if hole := unresolved(image) or next(iter(re.findall(r"\{[A-Za-z_][\w.-]*\}", image)), ""):
        draft.note(f"engine.image: {hole} has no value in the source; write it{hole_hint(hole)}")
        return
    draft.put("engine.image", image)
    if image and "@sha256:" not in image:
        draft.put("engine.image_note", "imported: the source names only a tag, which can move")


def put_program(draft: Draft, started: Started) -> None:
    """The engine's program where it is no usual one, and notes of what stands before it and runs besides."""
    if program := started.program:
        draft.put("engine.entrypoint", [program])
        if program.rpartition("/")[2] not in PROGRAMS:
            draft.note(f"engine.entrypoint: {program} is the image's own program; it is taken over")
    if started.by_name:
        draft.note(f"engine: {started.engine}, {started.by_name}; its program is started, not the image's entrypoint")
    if started.prefix:
        draft.note(f"command: {' '.join(started.prefix)!r} before the engine is left out")
    for other in started.others:
        draft.note(f"command: {other[:120]!r} beside the engine is left out; write it as a mod if the engine needs it")
    _note_comment(draft, started.at.comment if started.at else "")


def _note_comment(draft: Draft, comment: str) -> None:
    """Name the options behind a `#`: a shell reads none of them, least of all where YAML folded lines into one."""
    if lost := re.findall(r"(?<!\S)--?[A-Za-z][\w.-]*", comment):
        names = ", ".join(dict.fromkeys(lost[:8]))
        draft.note(
            f"command: {len(lost)} option(s) stand behind `{' '.join(comment[:30].split())}...`, a comment for the "
            f"shell; the source starts without them: {names}"
        )


def put_nodes(draft: Draft, asked: int) -> None:
    """Sets one node a rank: each GB10 has one GPU. `asked` spreads a single rank over more nodes with TP."""
    sizes = {key: draft.get(f"parallelism.{key}", 1) for key in ("tp", "pp", "dp")}
    ranks = sizes["tp"] * sizes["pp"] * sizes["dp"]
    if asked and asked != ranks:
        key = "pp" if draft.get("engine.name") == "llama-cpp" else "tp"
        draft.note(f"{ranks} rank(s) in the source, {asked} nodes asked for: {key} {asked} is written instead")
        draft.tree["parallelism"] = {k: v for k, v in draft.get("parallelism", {}).items() if k == "ep"} | {key: asked}
        ranks = asked
    draft.put("nodes", ranks)
    if ranks == 1 and draft.tree.get("parallelism", {}).pop("ep", False):
        draft.note("enable_expert_parallel: left out, experts are spread over ranks and there is one")
    if draft.get("engine.name") == "vllm-ray" and ranks == 1:
        draft.put("engine.name", "vllm")
        draft.note("engine: Ray is left out, it connects nodes and there is one")


def put_env(draft: Draft, env: Mapping[str, Any]) -> None:
    for name, given in env.items():
        value = "" if given is None else str(given).lower() if isinstance(given, bool) else str(given)
        why = _not_env(str(name), value)
        if why:
            draft.note(f"env.{name}: {why}")
        else:
            draft.put("env", draft.get("env", {}) | {str(name): value})
    note_powers(draft)


def note_powers(draft: Draft) -> None:
    """Names what is taken over although it gives power away: the file that it comes from may be anybody's."""
    for power in powers(draft.get("env", {}), draft.get("flags", {})):
        draft.note(f"{power.setting}: taken over; it {power.gives}")


def note_pointers(draft: Draft) -> None:
    """Name every path, module, URL and unknown variable that was taken over, once all of the draft is there."""
    named = {note.partition(":")[0] for note in draft.notes}
    for power in pointers(draft.tree):
        if power.setting not in named:
            draft.note(f"{power.setting}: taken over; it {power.gives}")


def _not_env(name: str, value: str) -> str:
    if name in PER_RANK_ENV or name == "NCCL_IB_GID_INDEX":
        return "left out: it differs from node to node, and the launcher fills it in"
    if is_secret_name(name) or looks_secret(value):
        return "left out: secrets are not imported; export it where you call sparkwright"
    if re.search(r"\$\{?\w|\$\(|\{[\w.]+\}", value):
        return f"left out: {value!r} is filled in by the other tool"
    return ""


def hole_hint(hole: str) -> str:
    """`, or import with --set NAME=VALUE` for a hole that has a name, '' for the output of a command."""
    name = re.fullmatch(r"\$?\{(\w[\w.-]*)[^{}]*\}", hole)
    return f", or import with --set {name[1]}=VALUE" if name else ""


def recipe_slug(text: str) -> str:
    """A recipe's name from any title: `MiniMax-M2.7 (NVFP4)` -> `minimax-m2.7-nvfp4`."""
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._")[:63]
