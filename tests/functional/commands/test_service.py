"""Files of a supervisor's folder, read by the real script."""

from fakes.sh import Sh
from sparkwright.commands import service


def test_a_file_is_read_below_the_home_folder(sh: Sh) -> None:
    """Guards the paths of a cluster file, whose `~` no shell has expanded; what is not there is empty."""
    (sh.home / "my state").mkdir()
    (sh.home / "my state/endpoint").write_text("https://spark-1:8443/v1\n")
    assert sh.run(service.read("~/my state", "endpoint")).stdout == "https://spark-1:8443/v1\n"
    assert sh.run(service.read(str(sh.home / "my state"), "endpoint")).stdout == "https://spark-1:8443/v1\n"
    assert sh.run(service.read("~/my state", "absent")).stdout == ""
