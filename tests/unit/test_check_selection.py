"""The unit tests that `make check` runs for a change, and what it need not read again."""

from pathlib import Path

import check
from file_memory import FileMemory


def test_a_leaf_runs_all_that_uses_it() -> None:
    """Guards the usual change: everything that imports the module is run, and nothing is left out."""
    changed = ["src/sparkwright/console/feed.py"]
    selected = check.selected_tests(changed)
    assert {check.HOUSE, "tests/unit/console/test_board.py"} <= set(selected)
    assert check.affordable_tests(selected, changed, dict.fromkeys(selected, 0.1)) == selected


def test_what_everything_imports_runs_its_own_tests_and_the_short_ones() -> None:
    """Guards the ten seconds, and that the tests named after a module are run however long they take."""
    changed, seconds = ["src/sparkwright/domain/units.py"], {"a/test_units.py": 60.0, "a/test_long.py": 5.0}
    selected = ["a/test_long.py", "a/test_other.py", "a/test_units.py", check.HOUSE]
    chosen = check.affordable_tests(selected, changed, seconds, 1.0)
    assert chosen == ["a/test_other.py", "a/test_units.py", check.HOUSE]
    assert len(check.selected_tests(["src/sparkwright/domain/errors.py"])) > 50


def test_a_changed_test_and_a_data_file_are_run() -> None:
    """Guards changes that no module imports: the test itself, and the folder that reads the data."""
    own = "tests/unit/domain/test_codec.py"
    assert check.affordable_tests(check.selected_tests([own]), [own], {own: 99.0}) == [own, check.HOUSE]
    assert "tests/unit/causes/test_diagnose.py" in check.selected_tests(["src/sparkwright/causes/cuda.toml"])


def test_findings_are_remembered_until_the_file_or_the_program_changes(tmp_path: Path) -> None:
    """Guards a check that parses a file once, and never takes old findings for those of a new text."""
    program, file, asked = tmp_path / "rules.py", tmp_path / "a.py", list[str]()
    program.write_text("1")
    file.write_text("one")

    def findings() -> object:
        memory = FileMemory(program, tmp_path)
        found = memory.found_in(file, lambda text: asked.append(text) or [text])
        memory.save()
        return found

    assert findings() == findings() == ["one"] and asked == ["one"]
    file.write_text("other")
    assert findings() == findings() == ["other"] and asked == ["one", "other"]
    program.write_text("2")
    assert findings() == ["other"] and asked == ["one", "other", "other"]
    (tmp_path / "rules.json").write_text("[")
    assert findings() == ["other"] and len(asked) == 4
