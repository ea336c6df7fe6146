"""A supervisor's folder, read and taken away by the real scripts."""

import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fakes.sh import Sh
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import Ask, Request
from sparkwright.remote import service


def test_a_file_is_read_below_the_home_folder(node_shell: Sh) -> None:
    """Guards the paths of a cluster file, whose `~` no shell has expanded; what is not there is empty."""
    (node_shell.home / "my state").mkdir()
    (node_shell.home / "my state/endpoint").write_text("https://spark-1:8443/v1\n")
    assert node_shell.run(service.read("~/my state", "endpoint")).stdout == "https://spark-1:8443/v1\n"
    assert (
        node_shell.run(service.read(str(node_shell.home / "my state"), "endpoint")).stdout
        == "https://spark-1:8443/v1\n"
    )
    assert node_shell.run(service.read("~/my state", "absent")).stdout == ""


def test_who_has_lost_its_leader_has_ended_before_its_files_go(node_shell: Sh) -> None:
    """Guards `down` after the leader was killed: what is still written while the folder goes would keep it there."""
    home = node_shell.home / "state/supervision/twin"
    (home / "services/supervisor").mkdir(parents=True)
    words = "trap 'sleep 0.5; echo last > live.json; exit' TERM; echo; while :; do sleep 0.05; done"
    with subprocess.Popen(["sh", "-c", words], cwd=home, stdout=subprocess.PIPE) as left:
        assert left.stdout and left.stdout.readline()
        (home / "services/supervisor/child").write_text(str(left.pid))
        done = node_shell.run(service.remove(str(node_shell.home / "state"), "twin", "lab/twin"))
        ended = left.poll()
        left.kill()
    assert done.ok and not home.exists(), done.stderr
    assert ended == 0


def test_kept_prompts_go_with_their_key(node_shell: Sh) -> None:
    """Guards texts of clients after `down`; the key of another deployment stays."""
    state = node_shell.home / "state"
    (state / "door").mkdir(parents=True)
    (state / "supervision/twin/prompts").mkdir(parents=True)
    for name in ("twin", "other"):
        (state / f"door/{name}.prompts.key").write_bytes(bytes(32))
    done = node_shell.run(service.remove(str(state), "twin", "lab/twin"))
    assert done.ok and not (state / "supervision").exists(), done.stderr
    assert [one.name for one in (state / "door").iterdir()] == ["other.prompts.key"]


def test_a_program_that_lives_is_waited_for(node_shell: Sh) -> None:
    """Guards `up` on a busy head: a report that comes late counts, silence is told as silence, an end at once."""
    home = node_shell.home / "state/supervision/twin"
    (home / "services/supervisor").mkdir(parents=True)
    child, reported = home / "services/supervisor/child", {"at": 1.0, "pid": 0}
    assert node_shell.run(service.await_alive(str(home), 1, 60)).exit_code == 1
    with subprocess.Popen(["sleep", "600"]) as slow:
        child.write_text(f"{slow.pid}\n")
        silent = node_shell.run(service.await_alive(str(home), 1, 2))
        with ThreadPoolExecutor() as pool:
            late = pool.submit(node_shell.run, service.await_alive(str(home), 1, 600))
            time.sleep(2.5)
            assert not late.done()
            (home / "live.json").write_text(json.dumps(reported | {"pid": slow.pid}))
            (home / "lock").write_text(str(slow.pid))
            assert late.result().ok
            (home / "lock").unlink()
            again = pool.submit(node_shell.run, service.await_alive(str(home), 1, 600))
            time.sleep(2.5)
            (home / "log").write_text("no module named x\n")
            slow.kill()
            slow.wait()
            ended = again.result()
    assert silent.exit_code == service.SILENT and f"process {slow.pid} lives" in silent.stdout
    assert ended.exit_code == 1 and "no module named x" in ended.stdout


@pytest.fixture
def mailbox(node_shell: Sh) -> Path:
    """`request.json` of a supervisor's folder."""
    home = node_shell.home / "state/supervision/twin"
    home.mkdir(parents=True)
    (home / "desired.json").write_text("{}")
    return home / "request.json"


def sending(sh: Sh, nonce: str, ask: Ask = Ask.RESTART, over: bool = False) -> tuple[int, str]:
    """Exit code and stdout of one `send_request`."""
    content = to_json(Request(ask, "ann@desk", "w" * 20_000, nonce))
    done = sh.run(service.send_request(str(sh.home / "state"), "twin", content, str(ask), over))
    return done.exit_code, done.stdout


def test_requests_at_the_same_time_all_arrive_whole(node_shell: Sh, mailbox: Path) -> None:
    """Guards two people, or console and command: each request is read once, whole, and nobody gets an error."""
    asked = [f"nonce-{number}" for number in range(12)]
    taken: list[str] = []

    def supervisor() -> None:
        end = time.monotonic() + 60
        while len(taken) < len(asked) and time.monotonic() < end:
            if mailbox.exists():
                taken.append(json.loads(mailbox.read_text())["nonce"])
                mailbox.unlink()
            time.sleep(0.01)

    reader = threading.Thread(target=supervisor)
    reader.start()
    with ThreadPoolExecutor(4) as several:
        codes = [code for code, _ in several.map(lambda nonce: sending(node_shell, nonce), asked)]
    reader.join()
    assert codes == [0] * len(asked) and sorted(taken) == sorted(asked)
    assert [one.name for one in mailbox.parent.iterdir()] == ["desired.json"]


def test_a_replacement_under_way_is_in_nobodys_way_but_said(node_shell: Sh, mailbox: Path) -> None:
    """A restart gets what is there; the next `up`, which holds the leases, takes its place; so does no other ask."""
    assert sending(node_shell, "first", Ask.REPLACE) == (0, "")
    os.utime(mailbox, (time.time() - 30, time.time() - 30))
    code, told = sending(node_shell, "second")
    age, _, text = told.partition("\n")
    assert code == service.OCCUPIED and 30 <= int(age) < 90 and json.loads(text)["nonce"] == "first"
    assert sending(node_shell, "third", Ask.REPLACE, over=True) == (0, "")
    assert json.loads(mailbox.read_text())["nonce"] == "third"


def test_files_of_two_writers_are_one_of_the_two(node_shell: Sh, mailbox: Path) -> None:
    """Guards desired.json: never a mixture of both, and nothing is left next to it."""
    state, texts = str(node_shell.home / "state/supervision/twin"), [b"a" * 300_000, b"b" * 300_000]
    with ThreadPoolExecutor(4) as several:
        done = list(several.map(lambda n: node_shell.run(service.write(state, "desired.json", texts[n % 2])), range(8)))
    assert all(one.ok for one in done), done
    assert (mailbox.parent / "desired.json").read_bytes() in texts
    assert {one.name for one in mailbox.parent.iterdir()} == {"desired.json", "desired.json.bak"}


def test_a_folder_in_the_user_s_home_is_that_of_the_node(node_shell: Sh) -> None:
    """The cluster file says `~/.local/state/sparkwright`: notifications stood in a folder named `~`, unread."""
    done = node_shell.run(service.write("~/state/notify", "notify.json", b"{}"))
    assert done.ok, done
    assert (node_shell.home / "state/notify/notify.json").read_bytes() == b"{}" and not (node_shell.home / "~").exists()
