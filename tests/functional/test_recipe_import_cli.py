"""`sparkwright recipes import` as a user meets it: file or pipe in, a recipe out, everything left out on stderr."""

import json

import pytest
from click.testing import CliRunner

from sparkwright.cli.main import main
from sparkwright.cli.recipes import recipes
from sparkwright.domain.errors import UsageError
from unit.recipes import import_samples as samples


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Runs `recipes ...` in a folder with theirs.yaml, under an empty home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "theirs.yaml").write_text(samples.SPARKRUN_V2)
    # As under `sparkwright`: a command keeps the help option of its first call in a process, and docs are made of it.
    return lambda *words, **more: CliRunner().invoke(recipes, words, **main.context_settings, **more)


def test_a_file_becomes_a_recipe_that_validates(call, tmp_path):
    """Import, then validate, as the message states; the file is not overwritten by a second import."""
    result = call("import", "theirs.yaml", "--out", "mine.yaml", "--name", "mine")
    assert result.exit_code == 0 and result.stdout == ""
    assert "note: mods" in result.stderr and "mine.yaml: valid" in result.stderr
    assert call("validate", "./mine.yaml").exit_code == 0
    assert isinstance(call("import", "theirs.yaml", "--out", "mine.yaml").exception, UsageError)
    assert "name: mine\n" in (tmp_path / "mine.yaml").read_text()


def test_a_pipe_works_and_strict_counts_what_was_left_out(call):
    """stdout is the recipe alone; --strict is exit 1 with notes and 0 without."""
    result = call("import", "-", "--strict", input=samples.SPARKRUN_V1)
    assert result.exit_code == 1 and result.stdout.startswith("# Imported from stdin")
    assert call("import", "-", "--strict", input=samples.SPARKRUN_SGLANG).exit_code == 0


def test_the_engine_is_asked_at_once(call, tmp_path):
    """`good` here and an error in `validate` a moment later would be a lie; the text is there to be edited."""
    text = samples.SPARKRUN_V2.replace("vllm serve", "vllm serve --mxfp5-backend X")
    (tmp_path / "theirs.yaml").write_text(text.replace("example/dgx-vllm:0.24.0", "vllm/vllm-openai:v0.21.0"))
    result = call("import", "theirs.yaml", "--out", "mine.yaml")
    assert result.exit_code == 2 and "ENG001 vllm 0.21.0 has no option --mxfp5-backend" in result.stderr
    assert "mine.yaml: 1 error(s); edit the file" in result.stderr and (tmp_path / "mine.yaml").exists()


def test_the_same_for_machines(call):
    """--json: the text, what was left out, and what is wrong."""
    data = json.loads(call("import", "theirs.yaml", "--json").stdout)
    assert data["text"].startswith("# Imported from theirs.yaml") and data["errors"] == []
    assert any(note.startswith("mods") for note in data["left_out"])


def test_what_does_not_load_is_written_and_explained(call, tmp_path):
    """Exit 2 as `validate` gives it, with the file, the line and the key; the text is there to be edited."""
    (tmp_path / "theirs.yaml").write_text(samples.SPARKRUN_V2.replace("0.8\n", "0.97\n"))
    result = call("import", "theirs.yaml", "--out", "mine.yaml")
    assert result.exit_code == 2 and "serving.memory_fraction" in result.stderr
    assert (tmp_path / "mine.yaml").exists()
