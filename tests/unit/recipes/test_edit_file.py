"""A profile that is added to a user's recipe file."""

from pathlib import Path

import pytest
import yaml

import sparkwright.recipes
from sparkwright.recipes.edit_file import add_profile, indents
from sparkwright.recipes.load import load_recipe

SHIPPED = sorted((Path(sparkwright.recipes.__file__).parent / "shipped").glob("*.yaml"))
FILE = """\
# Owner: me
name: mine  # do not rename

model:
  id: 'openai/gpt-oss-20b'   # quoted
engine: {name: vllm, version: 0.20}
serving: &serving
  context: 32768
  # The port of the old service.
  port: 8000
env:
    - A
profiles:
  # For nights.
  night:
    serving: {<<: *serving, context: 65536, port: 8001}  # more
"""


def test_all_that_the_user_wrote_stays() -> None:
    """Comments, quotes, anchors, blank lines and `0.20`: the profile is all that is new."""
    made = add_profile(FILE, "tuned", "", {"serving": {"context": 8192}})
    assert made == FILE + "  tuned:\n    serving:\n      context: 8192\n"


def test_it_stands_on_top_of_another_profile() -> None:
    """The other one is not changed, and its comments are not copied."""
    made = add_profile(FILE, "tuned", "night", {"serving": {"context": 8192}})
    assert made.startswith(FILE)
    assert yaml.safe_load(made)["profiles"]["tuned"] == {"serving": {"context": 8192, "port": 8001}}
    assert made.count("more") == 1


@pytest.mark.parametrize("profiles", ["", "profiles:\n", "profiles: {}\n"])
def test_a_file_without_profiles_gets_its_first(profiles: str) -> None:
    """The key may be there and hold nothing."""
    made = add_profile(f"name: mine  # mine\n{profiles}", "tuned", "", {"serving": {"port": 1}})
    assert made == "name: mine  # mine\nprofiles:\n  tuned:\n    serving:\n      port: 1\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a:\n  - 1\n", (2, 2)),
        ("a:\n- 1\n", (2, 0)),
        ("a: 1\n", (2, 2)),
        ("a:\n    b:\n\n        # why\n        c: 1\n    d:\n    - 1\n", (4, 0)),
        ("a:  # why\n   b:\n       - c: 1\n         d: 2\n", (3, 4)),
    ],
)
def test_keys_and_lists_stand_where_they_stood(text: str, found: tuple[int, int]) -> None:
    """ruamel.yaml has one width for all of a file; the first one counts."""
    assert indents(text) == found
    assert add_profile(text, "tuned", "", {}).startswith(text)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_recipes_keep_their_values_and_comments(path: Path) -> None:
    """Long values may come on one line; a new profile loads."""
    text = path.read_text(encoding="utf-8")
    made = add_profile(text, "tuned", "", {"serving": {"port": 8123}})
    assert load_recipe(made, path.name, "tuned").serving.port == 8123
    before, after = yaml.safe_load(text), yaml.safe_load(made)
    assert after.pop("profiles")["tuned"] == {"serving": {"port": 8123}}
    assert after == {key: value for key, value in before.items() if key != "profiles"}
    comments = [line.strip() for line in text.splitlines() if line.strip().startswith("#")]
    assert comments == [line.strip() for line in made.splitlines() if line.strip().startswith("#")]
