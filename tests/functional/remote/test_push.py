"""Copies over several connections on this machine: cut off anywhere they continue; no half file has a final name."""

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import zlib
from pathlib import Path

import pytest

from fakes.sh import Sh
from patience import PATIENCE
from sparkwright.domain.cluster import Transfer
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.host_facts import PageCache
from sparkwright.facts.memory import parse_cache
from sparkwright.remote import staging
from sparkwright.remote.programs import measure, take_text
from sparkwright.remote.programs.wire import (
    COPYING,
    PARTIAL,
    PIECE,
    checksum_of,
    name_of,
)

HERE = staging.Peer("ai", "127.0.0.1", 22, "", local=True)
RANGE = 8 * PIECE
ODD = 12345


def run_push(sh: Sh, source: Path, target: Path, **pace: object) -> Completed:
    return sh.run(staging.push_tree(str(source), str(target), HERE, Transfer(**pace)))  # type: ignore[arg-type]


def tree_checksums(root: Path) -> dict[str, str]:
    """Every file with its content's hash, every link with its target."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(root))] = str(path.readlink())
        elif path.is_file():
            found[str(path.relative_to(root))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@pytest.fixture
def node_shell(tmp_path: Path) -> Sh:
    """One shell is enough: the programs are Python."""
    return Sh(tmp_path, "dash")


@pytest.fixture
def model_folder(node_shell: Sh) -> Path:
    """A hub entry: a shard of several ranges, a shard of less than a piece, small files, links."""
    root = node_shell.home / "hub/models--a--b"
    (root / "blobs").mkdir(parents=True)
    (root / "snapshots/1").mkdir(parents=True)
    for name, size in (("a.safetensors", 2 * RANGE + ODD), ("b.safetensors", ODD), ("config.json", 2), ("empty", 0)):
        data = random.Random(name).randbytes(size)
        blob = hashlib.sha256(data).hexdigest()
        (root / "blobs" / blob).write_bytes(data)
        (root / "snapshots/1" / name).symlink_to(f"../../blobs/{blob}")
    return root


def test_a_copy_is_whole_with_times_modes_and_no_page_cache(node_shell: Sh, model_folder: Path) -> None:
    """Neither side keeps the weights in memory, and a second call sends nothing."""
    target = node_shell.home / "there/models--a--b"
    done = run_push(node_shell, model_folder, target)
    assert done.ok, done.stdout
    big = next(path for path in (model_folder / "blobs").iterdir() if path.stat().st_size > RANGE)
    there = target / "blobs" / big.name
    assert (there.stat().st_mtime_ns, there.stat().st_mode) == (big.stat().st_mtime_ns, big.stat().st_mode)
    for side in (big, there):
        found = parse_cache(node_shell.run(measure([str(side)])))
        assert isinstance(found, PageCache) and found.cached < 0.01 * big.stat().st_size
    assert tree_checksums(target) == {**tree_checksums(model_folder), COPYING: hashlib.sha256().hexdigest()}
    again = run_push(node_shell, model_folder, target)
    assert again.ok and " 100% 0.00MB/s" in again.stdout


def killed_once(
    sh: Sh, source: Path, target: Path, after: int, receivers: bool = False, limit: int = 400_000_000
) -> None:
    """SIGKILL for the whole copy, or for its receiving side only, once so many bytes are noted in a journal."""
    command = staging.push_tree(str(source), str(target), HERE, Transfer(streams=2, limit=limit))
    process = sh.start(command)
    feed_program(process, command)
    while process.poll() is None and noted_bytes(target) < after:
        os.sched_yield()
    for pid in receiving(process.pid) if receivers else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if receivers:
        process.wait(PATIENCE)  # it ends with what has happened
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def receiving(session: int) -> list[int]:
    """Processes of take.py in this session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            own = int(stat.read_text().rpartition(")")[2].split()[3]) == session
            if own and b"f=sys.stdin.buffer" in (stat.parent / "cmdline").read_bytes():
                found.append(int(stat.parent.name))
    return found


def feed_program(process: "subprocess.Popen[str]", command: Command) -> None:
    """The program's text goes to its stdin."""
    assert process.stdin
    process.stdin.write((command.stdin or b"").decode())
    process.stdin.close()
    process.stdin = None


