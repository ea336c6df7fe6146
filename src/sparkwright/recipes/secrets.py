"""Keys must not be in files: where one is, it is reported without being shown."""

from collections.abc import Iterator, Mapping

from sparkwright.recipes.problems import Complaint
from sparkwright.recipes.values import is_secret_name, looks_secret
from sparkwright.recipes.yaml_lines import Path, dotted


def env_complaints(env: Mapping[str, str], path: Path) -> Iterator[Complaint]:
    """Names that are none, and literal keys, in an `env` mapping at `path`."""
    for name, value in env.items():
        place = (*path, name)
        if not (name.replace("_", "a").isalnum() and name.isascii() and not name[0].isdigit()):
            yield (
                place,
                f"`{dotted(place)}` is no name of an environment variable: letters, digits and `_`, no digit first",
            )
        elif (is_secret_name(name) and value) or looks_secret(value):
            yield place, f"`{dotted(place)}`: a key must not be in a file (its value is not shown); {_hint(name)}"


def _hint(name: str) -> str:
    if name.upper() in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        return "take it out; run `hf auth login` on the node that downloads, or export it where you call sparkwright"
    return "take it out, export it where you call sparkwright, and name the variable in `serving.api_key_env`"
