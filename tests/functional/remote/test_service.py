"""A supervisor's folder, read and taken away by the real scripts."""

import subprocess

from fakes.sh import Sh
from sparkwright.remote import service


def test_a_file_is_read_below_the_home_folder(sh: Sh) -> None:
    """Guards the paths of a cluster file, whose `~` no shell has expanded; what is not there is empty."""
    (sh.home / "my state").mkdir()
    (sh.home / "my state/endpoint").write_text("https://spark-1:8443/v1\n")
    assert sh.run(service.read("~/my state", "endpoint")).stdout == "https://spark-1:8443/v1\n"
    assert sh.run(service.read(str(sh.home / "my state"), "endpoint")).stdout == "https://spark-1:8443/v1\n"
    assert sh.run(service.read("~/my state", "absent")).stdout == ""


def test_who_has_lost_its_leader_has_ended_before_its_files_go(sh: Sh) -> None:
    """Guards `down` after the leader was killed: what is still written while the folder goes would keep it there."""
    home = sh.home / "state/supervision/twin"
    (home / "services/supervisor").mkdir(parents=True)
    words = "trap 'sleep 0.5; echo last > live.json; exit' TERM; echo; while :; do sleep 0.05; done"
    with subprocess.Popen(["sh", "-c", words], cwd=home, stdout=subprocess.PIPE) as left:
        assert left.stdout and left.stdout.readline()
        (home / "services/supervisor/child").write_text(str(left.pid))
        done = sh.run(service.remove(str(sh.home / "state"), "twin", "lab/twin"))
        ended = left.poll()
        left.kill()
    assert done.ok and not home.exists(), done.stderr
    assert ended == 0
