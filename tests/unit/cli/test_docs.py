"""The reference pages are what the program says."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ("cli.md", "recipe-reference.md", "cluster-reference.md", "recipes.md", "engines.md")


@cache
def pages() -> dict[str, str]:
    return dict(script().own_pages())


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_script", ROOT / "scripts" / "docs.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_fresh(name: str) -> None:
    """Help or reference changed: `make docs` brings the page along."""
    assert tuple(pages()) == PAGES
    assert pages()[name] == (ROOT / "docs" / name).read_text(), "make docs"


def test_every_verb_stands_in_the_page() -> None:
    """Also the verbs of a group, each with its options."""
    page = (ROOT / "docs" / "cli.md").read_text()
    for verb in ("up", "down", "logs", "recipes", "recipes validate", "demo"):
        assert f"\n## sparkwright {verb}\n" in page
    assert page.count("--help") > 10
    assert str(Path.home()) not in page
