"""Files of other programs: what was there is put back, with its permissions."""

from pathlib import Path

import pytest

from sparkwright.adapters.client_files import ClientFiles


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o600])
def test_a_settings_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    """Another user's program may read it: neither our change nor its undo takes that away."""
    home = tmp_path / "home"
    file = home / ".config/client/settings.json"
    file.parent.mkdir(parents=True)
    file.write_text("old")
    file.chmod(mode)
    files = ClientFiles(home, tmp_path / "record")
    files.apply("client", files.change("~/.config/client/settings.json", lambda _: "new"))
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", mode)
    files.undo("client")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("old", mode)


def test_a_new_settings_file_is_the_user_s_alone(tmp_path: Path) -> None:
    """A key may be in it."""
    files = ClientFiles(tmp_path / "home", tmp_path / "record")
    files.apply("client", files.change("~/new.json", lambda _: "new"))
    assert (tmp_path / "home/new.json").stat().st_mode & 0o777 == 0o600
