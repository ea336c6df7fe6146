"""A recipe's mods: imported with their files, applied by bash before the program, refused until they are approved."""

import subprocess

import pytest

from sparkwright.cli.recipe_validate import mods_of
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Mod
from sparkwright.engines.catalog import imagined_ranks
from sparkwright.engines.mods import shell_text, with_mods
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import import_recipe, nothing_beside
from sparkwright.recipes.load import load_recipe

THEIRS = "model: org/name\nruntime: vllm\ncontainer: a/fork:x\nmods: [mods/fix-it, '@eugr/mods/elsewhere']\n"


def applied(folder, mods, *program):
    """Runs the script in a folder of its own, as the container's first process would."""
    script = folder / "mods.sh"
    script.write_text(shell_text(mods, str(folder / "mods")))
    (folder / "work").mkdir(exist_ok=True)
    call = ["bash", str(script), *program]
    return subprocess.run(call, cwd=folder / "work", capture_output=True, text=True, timeout=60, check=False)


def test_the_script_writes_the_files_runs_them_and_becomes_the_program(tmp_path):
    """Text, quotes and bytes arrive as they are; the program starts in its own folder, with its own words."""
    files = {
        "run.sh": 'cp sub/a.txt "$WORKSPACE_DIR/here.txt"\n',
        "sub/a.txt": 'it\'s "$HOME" `x`\nEND\n',
        "b.bin": "base64:AAECAw==",
    }
    done = applied(tmp_path, [Mod("one", files)], "sh", "-c", 'cat here.txt; echo "$1"', "x", "a b")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f'sparkwright: mod one ({Mod("one", files).digest})\nit\'s "$HOME" `x`\nEND\na b\n'
    assert (tmp_path / "mods/one/b.bin").read_bytes() == bytes(range(4))


def test_a_mod_that_fails_ends_the_start_and_is_named(tmp_path):
    """The engine never starts without a patch that its author found necessary."""
    done = applied(tmp_path, [Mod("bad", {"run.sh": "exit 3\n"}), Mod("two", {"run.sh": "true\n"})], "echo", "started")
    assert done.returncode == 1 and "started" not in done.stdout and "mod bad failed" in done.stderr


def test_an_import_takes_the_files_along(tmp_path):
    """The files come from the folder next to the recipe; a missing one stays a name. The ranks run them first."""
    (tmp_path / "mods/fix-it").mkdir(parents=True)
    (tmp_path / "mods/fix-it/run.sh").write_text("pip install x\npatch -p1 -d /usr/local/lib <one.diff\n")
    (tmp_path / "mods/fix-it/one.diff").write_bytes(b"a\r\nb\x00")
    folder = mods_of(tmp_path / "theirs.yaml")
    made = import_recipe(THEIRS, "theirs.yaml", ImportOptions(), nothing_beside, folder)
    assert made.errors == (), made.text
    recipe = load_recipe(made.text, "theirs.yaml")
    first, second = recipe.mods
    assert first.files["one.diff"].startswith("base64:") and "pip install" in first.files["run.sh"]
    assert (second.name, second.origin, second.files) == ("elsewhere", "@eugr/mods/elsewhere", {})
    assert any(note.startswith("mods.elsewhere: only its name") for note in made.notes)
    plain = imagined_ranks(recipe)
    (rank,) = with_mods(recipe, plain)
    assert rank.entrypoint == ("bash", "/run/sparkwright/files/mods.sh", *(plain[0].entrypoint or ()))
    assert rank.argv == plain[0].argv and rank.engine_words == plain[0].engine_words
    assert "mod fix-it" in rank.files[-1].text
    other = load_recipe(made.text.replace("pip install x", "pip install y"), "theirs.yaml")
    assert other.hash != recipe.hash


def test_a_link_out_of_a_mod_is_refused(tmp_path):
    """A registry may ship one that points at a key."""
    (tmp_path / "secret").write_text("x")
    (tmp_path / "mods/evil").mkdir(parents=True)
    (tmp_path / "mods/evil/run.sh").write_text("true\n")
    (tmp_path / "mods/evil/key").symlink_to(tmp_path / "secret")
    read = mods_of(tmp_path / "theirs.yaml")
    with pytest.raises(RecipeError, match="link out of its mod"):
        read("evil")
    assert read("../secret") is None and read("a/../../b") is None
