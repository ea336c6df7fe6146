"""Any text gives a Recipe, a Cluster, or a RecipeError with file and line. Never anything else."""

import re
from copy import deepcopy

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.adapters.files import reference
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe
from sparkwright.recipes.cluster_file import ClusterPart, load_cluster
from sparkwright.recipes.load import load_recipe
from sparkwright.recipes.problems import valid_keys
from sparkwright.recipes.schema import RecipeFile

WORDS = sorted({part for m in (RecipeFile, ClusterPart) for key in valid_keys(m) for part in key.split(".")})
ODD = [
    "x-y",
    "<<",
    "",
    "HF_TOKEN",
    "max-model-len",
    "vllm",
    "twin",
    "local",
    "auto",
    "64g",
    "1m",
    "\n",
    "*a",
    "é",
    "a/b",
    "\u2028",
]
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(ODD + WORDS), st.text(max_size=8)
)
keys = st.one_of(st.sampled_from(WORDS), st.sampled_from(ODD), st.integers(0, 3))
trees = st.recursive(
    scalars, lambda t: st.one_of(st.lists(t, max_size=3), st.dictionaries(keys, t, max_size=6)), max_leaves=25
)
pieces = st.sampled_from(
    [f"{w}: " for w in WORDS]
    + [
        "\n",
        "  ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "&a ",
        "*a",
        "<<: ",
        "!!x ",
        "|\n",
        ": ",
        "? ",
        "\t",
        "'",
        '"',
        "#",
        "---\n",
        "1",
        "x",
    ]
)
LINE = re.compile(r"^some/file\.yaml:\d+:")


LOADS = {"recipe": (load_recipe, Recipe), "cluster": (load_cluster, Cluster)}
REFERENCES = {which: yaml.safe_load(reference(which)) for which in LOADS}


def dumped(tree):
    """Dumps with libyaml if PyYAML has it: writing the text is not tested here."""
    return yaml.dump(tree, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))


def check(text, which=tuple(LOADS)):
    for load, kind in map(LOADS.get, which):
        try:
            assert isinstance(load(text, "some/file.yaml"), kind)
        except RecipeError as error:
            assert all(LINE.match(line) for line in error.message.split("\n")), error.message


@given(st.text())
@settings(deadline=None, max_examples=40)
def test_any_text(text):
    """Noise."""
    check(text)


@given(st.lists(pieces, max_size=30).map("".join))
@settings(deadline=None, max_examples=40)
def test_text_that_is_nearly_yaml(text):
    """Our keys and YAML's punctuation in any order."""
    check(text)


@given(trees)
@settings(deadline=None, max_examples=40)
def test_any_tree(tree):
    """Good YAML of any shape under our keys."""
    check(dumped(tree))


@given(st.data())
@settings(deadline=None, max_examples=25)
def test_reference_with_one_thing_changed(data):
    """A good file in which one value was replaced."""
    which = data.draw(st.sampled_from(sorted(LOADS)))
    tree = deepcopy(REFERENCES[which])
    place, key = tree, data.draw(st.sampled_from(sorted(tree)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place))) if isinstance(place, dict) else 0
    place[key] = data.draw(trees)
    check(dumped(tree), (which,))
