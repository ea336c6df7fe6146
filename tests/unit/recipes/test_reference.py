"""reference.yaml is schema, manual and test: it names every key, its comments are true, and it loads."""

import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from pydantic_core import PydanticUndefined

from sparkwright.adapters.files import reference
from sparkwright.cli.main import main
from sparkwright.domain.deployment import Phase
from sparkwright.recipes.cluster_file import ClusterPart, load_cluster
from sparkwright.recipes.load import load_recipe
from sparkwright.recipes.problems import _models, valid_keys
from sparkwright.recipes.schema import PhasesPart, RecipeFile
from sparkwright.recipes.values import Within
from sparkwright.recipes.yaml_lines import read_yaml

FREE = ("env", "mods.files", "flags", "profiles", "speculation.options", "nodes.env", "build.env")
WHICH = [("recipe", RecipeFile), ("cluster", ClusterPart)]
PHASE_KEYS = {f"phases.{p.value}.{k}" for p in Phase for k in ("usual", "stuck_after")}


@cache
def written(which):
    """Key paths of the reference without list numbers, with their lines; what is in free mappings is left out."""
    lines = read_yaml(reference(which), "reference").lines
    found = {}
    for path, line in lines.items():
        name = ".".join(p for p in path if isinstance(p, str))
        inside_free = any(name.startswith(f"{free}.") for free in FREE)
        if isinstance(path[-1], str) and not inside_free and not name.startswith("x-"):
            found.setdefault(name, line)
    return found


@cache
def documented(which):
    """Key path -> (unit, allowed, default) of the comment's last line above it."""
    text = reference(which).splitlines()
    found = {}
    for name, line in written(which).items():
        match = re.match(r"\s*# unit: (.*) \| allowed: (.*) \| default: (.*)$", text[line - 2])
        if match and text[line - 1].strip(" -").startswith(f"{name.rpartition('.')[2]}:"):
            found[name] = match.groups()
    return found


def fields(model, prefix=""):
    """Key path -> pydantic field."""
    for name, info in model.model_fields.items():
        yield f"{prefix}{name}", info
        for inner in _models(info.annotation):
            yield from fields(inner, f"{prefix}{name}.")


@pytest.mark.parametrize(("which", "model"), WHICH)
def test_every_key_and_nothing_else(which, model):
    """A key without a line in the manual, or a line without a key, is a lie."""
    assert set(written(which)) == set(valid_keys(model))


@pytest.mark.parametrize(("which", "model"), WHICH)
def test_every_key_is_explained(which, model):
    """Each key has unit, allowed values and default above it (phases: once for all of them)."""
    alike = PHASE_KEYS - {"phases.start.usual", "phases.start.stuck_after"}
    assert set(valid_keys(model)) - set(documented(which)) == (alike if which == "recipe" else set())


@pytest.mark.parametrize(("which", "model"), WHICH)
def test_defaults_in_comments_are_the_schemas(which, model):
    """The manual's default is what happens."""
    said = documented(which)
    own = {
        "name": "",
        "model.served_name": "",
        "engine.image": "",
        "engine.entrypoint": None,
        "head": "",
        "nodes.ssh": "",
    }
    for name, info in fields(model):
        if name not in said:
            continue
        text = re.sub(r" \(.*\)$", "", said[name][2])
        if info.is_required():
            assert text == "required", name
        elif name in own:
            assert info.get_default() == own[name], name
        else:
            assert _plain(info) == yaml.safe_load(text), name


def _plain(info):
    value = info.get_default(call_default_factory=True)
    assert value is not PydanticUndefined
    return {} if hasattr(value, "model_dump") else value


@pytest.mark.parametrize(("which", "model"), WHICH)
def test_ranges_in_comments_are_the_schemas(which, model):
    """The manual's range is the one that is checked."""
    said = documented(which)
    for name, info in fields(model):
        for rule in info.metadata:
            if isinstance(rule, Within):
                assert said[name][1].startswith(str(rule)), name


def test_the_references_load():
    """The manual's examples are right."""
    for profile in ("", "process", "1m"):
        assert load_recipe(reference(), "reference.yaml", profile).title
    assert load_cluster(reference("cluster"), "cluster-reference.yaml").names == ("spark-1", "spark-2")


def test_the_short_example_at_the_top_is_complete(monkeypatch, tmp_path):
    """The example at the head of the reference passes `recipes validate` without an error or a warning."""
    lines = [line for line in reference().splitlines() if line.startswith("#     ")]
    assert len(lines) == 15 and reference().index(lines[0]) < reference().index("\nname:")
    text = "".join(f"{line.removeprefix('#     ')}\n" for line in lines)
    assert f"```yaml\n{text}```" in (Path(__file__).parents[3] / "docs/guides/first-recipe.md").read_text()
    (tmp_path / "my-model.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["recipes", "validate", "./my-model.yaml"])
    assert (done.exit_code, done.stderr) == (0, ""), done.output


def test_phases_are_the_domains():
    """A phase that engines know and recipes do not could not be given a time."""
    assert list(PhasesPart.model_fields) == [p.value for p in Phase]
