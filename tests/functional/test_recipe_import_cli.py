"""`sparkwright recipes import` as a user meets it: file or pipe in, a recipe out, everything left out on stderr."""

import json

import pytest
from click.testing import CliRunner

from sparkwright.cli.main import main
from sparkwright.cli.recipes import recipes
from sparkwright.domain.errors import RecipeError, UsageError
from unit.recipes import import_samples as samples


@pytest.fixture
def call_recipes(tmp_path, monkeypatch):
    """Runs `recipes ...` in a folder with theirs.yaml, under an empty home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "theirs.yaml").write_text(samples.SPARKRUN_V2)
    # As under `sparkwright`: a command keeps the help option of its first call in a process, and docs are made of it.
    return lambda *words, **more: CliRunner().invoke(recipes, words, **main.context_settings, **more)


def test_a_file_becomes_a_recipe_that_validates(call_recipes, tmp_path):
    """Import, then validate, as the message states; the file is not overwritten by a second import."""
    result = call_recipes("import", "theirs.yaml", "--out", "mine.yaml", "--name", "mine")
    assert result.exit_code == 0 and result.stdout == ""
    assert "note: mods" in result.stderr and "mine.yaml: valid" in result.stderr
    assert call_recipes("validate", "./mine.yaml").exit_code == 0
    assert isinstance(call_recipes("import", "theirs.yaml", "--out", "mine.yaml").exception, UsageError)
    assert "name: mine\n" in (tmp_path / "mine.yaml").read_text()


def test_a_pipe_works_and_strict_counts_what_was_left_out(call_recipes):
    """stdout is the recipe alone; --strict is exit 1 with notes and 0 without."""
    result = call_recipes("import", "-", "--strict", input=samples.SPARKRUN_V1)
    assert result.exit_code == 1 and result.stdout.startswith("# Imported from stdin")
    assert call_recipes("import", "-", "--strict", input=samples.SPARKRUN_SGLANG).exit_code == 0


def test_the_engine_is_asked_at_once(call_recipes, tmp_path):
    """`good` here and an error in `validate` a moment later would be a lie; the text is there to be edited."""
    text = samples.SPARKRUN_V2.replace("vllm serve", "vllm serve --mxfp5-backend X")
    (tmp_path / "theirs.yaml").write_text(text.replace("example/dgx-vllm:0.24.0", "vllm/vllm-openai:v0.21.0"))
    result = call_recipes("import", "theirs.yaml", "--out", "mine.yaml")
    assert result.exit_code == 2 and "ENG001 vllm 0.21.0 has no option --mxfp5-backend" in result.stderr
    assert "mine.yaml: 1 error(s); edit the file" in result.stderr and (tmp_path / "mine.yaml").exists()


def test_the_same_for_machines(call_recipes):
    """--json: the text, what was left out, and what is wrong."""
    data = json.loads(call_recipes("import", "theirs.yaml", "--json").stdout)
    assert data["text"].startswith("# Imported from theirs.yaml") and data["errors"] == []
    assert any(note.startswith("mods") for note in data["left_out"])


def test_what_does_not_load_is_written_and_explained(call_recipes, tmp_path):
    """Exit 2 as `validate` gives it, with the file, the line and the key; the text is there to be edited."""
    (tmp_path / "theirs.yaml").write_text(samples.SPARKRUN_V2.replace("0.8\n", "0.97\n"))
    result = call_recipes("import", "theirs.yaml", "--out", "mine.yaml")
    assert result.exit_code == 2 and "serving.memory_fraction" in result.stderr
    assert (tmp_path / "mine.yaml").exists()


def test_bad_input_leaves_no_file(call_recipes, tmp_path):
    """A pipe, six services and half a YAML: one message with the place, exit 2, and nothing is written."""
    services = "".join(f"  s{n}: {{image: a/b}}\n" for n in range(6))
    for name, text in (
        ("x.sh", "vllm serve a/b | tee log\n"),
        ("c.yaml", f"services:\n{services}"),
        ("h.yaml", "a: [\n"),
    ):
        (tmp_path / name).write_text(text)
        result = call_recipes("import", name, "--out", "out.yaml")
        assert isinstance(result.exception, RecipeError) and name in result.exception.message
        assert not (tmp_path / "out.yaml").exists()


def test_what_lies_beside_the_file_is_read_and_no_link_out_of_the_folder(call_recipes, tmp_path):
    """`.env` belongs to a Compose file; one that is a link to somewhere else is refused."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/compose.yaml").write_text(
        "services: {a: {image: 'vllm/vllm-openai:v0.30.0', command: --model $M}}\n"
    )
    (tmp_path / "in/.env").write_text("M=org/name\n")
    assert "id: org/name" in call_recipes("import", "in/compose.yaml").stdout
    (tmp_path / "in/.env").unlink()
    (tmp_path / "secret").write_text("M=x\n")
    (tmp_path / "in/.env").symlink_to(tmp_path / "secret")
    assert "a link out of it" in call_recipes("import", "in/compose.yaml").exception.message


def test_a_file_or_a_container(call_recipes):
    """Neither and both are usage errors."""
    for words in ((), ("theirs.yaml", "--from-container", "vllm")):
        assert isinstance(call_recipes("import", *words).exception, UsageError)
