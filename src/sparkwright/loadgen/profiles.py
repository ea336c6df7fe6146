"""The workloads that ship, as YAML text (recipes/workload_file.py reads it), and what a level asks of a context."""

from importlib.resources import files

from sparkwright.domain.workload import Agent, LevelPlan, Single
from sparkwright.loadgen.agentic import planned

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


def largest(level: LevelPlan) -> int:
    """Tokens of its longest request, answer included; 0 where only the file of a replay knows."""
    shape = level.shape
    if isinstance(shape, Single):
        return shape.depth + shape.prompt.high + shape.output.high
    return planned(shape)[-1].prompt + shape.output if isinstance(shape, Agent) else 0


def fits_context(level: LevelPlan, max_context: int) -> bool:
    """True if the server's context (0: unknown) holds the level's longest request."""
    return not max_context or largest(level) <= max_context
