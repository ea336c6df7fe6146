"""Ranks without Docker: the real scripts start, follow, list, stop and remove real processes of this machine."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.processes import running
from fakes.sh import Sh
from patience import wait_until
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.probed import LaunchCommand
from sparkwright.domain.recipe import Runtime
from sparkwright.facts import ranks
from sparkwright.facts.ranks import parse_process
from sparkwright.remote import process

STATE = "~/state dir"
FOLDER = process.rank_dir(STATE, "demo", 0)
LABELS = json.dumps({"deployment": "demo", "rank": "0", "spec-hash": "abc"})
# A program that says who it is, waits to be told, and ends as it is asked to.
PATIENT = 'trap "echo bye; exit 3" TERM; echo "hello $NAME"; while :; do sleep 0.05; done'
STUBBORN = 'trap "" TERM; echo up; while :; do sleep 0.05; done'


def rank_spec(script: str, name: str = "it's me") -> RankSpec:
    return RankSpec(0, "spark-1", ("sh", "-c", script), {"NAME": name}, Runtime.PROCESS)


@pytest.fixture
def clean_node(node_shell: Sh) -> Iterator[Sh]:
    """A node whose running ranks end with the test."""
    yield node_shell
    node_shell.run(process.remove([FOLDER], 0))


def folder(node: Sh) -> Path:
    return Path(FOLDER.replace("~", str(node.home)))


def start(node: Sh, script: str) -> int:
    """The exit code of `start`."""
    return node.run(process.start(rank_spec(script), FOLDER, LABELS)).exit_code


def start_and_read(node: Sh, script: str) -> None:
    """Started, and its first line has been read: from then on it handles signals."""
    assert start(node, script) == 0
    listening = node.start(process.follow(FOLDER, mark="word"))
    assert listening.stdout and listening.stdout.readline()
    Sh.end(listening)


def rank_status(node: Sh) -> RankStatus | None:
    listed = ranks.parse(node.run(Command(("sh", "-c", *_listing().argv[2:]))), "spark-1")
    return next(iter(listed), None) if isinstance(listed, tuple) else None


def _listing() -> Command:
    return ranks.command(STATE)


def followed(node: Sh, tail: int = 0) -> list[str]:
    """The lines of a rank that ends automatically; the last one reports how."""
    return node.run(process.follow(FOLDER, tail, "word")).stdout.removesuffix("\n").split("\n")


def test_the_words_of_a_start() -> None:
    """The program's own words: environment, labels and scripts are files in its folder, no command line."""
    command = process.start(rank_spec("x"), FOLDER, LABELS)
    assert command.argv[3:] == ("sparkwright", FOLDER, "sh", "-c", "x")
    assert command.changes == f"start {FOLDER}"


def test_the_flags_of_an_engine_are_its_own(clean_node: Sh) -> None:
    """Guards a report's flags against the scripts and variables that a rank is started with."""
    assert start(clean_node, PATIENT) == 0
    launched = parse_process(clean_node.run(ranks.of_process(FOLDER)))
    assert launched == LaunchCommand(("sh", "-c", PATIENT))


def test_the_words_of_a_rank_that_an_earlier_version_has_started() -> None:
    """Its wrapper's command line still has the scripts and `env`."""
    words = ["sh", "-c", "TEXT", "rank", "/f", "PRINTER", "env", "A=1", "vllm", "serve", "--hf-token", "x"]
    assert parse_process(Completed(0, "\n".join(words) + "\n")) == LaunchCommand(("vllm", "serve", "--hf-token", "***"))


def test_command_lines_of_a_rank_are_short(clean_node: Sh) -> None:
    """`ps` and `systemctl status` on a node are readable: also while somebody follows, stops and removes it."""
    assert start(clean_node, PATIENT) == 0
    listening = clean_node.start(process.follow(FOLDER, mark="word"))
    assert listening.stdout and listening.stdout.readline()
    own = [words_of(pid) for pid in rank_pids(folder(clean_node))]
    Sh.end(listening)
    assert len(own) >= 3 and max(map(len, own)) < 300, own
    assert any(words.startswith(b"sh\0" + bytes(folder(clean_node)) + b"/leader.sh") for words in own), own


