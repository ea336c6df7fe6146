"""Mods of a sparkrun recipe: the folder that it names, with its files, so that the recipe stands alone."""

import base64
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from sparkwright.engines.mods import BINARY, MODS_AT
from sparkwright.recipes.importers.draft import Draft
from sparkwright.recipes.values import has_control

SCRIPT = "run.sh"
_NO_ACT = re.compile(r"#|echo \"[^\"$`]*\"$|echo '[^']*'$|set -[a-z]+( -?o? ?pipefail)?$")
_COPY = re.compile(r"cp (?:\./)?(?P<file>[\w./-]+) \"?\$\{?WORKSPACE_DIR\}?/(?P<to>[\w.-]+)\"?")
MOST_FILES = 64
MOST_BYTES = 256 * 1024


def mod_name(reference: str) -> str:
    """`fix-x` of `mods/fix-x`, `@registry/mods/fix-x` and `owner/fix-x`."""
    return re.sub(r"[^\w.+-]", "-", reference.rstrip("/").rpartition("/")[2])[:80] or "mod"


def mod_content(data: bytes) -> str:
    """The text of a file; base64 for what a recipe file cannot hold as text."""
    try:
        text = data.decode()
    except ValueError:
        text = ""
    plain = bool(text) and "\r" not in text and not has_control(text) and not text.startswith(BINARY)
    return text if plain else BINARY + base64.b64encode(data).decode()


def _copied_template(files: Mapping[str, str], wanted: str) -> str:
    """The chat template of a mod whose script does nothing but copy it to where the engine looks for it; ''."""
    lines = (line.strip() for line in files.get(SCRIPT, "").splitlines())
    acts = [line for line in lines if line and not _NO_ACT.match(line)]
    copy = _COPY.fullmatch(acts[0]) if len(acts) == 1 else None
    fits = copy is not None and copy["to"] == PurePosixPath(wanted).name and copy["file"] in files
    return copy["file"] if copy and fits else ""


def put_mods(draft: Draft, folder: Callable[[str], Mapping[str, str] | None]) -> None:
    """Fill in the files of each mod that the draft names; what is not found stays a name, and is noted."""
    found: dict[str, dict[str, object]] = {}
    for mod in draft.get("mods") or ():
        if mod.get("files"):
            found[mod["name"]] = mod
            continue
        origin = str(mod["origin"])
        bare = re.sub(r"^@[\w.-]+/", "", origin).removeprefix("mods/")
        files = folder(bare)
        if files and (template := _copied_template(files, str(draft.get("parsers.chat_template", "")))):
            found[mod["name"]] = {**mod, "script": "", "files": {template: files[template]}}
            draft.put("parsers.chat_template", f"{MODS_AT}/{mod['name']}/{template}")
            draft.note(
                f"mods.{mod['name']}: its {SCRIPT} only copies {template}; the file comes into the container without "
                "it, and parsers.chat_template names it there"
            )
        elif files and SCRIPT in files:
            found[mod["name"]] = {**mod, "files": dict(files)}
            draft.note(f"mods.{mod['name']}: taken over with {len(files)} files; {SCRIPT} runs in the container")
        else:
            found[mod["name"]] = mod
            draft.note(
                f"mods.{mod['name']}: only its name is taken over, its folder {bare} with {SCRIPT} is not next to the "
                "recipe; copy it there and import again, for `up` refuses to start without it"
            )
    if found:
        draft.put("mods", list(found.values()))
