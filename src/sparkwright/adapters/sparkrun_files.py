"""Files that sparkrun has stored on this machine: its clusters."""

from pathlib import Path

from sparkwright.domain.errors import RecipeError
from sparkwright.recipes.importers.sparkrun_cluster import SparkrunCluster, chosen, read_sparkrun_cluster

_MAX_BYTES = 100_000
_MOST = 200


def sparkrun_cluster(home: Path, wanted: str) -> SparkrunCluster:
    """The cluster of that name, else sparkrun's default, else the only one. Raises RecipeError."""
    folder = home / ".config/sparkrun/clusters"
    # sparkrun keeps lists of its own changes next to them.
    found = sorted(path for path in folder.glob("*.yaml") if not path.name.endswith(".manifest.yaml"))[:_MOST]
    default = _text(folder / ".default").strip() if (folder / ".default").is_file() else ""
    name = chosen({path.stem: str(path) for path in found}, default, wanted)
    return read_sparkrun_cluster(_text(folder / f"{name}.yaml"), f"~/.config/sparkrun/clusters/{name}.yaml")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise RecipeError(
                f"{path}: larger than {_MAX_BYTES // 1000} kB; sparkrun's cluster files have a few hundred bytes"
            )
        return content.decode("utf-8-sig")
    except OSError as error:
        raise RecipeError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise RecipeError(f"{path}: is not UTF-8 text") from None