def rank_pids(directory: Path) -> list[str]:
    """Processes whose environment says that they belong to the rank."""
    mark = f"SPARKWRIGHT_RANK_DIR={directory}".encode()
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and mark in environ_of(pid)]


def environ_of(pid: str) -> list[bytes]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def words_of(pid: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_a_rank_runs_and_is_found(clean_node: Sh) -> None:
    """The rank is a session of its own with pid, labels and log in its folder, readable by its owner only."""
    assert start(clean_node, PATIENT) == 0
    found = rank_status(clean_node)
    assert found is not None
    assert (found.deployment, found.rank, found.state, found.spec_hash) == ("demo", 0, "running", "abc")
    assert found.handle == str(folder(clean_node))
    assert folder(clean_node).stat().st_mode & 0o077 == 0
    pid = int((folder(clean_node) / "pid").read_text().split()[0])
    assert os.getsid(pid) == pid


def test_an_engine_that_renames_itself_keeps_its_mark(clean_node: Sh) -> None:
    """vLLM's setproctitle overwrites /proc/PID/environ, where its stop looks for it, unless SPT_NOENV is set."""
    start(clean_node, 'echo "SPT_NOENV=$SPT_NOENV"')
    assert followed(clean_node)[0] == "SPT_NOENV=1"


def test_a_second_start_is_refused(clean_node: Sh) -> None:
    """Two engines in one folder would write over each other's pid."""
    assert start(clean_node, PATIENT) == 0
    assert start(clean_node, PATIENT) == 9


def test_its_log_is_followed_to_its_end(clean_node: Sh) -> None:
    """stdout and stderr in order, then the marker with the exit code."""
    start(clean_node, "echo one; echo two >&2; exit 7")
    *lines, last = followed(clean_node)
    assert lines == ["one", "two"]
    assert last.startswith("\x1eexit word exited 7 false")


def test_the_end_is_reported_to_who_listens_already(clean_node: Sh) -> None:
    """The end is reported at once, also if nobody reaps the leader (a container whose first program is no init): a
    zombie has ended."""
    start(clean_node, PATIENT)
    listening = clean_node.start(process.follow(FOLDER, mark="word"))
    assert listening.stdout and listening.stdout.readline() == "hello it's me\n"
    clean_node.run(process.stop([FOLDER], 5))
    try:
        out, _ = listening.communicate(timeout=60)
    finally:
        Sh.end(listening)
    assert "bye\n" in out
    assert "\x1eexit word exited 3 false" in out


def test_the_end_of_one_that_was_killed_whole_is_reported_without_an_exit_file(clean_node: Sh) -> None:
    """Guards the supervisor's fastest detector: no exit file will ever be written, and none is waited for."""
    start(clean_node, PATIENT)
    listening = clean_node.start(process.follow(FOLDER, mark="word"))
    assert listening.stdout and listening.stdout.readline() == "hello it's me\n"
    pid = int((folder(clean_node) / "pid").read_text().split()[0])
    os.killpg(pid, signal.SIGKILL)
    try:
        out, _ = listening.communicate(timeout=60)
    finally:
        Sh.end(listening)
    assert "\x1eexit word exited unknown false" in out


def test_a_rank_that_was_stopped_hears_that_it_shall_end(clean_node: Sh) -> None:
    """Guards SIGSTOP: it goes on, and ends as it is asked to; only one that does not is killed."""
    start_and_read(clean_node, PATIENT)
    pid = int((folder(clean_node) / "pid").read_text().split()[0])
    os.killpg(pid, signal.SIGSTOP)
    assert clean_node.run(process.stop([FOLDER], 5)).ok
    found = rank_status(clean_node)
    assert found is not None and found.exit_code == 3


def test_a_tail_is_the_last_lines(clean_node: Sh) -> None:
    """`logs --tail`: what was asked for and no more, also after the end."""
    start(clean_node, "echo one; echo two; echo three")
    assert followed(clean_node)[:-1] == ["one", "two", "three"]
    assert followed(clean_node, 1)[:-1] == ["three"]
    assert clean_node.run(process.logs(FOLDER, 2)).stdout.splitlines() == ["two", "three"]


def test_stopping_asks_first_and_keeps_the_evidence(clean_node: Sh) -> None:
    """SIGTERM reaches the engine, its own exit code is kept, and so are log and labels."""
    start_and_read(clean_node, PATIENT)
    assert clean_node.run(process.stop([FOLDER], 5)).ok
    found = rank_status(clean_node)
    assert found is not None
    assert (found.state, found.exit_code) == ("exited", 3)
    assert (folder(clean_node) / "log").read_text().splitlines()[-1] == "bye"


def test_who_does_not_listen_is_killed(clean_node: Sh) -> None:
    """SIGKILL comes after the grace, and only then the answer."""
    start_and_read(clean_node, f"{STUBBORN} # {clean_node.home}")
    assert clean_node.run(process.stop([FOLDER], 0)).ok
    assert not running(f"# {clean_node.home}")
    found = rank_status(clean_node)
    assert found is not None and found.state == "exited"


def test_children_in_sessions_of_their_own_end_too(clean_node: Sh) -> None:
    """Engines start workers that leave their process group; every one of them carries the rank's mark."""
    start(clean_node, f"setsid sleep 1000.{os.getpid()} & {PATIENT}")
    assert clean_node.run(process.remove([FOLDER], 0)).ok
    assert not running(f"sleep 1000.{os.getpid()}")


def test_what_is_forked_while_processes_are_listed_ends_too(clean_node: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards a stop on a busy machine: after each of the first lists there is one more process of the rank."""
    shims, token = clean_node.home / "shims", f"sleep 1001.{os.getpid()}"
    mark = f"SPARKWRIGHT_RANK_DIR={folder(clean_node)}"
    shims.mkdir()
    (shims / "grep").write_text(
        f"""#!/bin/sh
PATH="${{PATH#*:}}"; grep "$@"; code=$?
case "$*" in *SPARKWRIGHT_RANK_DIR=*)
  echo >>{shims}/lists
  if [ "$(wc -l <{shims}/lists)" -le 4 ]; then
    env '{mark}' setsid {token} >/dev/null 2>&1 &
    until grep -qzxF '{mark}' /proc/$!/environ; do sleep 0.01; done
  fi ;;
esac; exit $code
"""
    )
    (shims / "grep").chmod(0o755)
    start_and_read(clean_node, PATIENT)
    monkeypatch.setenv("PATH", f"{shims}:{os.environ['PATH']}")
    done = clean_node.run(process.remove([FOLDER], 0))
    assert done.ok, done.stdout
    assert not running(token)


def test_removing_leaves_nothing(clean_node: Sh) -> None:
    """Neither process nor folder, and the deployment's own folder only if something else is in it."""
    start_and_read(clean_node, PATIENT)
    assert clean_node.run(process.remove([FOLDER], 5)).ok
    assert not folder(clean_node).parent.exists()
    assert rank_status(clean_node) is None
    assert clean_node.run(process.remove([FOLDER], 5)).ok, "removing what is gone is fine"


def test_a_killed_leader_is_not_taken_for_running(clean_node: Sh) -> None:
    """Nobody has written how it ended: that is not known, and no code is made up."""
    start(clean_node, PATIENT)
    pid = int((folder(clean_node) / "pid").read_text().split()[0])
    os.killpg(pid, signal.SIGKILL)
    assert followed(clean_node)[-1].startswith("\x1eexit word exited unknown false")
    found = rank_status(clean_node)
    assert found is not None and (found.state, found.exit_code) == ("exited", None)


def test_what_outlives_its_leader_is_asked_to_end(clean_node: Sh) -> None:
    """The whole grace would pass in silence otherwise: nobody is left to report it."""
    start_and_read(clean_node, PATIENT)
    os.kill(int((folder(clean_node) / "pid").read_text().split()[0]), signal.SIGKILL)
    assert clean_node.run(process.stop([FOLDER], 20)).ok
    assert "bye" in (folder(clean_node) / "log").read_text()


def test_a_pid_of_somebody_else_is_not_ours(clean_node: Sh) -> None:
    """A reused pid has another start time: it is neither called running nor killed."""
    start(clean_node, "exit 0")
    followed(clean_node)
    (folder(clean_node) / "pid").write_text(f"{os.getpid()} 1\n")
    found = rank_status(clean_node)
    assert found is not None and found.state == "exited"
    assert clean_node.run(process.stop([FOLDER], 0)).ok


def test_secrets_reach_the_engine_and_no_listing(clean_node: Sh) -> None:
    """They come from a 0600 file in the folder; the command lines of this machine do not hold them."""
    folder(clean_node).mkdir(parents=True)
    (folder(clean_node) / "secrets.env").write_text("KEY='s3cret value'\n")
    start_and_read(clean_node, 'echo "key $KEY"; while :; do sleep 0.05; done')
    assert not running("s3cret")
    clean_node.run(process.stop([FOLDER], 0))
    assert (folder(clean_node) / "log").read_text().splitlines()[0] == "key s3cret value"


def test_a_program_that_is_not_there_reports_it(clean_node: Sh) -> None:
    """127 and the shell's own text, in the log like everything else."""
    clean_node.run(process.start(RankSpec(0, "spark-1", ("/no/such/engine",), {}, Runtime.PROCESS), FOLDER, LABELS))
    *lines, last = followed(clean_node)
    assert last.startswith("\x1eexit word exited 127 false")
    assert "/no/such/engine" in lines[0]


def test_what_a_killed_launcher_left_in_tmp_goes_with_the_rank(clean_node: Sh, tmp_path: Path) -> None:
    """Only folders of ours directly below /tmp, whatever the file reports."""
    ours, kept = Path(f"/tmp/sparkwright-test-{os.getpid()}"), tmp_path / "sparkwright-kept"
    for path in (ours, kept):
        path.mkdir()
        (path / "log").touch()
    start(clean_node, "exit 0")
    wrong = (kept, f"{ours}/../{kept.relative_to('/tmp')}", "/tmp/", "") if kept.is_relative_to("/tmp") else (kept,)
    (folder(clean_node) / "temporary").write_text("".join(f"{path}\n" for path in (*wrong, ours)))
    assert clean_node.run(process.remove([FOLDER], 1)).ok
    assert not ours.exists() and not folder(clean_node).exists() and kept.exists()


def test_the_last_lines_are_read_although_they_are_written_late(clean_node: Sh) -> None:
    """Guards the traceback: on a node that is very busy the log's writer comes after the end of the engine."""
    until_told = 'while [ ! -e "$SPARKWRIGHT_RANK_DIR/go" ]; do sleep 0.02; done; '
    start_and_read(clean_node, f"echo first; {until_told}echo last; exit 5")
    listening = clean_node.start(process.follow(FOLDER, 1, "word"))
    taking = ["pgrep", "-f", f"^dd of={folder(clean_node)}/log "]
    writer = int(subprocess.run(taking, stdout=subprocess.PIPE, check=True).stdout)
    os.kill(writer, signal.SIGSTOP)
    (folder(clean_node) / "go").touch()
    wait_until(lambda: (folder(clean_node) / "over").exists())
    time.sleep(1)  # longer than the end waits for what a process that is left could print
    os.kill(writer, signal.SIGCONT)
    out, _ = listening.communicate(timeout=60)
    assert "last\n\x1eexit word exited 5 false" in out


@pytest.fixture
def small_disk(clean_node: Sh) -> Iterator[Path]:
    """The state folder is a file system of eight megabytes; root alone can mount one."""
    if os.geteuid():
        pytest.skip("only root can mount a small file system")
    state = Path(STATE.replace("~", str(clean_node.home)))
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "small", str(state)], check=True)
    try:
        yield state
        clean_node.run(process.remove([FOLDER], 0))
    finally:
        subprocess.run(["umount", "--lazy", str(state)], check=True)