def noted_bytes(target: Path) -> int:
    """Bytes of files that are whole, and what the journals of others name."""
    whole = {name_of(f"blobs/{path.name}"): path.stat().st_size for path in (target / "blobs").glob("*")}
    total = sum(whole.values())
    with contextlib.suppress(FileNotFoundError):
        for journal in (target / PARTIAL).glob("*.journal"):
            lines = [] if journal.stem in whole else journal.read_text().splitlines()[1:]
            total += sum(int(line.split()[1]) for line in lines if len(line.split()) == 3)
    return total


@pytest.mark.full
def test_killed_at_random_points_it_loses_at_most_one_range(node_shell: Sh, model_folder: Path) -> None:
    """A copy of hours that begins again after each cut never ends; what is half there has no final name."""
    target, dice = node_shell.home / "there/models--a--b", random.Random(7)
    with (model_folder / "blobs" / "large").open("wb") as file:
        file.truncate(48 * PIECE)
    total = sum(path.stat().st_size for path in (model_folder / "blobs").iterdir())
    for cut in range(20):
        before = noted_bytes(target)
        killed_once(node_shell, model_folder, target, before + dice.randrange(0, 2 * PIECE), receivers=bool(cut % 2))
        assert noted_bytes(target) >= before or not (target / PARTIAL).exists()
        for path in (target / "blobs").glob("*"):
            assert path.name == "large" or hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    have = noted_bytes(target)
    done = run_push(node_shell, model_folder, target)
    assert done.ok and {**tree_checksums(target)}.items() >= tree_checksums(model_folder).items()
    assert have <= total
    assert not (target / PARTIAL).exists()


@pytest.mark.full
def test_nodes_in_a_chain_send_on_what_they_receive(node_shell: Sh, model_folder: Path) -> None:
    """The first sends once, all arrive whole in whichever order the programs start, and nothing else is left."""
    stops = [model_folder, *(node_shell.home / name / "models--a--b" for name in ("two", "three", "four"))]
    (model_folder / "more.txt").write_text("published by nobody")
    (model_folder / "more.bin").write_bytes(random.Random(1).randbytes(3 * PIECE))
    found = chained(node_shell, stops)
    assert [code for code, _ in found] == [0, 0, 0], found
    for stop in stops[1:]:
        assert tree_checksums(stop) == {**tree_checksums(model_folder), COPYING: hashlib.sha256().hexdigest()}


def chained(sh: Sh, stops: list[Path], **pace: object) -> list[tuple[int, str]]:
    """Exit codes and outputs, the last link first."""
    running, how = [], Transfer(**pace)  # type: ignore[arg-type]
    for number in reversed(range(len(stops) - 1)):
        chain = staging.Chain("a", follows=number > 0, leads=number < len(stops) - 2)
        process = sh.start(staging.push_tree(str(stops[number]), str(stops[number + 1]), HERE, how, chain))
        feed_program(process, staging.push_tree("", "", HERE, how))
        running.append(process)
    outs = [process.communicate(timeout=PATIENCE)[0] for process in running]
    return [(process.returncode, out) for process, out in zip(running, outs, strict=True)]


def test_what_an_earlier_copy_has_left_of_a_file_is_not_sent_on(node_shell: Sh) -> None:
    """A file that was large and half there, and is small by now: the last node gets what the first one has."""
    stops = [node_shell.home / name for name in ("one", "two", "three")]
    stops[0].mkdir()
    (stops[0] / "main").write_bytes(b"n" * 40)
    left = stops[1] / PARTIAL / name_of("main")
    left.parent.mkdir(parents=True)
    left.write_bytes(b"o" * 40)
    left.with_suffix(".journal").write_text("of 40 1\n")
    assert [code for code, _ in chained(node_shell, stops)] == [0, 0]
    assert [(stop / "main").read_bytes() for stop in stops[1:]] == [b"n" * 40] * 2
    assert not left.parent.exists()


def test_a_node_goes_on_when_the_next_one_needs_nothing(node_shell: Sh) -> None:
    """The one that sends on ends first; what arrives still has a place."""
    stops = [node_shell.home / name for name in ("one", "two", "three")]
    stops[0].mkdir()
    for number in range(20):
        (stops[0] / f"{number}.bin").write_bytes(random.Random(number).randbytes(1 << 18))
    assert run_push(node_shell, stops[0], stops[2]).ok
    found = chained(node_shell, stops, limit=5_000_000)
    assert [code for code, _ in found] == [0, 0], found
    assert tree_checksums(stops[1]).items() >= tree_checksums(stops[0]).items()


