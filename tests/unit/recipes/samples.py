"""A small good recipe to be broken in one place by each test."""

from collections.abc import Callable

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.recipes.cluster_file import load_cluster
from sparkwright.recipes.load import load_recipe

GOOD = """\
title: A test
model: {id: org/name}
engine:
  name: vllm
  version: 0.21.0
  runtime: process
"""


def errors(text: str, load: Callable[..., object] = load_recipe, source: str = "r.yaml") -> list[str]:
    """The lines of the RecipeError that loading must raise."""
    with pytest.raises(RecipeError) as caught:
        load(text, source)
    return caught.value.message.splitlines()


def recipe_errors(more: str, base: str = GOOD) -> list[str]:
    """Errors of the good recipe with `more` below it (it has 6 lines; `more` begins on line 7)."""
    return errors(base + more)


def cluster_errors(text: str) -> list[str]:
    return errors(text, load_cluster, "cluster.yaml")
