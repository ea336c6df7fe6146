"""The program on the head: copied once, whole, and repaired when a power cut has hollowed it."""

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from fakes.sh import Sh
from sparkwright.adapters.bundle import Bundle
from sparkwright.adapters.bundle_check import MANIFEST, damaged_files, restore_files
from sparkwright.domain.service import ServiceHost
from sparkwright.facts.service import parse_service_host
from sparkwright.remote import service

PAIRS = 5
FILES = {"__main__.py": b"print()\n", **{f"sparkwright/{n}.py": b"x = 1\n" * n for n in range(60)}}
SUMS = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in FILES.items()).encode()
DIGEST = hashlib.sha256(SUMS).hexdigest()[:16]


@pytest.fixture
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that is made as the real one, and small."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, content in {**FILES, MANIFEST: SUMS}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    path = tmp_path_factory.mktemp("archive") / "program.tar.gz"
    path.write_bytes(made.getvalue())
    return path


def unpack(sh: Sh, archive: Path, times: int = 1, digest: str = DIGEST) -> list[int]:
    """Exit codes of so many at once."""
    words = sh.argv(service.unpack(str(sh.home / "state"), digest, b""))
    processes = []
    for _ in range(times):
        with archive.open("rb") as stdin:
            processes.append(subprocess.Popen(words, stdin=stdin, env=sh.environ))
    return [process.wait(120) for process in processes]


def list_runtimes(sh: Sh) -> tuple[str, ...]:
    found = parse_service_host(sh.run(service.service_host(str(sh.home / "state"))))
    assert isinstance(found, ServiceHost)
    return found.runtimes


def test_two_at_once_leave_one_whole_program(node_shell: Sh, archive: Path) -> None:
    """Guards two `up`s that no lease keeps apart: both succeed, nothing incomplete stays, and nothing else."""
    runtime = node_shell.home / "state" / "runtime"
    for _ in range(PAIRS):
        assert unpack(node_shell, archive, times=2) == [0, 0]
        assert [path.name for path in runtime.iterdir()] == [DIGEST]
        assert sum(path.is_file() for path in runtime.rglob("*")) == len(FILES) + 2
        runtime.rename(node_shell.home / f"before-{len(list(node_shell.home.iterdir()))}")
    assert list_runtimes(node_shell) == ()


@pytest.mark.parametrize("damage", ["emptied", "gone", "manifest emptied", "manifest shortened", "changed"])
def test_a_hollowed_folder_is_repaired(node_shell: Sh, archive: Path, damage: str) -> None:
    """Guards that a name alone never counts as the program, whatever a power cut has left of it."""
    assert unpack(node_shell, archive) == [0]
    folder = node_shell.home / "state" / "runtime" / DIGEST
    main, manifest = folder / "__main__.py", folder / MANIFEST
    (folder / "sparkwright" / "__pycache__").mkdir()  # what Python itself adds changes nothing
    assert list_runtimes(node_shell) == (DIGEST,)
    match damage:
        case "emptied":
            main.write_bytes(b"")
        case "gone":
            main.unlink()
        case "manifest emptied":
            manifest.write_bytes(b"")
        case "manifest shortened":
            manifest.write_bytes(b"".join(SUMS.splitlines(keepends=True)[:5]))
        case "changed":
            main.write_text("print(1)\n")
    (folder.parent / f".{DIGEST}.abcdef").mkdir()
    assert list_runtimes(node_shell) == ()
    assert unpack(node_shell, archive) == [0]
    assert list_runtimes(node_shell) == (DIGEST,)
    assert [path.name for path in folder.parent.iterdir()] == [DIGEST]


def test_an_archive_that_is_cut_off_counts_for_nothing(node_shell: Sh, archive: Path) -> None:
    """Guards a connection that breaks in the middle: nothing is left of it."""
    archive.write_bytes(archive.read_bytes()[:-300])
    assert unpack(node_shell, archive) != [0]
    assert list((node_shell.home / "state" / "runtime").iterdir()) == [] and list_runtimes(node_shell) == ()


def test_the_real_one_is_made_so(node_shell: Sh, archive: Path) -> None:
    """Guards that what `up` sends counts as whole on the node, under the name that it is asked for."""
    bundle = Bundle()
    archive.write_bytes(bundle.archive())
    assert unpack(node_shell, archive, digest=bundle.digest) == [0]
    assert list_runtimes(node_shell) == (bundle.digest,)


def start_program(sh: Sh, folder: Path) -> subprocess.CompletedProcess[str]:
    """A program of the folder, as a service starts it."""
    (sh.home / service.RESTORE).write_bytes(service.restore_script())
    words = service.restored_first(str(sh.home), str(folder), ("/bin/echo", "begun"))
    return subprocess.run(words, capture_output=True, text=True, env=sh.environ, timeout=120, check=True)


@pytest.mark.parametrize("damage", ["emptied", "all emptied", "gone"])
async def test_a_program_with_damaged_files_restores_them_as_it_starts(
    node_shell: Sh, archive: Path, damage: str
) -> None:
    """Guards heads after a power cut: nobody has to call `up` for a supervisor that its own files keep from running."""
    assert unpack(node_shell, archive) == [0]
    folder = node_shell.home / "state" / "runtime" / DIGEST
    assert (start_program(node_shell, folder).stdout, start_program(node_shell, folder).stderr) == ("begun\n", "")
    assert damaged_files(folder) == ()
    for name in (*FILES, MANIFEST) if damage == "all emptied" else ("__main__.py",):
        if damage == "gone":
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(b"")
    assert damaged_files(folder) == ((MANIFEST,) if damage == "all emptied" else ("__main__.py",))
    said = start_program(node_shell, folder)
    assert said.stdout == "begun\n" and "damaged, and are restored from its archive" in said.stderr
    assert list_runtimes(node_shell) == (DIGEST,) and damaged_files(folder) == ()
    (folder / "__main__.py").write_bytes(b"")
    assert await restore_files(node_shell.home, folder) and damaged_files(folder) == ()


async def test_a_program_whose_archive_is_damaged_too_says_what_to_do(node_shell: Sh, archive: Path) -> None:
    """Guards a disk that lost all: the program is begun, and the log names the command that helps."""
    assert unpack(node_shell, archive) == [0]
    folder = node_shell.home / "state" / "runtime" / DIGEST
    for name in ("__main__.py", service.ARCHIVE):
        (folder / name).write_bytes(b"")
    said = start_program(node_shell, folder)
    assert said.stdout == "begun\n" and "the same sparkwright up does" in said.stderr
    assert not await restore_files(node_shell.home, folder) and damaged_files(folder) == ("__main__.py",)


@pytest.mark.parametrize("script", [None, b"", b"if then\n"])
def test_a_program_starts_without_its_script(node_shell: Sh, archive: Path, script: bytes | None) -> None:
    """Guards against a damaged guard: the program is begun whatever became of the script before it."""
    assert unpack(node_shell, archive) == [0]
    folder = node_shell.home / "state" / "runtime" / DIGEST
    if script is not None:
        (node_shell.home / service.RESTORE).write_bytes(script)
    words = service.restored_first(str(node_shell.home), str(folder), ("/bin/echo", "begun"))
    done = subprocess.run(words, capture_output=True, text=True, env=node_shell.environ, timeout=120, check=True)
    assert done.stdout == "begun\n"