@pytest.mark.full
def test_two_copies_into_one_folder_do_not_mix(node_shell: Sh) -> None:
    """The receiver of a copy that was cut off may still be writing when the next one begins, and ends first."""
    target, running = node_shell.home / "there", []
    for name, limit in (("a", 2_000_000), ("b", 0)):
        (node_shell.home / name).mkdir()
        for number in range(1500):
            (node_shell.home / name / f"{name}{number}").write_text(f"{name}{number} " * 1000)
        command = staging.push_tree(str(node_shell.home / name), str(target), HERE, Transfer(limit=limit))
        running.append(node_shell.start(command))
        feed_program(running[-1], command)
    outs = [process.communicate(timeout=PATIENCE)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], outs
    assert (
        tree_checksums(target).items()
        >= (tree_checksums(node_shell.home / "a") | tree_checksums(node_shell.home / "b")).items()
    )


def test_a_path_that_is_no_utf8_is_named(node_shell: Sh) -> None:
    """A folder in the file's place is named: an answer that cannot be written would be waited for."""
    source, target = node_shell.home / "from", node_shell.home / "to\udcff"
    for size in (1, 2 * PIECE):
        source.write_bytes(bytes(size))
        (target / "x").mkdir(parents=True, exist_ok=True)
        done = run_push(node_shell, source, target / "x")
        assert done.exit_code == 23 and "x" in done.stdout, done


def test_a_flipped_bit_on_the_way_is_sent_again(node_shell: Sh, model_folder: Path) -> None:
    """A half-done file on the target's disk may rot: it is verified as a whole before it has a name."""
    target = node_shell.home / "there/models--a--b"
    killed_once(node_shell, model_folder, target, PIECE, limit=40_000_000)
    big = next(path for path in (model_folder / "blobs").iterdir() if path.stat().st_size > RANGE)
    partial = target / PARTIAL / name_of(f"blobs/{big.name}")
    offset = int((target / PARTIAL / f"{partial.name}.journal").read_text().splitlines()[1].split()[0])
    with partial.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))
    done = run_push(node_shell, model_folder, target)
    assert done.ok and tree_checksums(target).items() >= tree_checksums(model_folder).items()


@pytest.mark.full
def test_a_flipped_bit_in_what_had_all_arrived_is_sent_again(node_shell: Sh, model_folder: Path) -> None:
    """Killed between the last piece and the verification: nothing is due, and the damage is found all the same."""
    source, target = model_folder / "notes.bin", node_shell.home / "there/models--a--b"
    source.write_bytes(bytes(2 * PIECE))
    partial = target / PARTIAL / name_of("notes.bin")
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"x" + bytes(2 * PIECE - 1))
    state = source.stat()
    pieces = "".join(f"{at} {PIECE} 0\n" for at in (0, PIECE))
    partial.with_suffix(".journal").write_text(f"of {state.st_size} {state.st_mtime_ns}\n{pieces}")
    done = run_push(node_shell, source, target / "notes.bin")
    assert done.ok, done.stdout
    assert (target / "notes.bin").read_bytes() == source.read_bytes()


@pytest.mark.full
def test_a_source_that_cannot_be_read_is_named(node_shell: Sh, model_folder: Path) -> None:
    """The reason of the source's disk, instead of waiting for the peer."""
    source = model_folder / "blobs" / "loop"
    source.write_bytes(bytes(2 * PIECE))
    command = staging.push_tree(
        str(model_folder), str(node_shell.home / "there"), HERE, Transfer(streams=1, limit=10_000_000)
    )
    process = node_shell.start(command)
    feed_program(process, command)
    while process.poll() is None and not noted_bytes(node_shell.home / "there"):
        os.sched_yield()
    source.unlink()
    for blob in (model_folder / "blobs").iterdir():
        blob.unlink()
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 23 and "No such file or directory" in out, out


