"""The modules that a command loads before it asks the nodes: by structure, for time depends on the machine."""

import subprocess
import sys
from pathlib import Path

import pytest

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
