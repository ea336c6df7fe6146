"""The workloads that ship, as YAML text (recipes/workload_file.py reads it)."""

from importlib.resources import files

_FOLDER = files("sparkwright.loadgen") / "profiles"


def profile_names() -> tuple[str, ...]:
    """The names of the profiles that ship."""
    found = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


def profile_text(name: str) -> str:
    """A shipped profile's YAML. Raises KeyError."""
    if name not in profile_names():
        raise KeyError(name)
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def shipped_file(path: str) -> str | None:
    """The text of a file that a profile names as `shipped:NAME`; None for a path of the user's."""
    name = path.removeprefix("shipped:")
    return None if name == path else (_FOLDER / name).read_text(encoding="utf-8")
