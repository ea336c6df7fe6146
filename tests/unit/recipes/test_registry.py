"""Registries of recipes: index files of ours and of sparkrun, names, and what a change is."""

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.recipes import registry
from sparkwright.recipes.registry import Around, Change, Entry, Index

SPARKRUN = """
registries:
  - name: official
    description: Recipes of ours
    recipes: official-recipes
    tuning: tuning
  - name: experimental
    recipes: experimental-recipes
    visible: false
"""


def test_an_index_of_ours_names_the_registry_and_its_folders() -> None:
    """`recipes` is the folder where nothing else is named; the index wins over sparkrun's."""
    texts = {registry.OURS: "registry: 1\nname: acme\ntitle: Ours\n", registry.SPARKRUN: SPARKRUN}
    assert registry.read_index(texts, ()) == Index("acme", "Ours", ("recipes",))
    texts = {registry.OURS: "registry: 1\nrecipes: [chat, code/big]\n"}
    assert registry.read_index(texts, ()).folders == ("chat", "code/big")


def test_an_index_of_sparkrun_is_read_as_it_is() -> None:
    """All folders with recipes, also those that it does not show by itself."""
    found = registry.read_index({registry.SPARKRUN: SPARKRUN}, ())
    assert found == Index("", "Recipes of ours", ("official-recipes", "experimental-recipes"))


def test_a_folder_called_recipes_is_index_enough() -> None:
    """Most people who publish recipes write no index."""
    assert registry.read_index({}, ("docs", "recipes")).folders == ("recipes",)


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ({}, "no index"),
        ({registry.OURS: "registry: 2\n"}, "sparkwright-registry.yaml:1: `registry`"),
        ({registry.OURS: "registry: 1\nfolders: [a]\n"}, "sparkwright-registry.yaml:2: unknown key `folders`"),
        ({registry.OURS: "registry: 1\nrecipes: [../up]\n"}, "sparkwright-registry.yaml:2"),
        ({registry.OURS: "registry: 1\nrecipes: []\n"}, "names no folder"),
        ({registry.OURS: "registry: [\n"}, "sparkwright-registry.yaml:2:1: this is no YAML"),
        ({registry.OURS: "- 1\n"}, "expected a mapping"),
        ({registry.SPARKRUN: "registries: 3\n"}, ".sparkrun/registry.yaml:1: expected `registries:`"),
        ({registry.SPARKRUN: "registries:\n  - recipes: ../../etc\n"}, "'../../etc' is not inside"),
        ({registry.SPARKRUN: "registries:\n  - name: x\n"}, "names no folder"),
        ({registry.SPARKRUN: "registries:\n  - recipes: -rf\n"}, "'-rf' is not inside"),
    ],
)
def test_an_index_that_cannot_be_used_is_refused_with_its_line(texts: dict[str, str], why: str) -> None:
    """Nothing outside of the registry is ever read."""
    with pytest.raises(RecipeError) as error:
        registry.read_index(texts, ())
    assert why in error.value.message


def test_recipes_are_called_by_their_file_and_by_their_folder_where_two_are_alike() -> None:
    """`SOURCE/qwen` is enough as long as there is one."""
    found = registry.names_of(("a/qwen.yaml", "b/glm.yml", "b/deep/gemma.yaml", "c/gemma.yaml"))
    assert found == {
        "b/deep/gemma": "b/deep/gemma.yaml",
        "c/gemma": "c/gemma.yaml",
        "glm": "b/glm.yml",
        "qwen": "a/qwen.yaml",
    }


def test_ten_thousand_files_are_too_many() -> None:
    """A registry that large is a mistake, or an attack."""
    with pytest.raises(RecipeError, match="10,000 recipe files; at most 2,000"):
        registry.recipe_paths(Index("", "", ("r",)), (f"r/{n}.yaml" for n in range(10_000)))


@pytest.mark.parametrize("path", ["r/a\nb.yaml", "r/../../x.yaml", "r/$(id).yaml", "r/ü.yaml", f"r/{'x' * 300}.yaml"])
def test_an_odd_file_name_is_refused(path: str) -> None:
    """It would end in messages, paths and commands."""
    with pytest.raises(RecipeError, match="is not taken"):
        registry.recipe_paths(Index("", "", ("r",)), [path])


def test_a_recipe_that_breaks_is_an_entry_with_its_reason() -> None:
    """One bad file must not hide the others."""
    found = registry.judged("x", "r/x.yaml", "model: [", lambda variants, path: ())
    assert (found.name, found.model) == ("x", "")
    assert "r/x.yaml:1" in found.errors[0]


def test_what_changed_is_said_setting_by_setting() -> None:
    """New, gone, changed and broken recipes, and settings that newly give power away."""
    old, new = "defaults:\n  port: 1\n  keep: 2\n", "defaults:\n  port: 3\n  keep: 2\n"
    before = {name: (Entry(name, name), old) for name in ("same", "other", "gone", "breaks")}
    after = {
        "same": (Entry("same", "same"), old),
        "other": (Entry("other", "other", powers=("flags.x runs code",)), new),
        "breaks": (Entry("breaks", "breaks", errors=("no",)), old),
        "new": (Entry("new", "new"), old),
    }
    assert registry.changes(before, after) == (
        Change("breaks", "broken", ("no",)),
        Change("gone", "gone"),
        Change("new", "new"),
        Change("other", "changed", ("defaults.port: 1 -> 3", "gives power: flags.x runs code")),
    )


def test_mods_are_found_where_the_index_says_and_by_the_nearest_folder() -> None:
    """Two mods of one name: each recipe gets the one of its own part of the registry; links and giants are left out."""
    rows = "registries:\n- {recipes: a/recipes, mods: a/mods}\n- {recipes: b/recipes, mods: b/mods}\n"
    index = registry.read_index({registry.SPARKRUN: rows}, ())
    sizes = {
        "a/mods/fix/run.sh": 9, "a/mods/fix/sub/x.py": 9, "b/mods/fix/run.sh": 9, "a/mods/link/run.sh": -1,
        "b/mods/giant/run.sh": 10**6, "a/mods/no-script/x.py": 9, "else/fix/run.sh": 9,
    }  # fmt: skip
    mods = registry.mods_of(index, sizes)
    assert mods == {
        "a/mods/fix": {"run.sh": "a/mods/fix/run.sh", "sub/x.py": "a/mods/fix/sub/x.py"},
        "b/mods/fix": {"run.sh": "b/mods/fix/run.sh"},
    }
    others = ["b/recipes/base.yaml", "b/recipes/one.yaml", "a/recipes/base.yaml"]
    found = registry.named_by("b/recipes/one.yaml", "include: base.yaml\nmods: [mods/fix]\n", others, mods)
    assert found == ({"base.yaml": "b/recipes/base.yaml"}, {"fix": "b/mods/fix"})


def test_a_changed_mod_is_a_changed_recipe() -> None:
    """The recipe's own text may stay the same: what would run in the container is shown before it takes effect."""
    text = 'recipe_version: "2"\nmodel: a/b\nruntime: vllm\ncontainer: vllm/vllm-openai:v0.26.0\nmods: [mods/fix]\n'
    old, new = (
        registry.judged("x", "x.yaml", text, lambda recipes, path: (), Around(mods={"fix": {"run.sh": script}}))
        for script in ("pip install one", "pip install two")
    )
    (change,) = registry.changes({"x": (old, text)}, {"x": (new, text)})
    assert change.kind == "changed" and "runs run.sh in the container: installs packages" in change.lines[0]