@pytest.mark.full
def test_a_source_that_is_not_what_the_publisher_promised_is_refused(node_shell: Sh, model_folder: Path) -> None:
    """A blob is named by its checksum: a damaged one goes no further, and the message names it."""
    blob = max((model_folder / "blobs").iterdir(), key=lambda path: path.stat().st_size)
    with blob.open("r+b") as file:
        file.write(b"x")
    target = node_shell.home / "there/models--a--b"
    done = run_push(node_shell, model_folder, target)
    assert done.exit_code == 23 and blob.name in done.stdout and "checksum" in done.stdout
    assert not (target / "blobs" / blob.name).exists()


@pytest.mark.full
def test_three_thousand_small_files_arrive(node_shell: Sh) -> None:
    """No limit of open files, threads or lines is met."""
    source, target = node_shell.home / "many", node_shell.home / "there/many"
    source.mkdir()
    for number in range(3000):
        (source / f"{number % 10}").mkdir(exist_ok=True)
        (source / f"{number % 10}/{number}.json").write_text(str(number))
    process = run_push(node_shell, source, target, streams=4)
    assert process.ok and tree_checksums(target).items() >= tree_checksums(source).items()


@pytest.mark.full
def test_small_files_that_were_cut_off_go_on(node_shell: Sh) -> None:
    """They come by the connection that controls the copy; what has its name by then is not sent again."""
    source, target = node_shell.home / "many", node_shell.home / "there/many"
    source.mkdir()
    for number in range(100):
        (source / f"{number}.bin").write_bytes(random.Random(number).randbytes(1 << 19))
    command = staging.push_tree(str(source), str(target), HERE, Transfer(limit=10_000_000))
    process = node_shell.start(command)
    feed_program(process, command)
    while process.poll() is None and len(list(target.glob("*.bin"))) < 10:
        os.sched_yield()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    there = {path.name: path.stat().st_ino for path in target.glob("*.bin")}
    assert 10 <= len(there) < 100
    again = run_push(node_shell, source, target)
    assert again.ok and again.stdout.rstrip().endswith("over 1 connection"), again.stdout
    assert tree_checksums(target).items() >= tree_checksums(source).items()
    assert {name: (target / name).stat().st_ino for name in there} == there


def test_a_pack_between_the_lines_is_verified_and_sent_again(tmp_path: Path) -> None:
    """A small file whose content is another than its checksum promises has no name until it comes again."""
    asked = {"role": "plan", "root": str(tmp_path / "t"), "single": False, "files": [["a/b.json", 4, 1, 420]]}
    listed = json.dumps([[0, checksum_of([zlib.crc32(b"good")])]]).encode() + b"\n"
    head = b"pack %d\n" % (len(listed) + 4) + listed
    words = ["python3", "-I", "-S", "-c", take_text()]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(asked | {"links": []}).encode() + b"\n" + head + b"bad!")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["missing"] == [[0, [[0, 4]]]]
        assert process.stdout.readline() == b"bad 0\n" and not (tmp_path / "t/a/b.json").exists()
        out, _ = process.communicate(head + b"good")
    assert out == b"ok 0\n" and (tmp_path / "t/a/b.json").read_bytes() == b"good"


@pytest.mark.parametrize("head", [b"pack 0\n", b"pack %d\n" % (1 << 40), b"pack\n", b"pack 9\n[[0, 1]]\n"])
def test_an_odd_pack_is_refused(tmp_path: Path, head: bytes) -> None:
    """No memory is taken for it, and the other side hears why."""
    asked = json.dumps({"role": "plan", "root": str(tmp_path), "single": False, "files": [], "links": []}) + "\n"
    words = ["python3", "-I", "-S", "-c", take_text()]
    done = subprocess.run(words, input=asked.encode() + head, capture_output=True, check=False)
    assert b"\nerror 23 " in done.stdout and not done.stderr, done


