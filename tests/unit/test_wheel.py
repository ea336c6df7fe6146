"""Links of a wheel: those of the repository that its checkout was cloned from, without the user in the address."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from unit.for_each import for_each

ROOT = Path(__file__).parents[2]


@pytest.fixture
def build_hooks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The build hooks; their base classes are of a package that only a build has."""
    for module, name in (("builders.hooks", "BuildHookInterface"), ("metadata", "MetadataHookInterface")):
        interface = ModuleType(name)
        setattr(interface, name, type(name, (), {"__class_getitem__": classmethod(lambda cls, _: cls)}))
        monkeypatch.setitem(sys.modules, f"hatchling.{module}.plugin.interface", interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@for_each(
    "remote",
    [
        "https://github.com/ann/sparkwright.git",
        "https://github.com/ann/sparkwright",
        "https://x-access-token:ghp_secret@github.com/ann/sparkwright/",
        "git@github.com:ann/sparkwright.git",
        "ssh://git@github.com/ann/sparkwright",
    ],
)
def test_links_of_a_published_repository(build_hooks: Any, remote: str) -> None:
    """Guards a token in the metadata of a wheel."""
    links = build_hooks.repository_links(remote)
    assert links["Repository"] == "https://github.com/ann/sparkwright"
    assert links["Issues"] == "https://github.com/ann/sparkwright/issues"


@for_each("remote", ["", "/work/sparkwright", "../sparkwright", "file:///srv/x/y", "http://a/b/c", "https://host/only"])
def test_a_folder_has_no_links(build_hooks: Any, remote: str) -> None:
    """Guards links that lead nowhere."""
    assert build_hooks.repository_links(remote) == {}


def test_a_release_has_the_version_of_its_section() -> None:
    """Guards a tag without notes: package, project file and changelog name one version, so a maintainer can tag it."""
    from sparkwright import __version__

    assert f'\nversion = "{__version__}"\n' in (ROOT / "pyproject.toml").read_text()
    first = next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    assert first.startswith(f"## [{__version__}] - ")
