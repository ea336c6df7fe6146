"""Mods of a sparkrun recipe: the folder that it names, with its files, so that the recipe stands alone."""

import re
from collections.abc import Callable, Mapping

from sparkwright.recipes.importers.draft import Draft

_SCRIPT = "run.sh"


def mod_name(reference: str) -> str:
    """`fix-x` of `mods/fix-x`, `@registry/mods/fix-x` and `owner/fix-x`."""
    return re.sub(r"[^\w.+-]", "-", reference.rstrip("/").rpartition("/")[2])[:80] or "mod"


def put_mods(draft: Draft, folder: Callable[[str], Mapping[str, str] | None]) -> None:
    """Fill in the files of each mod that the draft names; what is not found stays a name, and is noted."""
    found: dict[str, dict[str, object]] = {}
    for mod in draft.get("mods") or ():
        origin = str(mod["origin"])
        bare = re.sub(r"^@[\w.-]+/", "", origin).removeprefix("mods/")
        files = folder(bare)
        if files and _SCRIPT in files:
            found[mod["name"]] = {**mod, "files": dict(files)}
            draft.note(f"mods.{mod['name']}: taken over with {len(files)} files; {_SCRIPT} runs in the container")
        else:
            found[mod["name"]] = mod
            draft.note(
                f"mods.{mod['name']}: only its name is taken over, its folder {bare} with {_SCRIPT} is not next to the "
                "recipe; copy it there and import again, for `up` refuses to start without it"
            )
    if found:
        draft.put("mods", list(found.values()))
