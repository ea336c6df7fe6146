"""What a command loads before it asks the nodes: by structure, for time depends on the machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from sparkwright.adapters.files import Places, open_cluster, open_recipe

_LOADED = "import sys; import sparkwright.cli.main, sparkwright.cli.{verb}; print('\\n'.join(sys.modules))"
# A few hundred milliseconds each.
_HEAVY = ("pydantic", "yaml", "httpcore", "numpy", "sqlite3", "sparkwright.causes", "sparkwright.checks.catalog")
_ENGINES = ("sparkwright.engines.catalog", "sparkwright.planner", "sparkwright.recipes.schema", "importlib.metadata")


def loaded(verb: str) -> list[str]:
    words = [sys.executable, "-c", _LOADED.format(verb=verb)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize(
    ("verb", "without"),
    [
        ("status", (*_HEAVY, *_ENGINES, "sparkwright.facts.gpu")),
        ("check", (*_HEAVY, *_ENGINES)),
        ("plan", ("pydantic", "httpcore", "numpy", "sparkwright.causes", "sparkwright.checks.catalog")),
        ("up", ("pydantic", "httpcore", "numpy", "sparkwright.causes", "sparkwright.checks.catalog")),
    ],
)
def test_a_command_loads_nothing_heavy_that_it_does_not_use(verb: str, without: tuple[str, ...]) -> None:
    """Half of what `status` loaded was never used: the schema of recipes, all rules, an HTTP client."""
    names = loaded(verb)
    assert [name for name in names if any(name == one or name.startswith(f"{one}.") for one in without)] == []


def test_a_cluster_file_that_was_read_before_needs_no_schema(tmp_path: Path) -> None:
    """The second `status` loads neither pydantic nor a YAML parser."""
    (tmp_path / "cluster.yaml").write_text("nodes: [spark-1, spark-2]\n")
    read = (
        "from pathlib import Path; from sparkwright.adapters.files import Places, open_cluster\n"
        f"at = Path({str(tmp_path)!r}); open_cluster('', '', Places(at, at))\n"
        "import sys; print(*sorted({'pydantic', 'yaml'} & set(sys.modules)))"
    )
    said = [
        subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said == ["pydantic yaml\n", "\n"]


def test_what_is_kept_of_a_file_is_never_older_than_the_file(tmp_path: Path) -> None:
    """An edit counts at once, and what is damaged or no longer ours is read again."""
    places, file = Places(tmp_path, tmp_path), tmp_path / "cluster.yaml"
    file.write_text("nodes: [spark-1]\n")
    assert open_cluster("", "", places).names == open_cluster("", "", places).names == ("spark-1",)
    file.write_text("nodes: [spark-9]\n")
    assert open_cluster("", "", places).names == ("spark-9",)
    for content in (b"", b"\xff", b"{}", b"x\n" * 9):
        for kept in (tmp_path / ".cache/sparkwright/parsed").iterdir():
            head = kept.read_bytes().partition(b"\n")[0]
            kept.write_bytes(head + b"\n" + content)
        assert open_cluster("", "", places).names == ("spark-9",)


def test_a_recipe_comes_back_as_it_was_checked(tmp_path: Path) -> None:
    """Each profile is kept apart, and nothing of a recipe is lost on the way."""
    places = Places(tmp_path, tmp_path)
    fresh = {name: open_recipe(name, places) for name in ("deepseek-v4-flash@1m", "deepseek-v4-flash@256k", "twin")}
    assert {name: open_recipe(name, places) for name in fresh} == fresh
    assert len({one.hash for one in fresh.values()}) == len(fresh)
    kept = list((tmp_path / ".cache/sparkwright/parsed").iterdir())
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