def fill_disk(disk: Path) -> None:
    """No byte is left; what is freed later is free."""
    with (disk / "ballast").open("ab", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                continue
        except OSError:
            assert not os.statvfs(disk).f_bavail


def files_in_memory() -> set[Path]:
    return {found for root in ("/run/lock", "/dev/shm") for found in Path(root).glob("sparkwright-*/rank.*")}


def test_a_rank_starts_on_a_full_disk_and_its_end_is_known(clean_node: Sh, small_disk: Path) -> None:
    """Guards the relaunch: folder, secret, log and exit code are in memory, for its user only, and go with the rank."""
    before = files_in_memory()
    fill_disk(small_disk)
    assert clean_node.run(process.make_folder(FOLDER)).ok
    (folder(clean_node) / "secrets.env").write_text("KEY='s3cret'\n")
    start_and_read(clean_node, f"echo key $KEY; {PATIENT}")
    found = rank_status(clean_node)
    assert found is not None and (found.state, found.handle) == ("running", str(folder(clean_node)))
    (made,) = files_in_memory() - before
    assert (made.stat().st_mode | made.parent.stat().st_mode) & 0o077 == 0
    assert clean_node.run(process.stop([FOLDER], 5)).ok
    assert [line for line in followed(clean_node)[:-1] if line != "Terminated"] == [
        "key s3cret",
        "hello it's me",
        "bye",
    ]
    found = rank_status(clean_node)
    assert found is not None and found.exit_code == 3
    assert clean_node.run(process.remove([FOLDER], 0)).ok
    assert files_in_memory() == before and sorted(path.name for path in small_disk.iterdir()) == [
        "ballast",
        "deployments",
    ]


def test_a_disk_that_fills_up_does_not_end_the_rank(clean_node: Sh, small_disk: Path) -> None:
    """Guards what serves: each print succeeds, who listens reads on, and the exit code is known all the same."""
    until_told = 'while [ ! -e "$SPARKWRIGHT_RANK_DIR/go" ]; do sleep 0.02; done; '
    lines = 'while [ $i -lt {} ]; do echo "line $i of a log" || exit 66; i=$((i+1)); done; '
    start(clean_node, f"i=0; {lines.format(450)}{until_told}{lines.format(900)}exit 5")
    listening = clean_node.start(process.follow(FOLDER, mark="word"))
    log, go = folder(clean_node) / "log", folder(clean_node) / "go.new"
    wait_until(lambda: "line 449 of" in log.read_text(), "the first half of the log")
    go.touch()
    fill_disk(small_disk)
    go.rename(go.with_name("go"))  # a full disk takes no new file
    try:
        out, _ = listening.communicate(timeout=60)
    finally:
        Sh.end(listening)
    assert "line 899 of a log\n" in out and "\x1eexit word exited 5 false" in out
    found = rank_status(clean_node)
    assert found is not None and found.exit_code == 5
    assert clean_node.run(process.logs(FOLDER, 1)).stdout == "line 899 of a log\n"


def test_two_that_need_memory_at_once_share_it(clean_node: Sh, tmp_path: Path) -> None:
    """Guards the last lines: the log's writer and the end of the rank put what they have into one folder."""
    both = f'{process.ROOM} aside "$1" & one=$!; aside "$1" && wait "$one" && readlink "$1/memory"'
    before = set(Path("/run/lock").glob("sparkwright-*/rank.*"))
    for attempt in range(20):
        rank = tmp_path / f"rank{attempt}"
        rank.mkdir()
        done = clean_node.run(Command(("sh", "-c", both, "sh", str(rank))))
        made = set(Path("/run/lock").glob("sparkwright-*/rank.*")) - before
        for one in made:
            one.rmdir()
        assert done.ok and made == {Path(done.stdout.strip())}


def test_a_full_disk_never_grows_in_memory(clean_node: Sh, small_disk: Path) -> None:
    """Guards /run/lock, which has 5 MB: of a log without end the last megabyte is kept."""
    fill_disk(small_disk)
    start(clean_node, "head -c 3000000 /dev/zero | tr '\\0' x; echo; sleep 0.1; echo last; exit 4")
    assert "last" in followed(clean_node, 1)
    log = (folder(clean_node) / "log").read_bytes()
    assert 5 <= len(log) <= 1 << 20 and log.endswith(b"last\n")


def test_what_others_laid_there_under_our_name_is_not_used(clean_node: Sh, small_disk: Path) -> None:
    """Guards secrets: both folders are open to all users of the node; the next place is taken instead."""
    mine = Path(f"/run/lock/sparkwright-{os.geteuid()}")
    aside = mine.with_name(f"{mine.name}.kept-by-test")
    if mine.exists():
        mine.rename(aside)
    mine.symlink_to("/tmp")
    fill_disk(small_disk)
    try:
        assert clean_node.run(process.make_folder(FOLDER)).ok
        assert folder(clean_node).resolve().parent == Path(f"/dev/shm/{mine.name}")
        clean_node.run(process.remove([FOLDER], 0))
    finally:
        mine.unlink()
        if aside.exists():
            aside.rename(mine)
