"""The start of the programs of a head node."""

import gc
from pathlib import Path

import pytest

from sparkwright.supervisor.__main__ import load_program


@pytest.mark.parametrize("fails", [False, True])
def test_the_collector_rests_while_a_program_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """It works again afterwards, also when the program cannot be loaded."""
    text = "import gc\nSEEN = gc.isenabled()\ndef main(home):\n    return SEEN\n" + "import no_such_module\n" * fails
    name = f"a_program_that_fails_{fails}".lower()  # Python keeps what it has loaded
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    if fails:
        with pytest.raises(ModuleNotFoundError):
            load_program(name)
    else:
        assert load_program(name)(tmp_path) is False
    assert gc.isenabled()
    gc.unfreeze()