@pytest.mark.full
def test_a_target_that_cannot_be_written_is_named(node_shell: Sh, model_folder: Path) -> None:
    """Exit 23 with the path, or 11 where the disk is full: nothing of it has a final name."""
    (node_shell.home / "there").write_text("a file, not a folder")
    done = run_push(node_shell, model_folder, node_shell.home / "there/models--a--b")
    assert done.exit_code == 23 and "there" in done.stdout


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_disk_without_room_is_named_before_a_byte_is_sent(node_shell: Sh, model_folder: Path) -> None:
    """Exit 11: the hint is to make room, and what arrives after that continues."""
    disk = node_shell.home / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(disk)], check=True)
    try:
        done = run_push(node_shell, model_folder, disk / "models--a--b")
        assert done.exit_code == 11 and "do not fit" in done.stdout
        subprocess.run(["mount", "-o", "remount,size=256m", str(disk)], check=True)
        assert run_push(node_shell, model_folder, disk / "models--a--b").ok
        assert tree_checksums(disk / "models--a--b").items() >= tree_checksums(model_folder).items()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.full
def test_a_source_that_changes_is_named_and_the_next_copy_has_the_new_content(
    node_shell: Sh, model_folder: Path
) -> None:
    """A checkpoint that something still writes: exit 24 with the file, no half of each content under a final name."""
    source, target = model_folder / "notes.bin", node_shell.home / "there/models--a--b"
    source.write_bytes(random.Random(2).randbytes(6 * PIECE))
    command = staging.push_tree(str(model_folder), str(target), HERE, Transfer(streams=1, limit=60_000_000))
    process = node_shell.start(command)
    feed_program(process, command)
    while process.poll() is None and not noted_bytes(target):
        os.sched_yield()
    with source.open("ab") as file:
        file.write(b"more")
    out, _ = process.communicate()
    assert process.returncode == 24 and "notes.bin changed while it was copied" in out, out
    assert not (target / "notes.bin").exists()
    assert (
        run_push(node_shell, model_folder, target).ok
        and tree_checksums(target).items() >= tree_checksums(model_folder).items()
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_disk_that_fills_up_in_the_middle_is_named_and_the_copy_continues(node_shell: Sh) -> None:
    """Something else takes the room of small files: exit 11, and with room again the rest arrives."""
    disk, source = node_shell.home / "small", node_shell.home / "many"
    disk.mkdir()
    source.mkdir()
    for number in range(100):
        (source / f"{number}.bin").write_bytes(random.Random(number).randbytes(1 << 19))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", str(disk)], check=True)
    try:
        command = staging.push_tree(str(source), str(disk / "many"), HERE, Transfer(streams=1, limit=20_000_000))
        process = node_shell.start(command)
        feed_program(process, command)
        while process.poll() is None and not list(disk.glob("many/*.bin")):
            os.sched_yield()
        # Without a buffer: closing a file that still holds bytes would fail again on the full disk.
        with (disk / "other").open("wb", buffering=0) as other, contextlib.suppress(OSError):
            while True:
                other.write(bytes(1 << 20))
        out, _ = process.communicate()
        assert process.returncode == 11 and "No space left on device" in out, out
        assert all(path.stat().st_size == 1 << 19 for path in disk.glob("many/*.bin"))
        (disk / "other").unlink()
        assert run_push(node_shell, source, disk / "many").ok
        assert tree_checksums(disk / "many").items() >= tree_checksums(source).items()
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.full
@pytest.mark.parametrize("yields", [False, True])
def test_next_to_an_engine_both_sides_take_what_it_leaves(node_shell: Sh, model_folder: Path, yields: bool) -> None:
    """Every program of the copy is in the class that the kernel runs last, for CPUs and for the disk; else none is."""
    how = Transfer(streams=2, limit=20_000_000, yields=yields)
    command = staging.push_tree(str(model_folder), str(node_shell.home / "there"), HERE, how)
    process = node_shell.start(command)
    feed_program(process, command)
    while process.poll() is None and noted_bytes(node_shell.home / "there") < PIECE:
        os.sched_yield()
    classes = {pid: os.sched_getscheduler(pid) for pid in receiving(process.pid)}
    node_shell.end(process)
    assert len(classes) >= 3 and set(classes.values()) == {os.SCHED_IDLE if yields else os.SCHED_OTHER}


@pytest.mark.full
def test_the_limit_holds(node_shell: Sh, model_folder: Path) -> None:
    """Next to an engine that serves a copy takes what it is given: the rate in the last line shows it."""
    done = run_push(node_shell, model_folder, node_shell.home / "there/models--a--b", limit=64_000_000)
    assert done.ok
    rate = float(done.stdout.strip().splitlines()[-1].split()[2].removesuffix("MB/s"))
    assert rate < 80
