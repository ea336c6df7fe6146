"""`check --fix` and `--undo` by the real command on a tree: real sh and files; id, sudo and sysctl are shims."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functional.command import UserShell
from functional.test_check_host import SMI, TREE

KBYTES = "proc/sys/vm/min_free_kbytes"
CONF = "etc/sysctl.d/90-sparkwright-vm-min-free-kbytes.conf"
NETPLAN = "etc/netplan/40-cx7.yaml"
REF = "hub/models--org--big/refs/main"
RECORD = "state/fixes.json"
CODES = {"MEM009", "NET011", "MODEL005"}
# It waits where a test wants to kill the call while the value is set and not yet known to be.
SYSCTL = """#!/bin/sh
set -- "${3%%=*}" "${3#*=}"
echo "$2" >"$SPARKWRIGHT_SYSROOT/proc/sys/$(echo "$1" | tr . /)"
[ ! -e "$SPARKWRIGHT_SYSROOT/wait" ] || exec sleep 900
"""
SUDO = """#!/bin/sh
# As the real one: without a word, and with an environment of its own.
[ "$1" = -n ] || exit 1
shift; echo "$*" >>@LOG@
exec env -i PATH="$PATH" "$@"
"""
REFUSING = "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n"


@pytest.fixture
def user_shell(tmp_path: Path) -> Iterator[UserShell]:
    """A node whose ssh user is not root and whose sudo wants no password. Its PATH has no other sudo."""
    made = UserShell(tmp_path)
    write_files(
        tmp_path / "root", {**TREE, NETPLAN: "network: {}\n", "sys/class/thermal/thermal_zone0/temp": "60000\n"}
    )
    (tmp_path / "root" / NETPLAN).chmod(0o644)
    write_files(tmp_path, {REF: "abc\n", "hub/models--org--big/snapshots/abc/config.json": "{}"})
    for name in set(os.listdir("/usr/bin")) - {"sudo"}:
        program(tmp_path, name).symlink_to(f"/usr/bin/{name}")
    shims = {"nvidia-smi": SMI, "sysctl": SYSCTL, "sudo": SUDO.replace("@LOG@", f"{tmp_path}/sudo.log")}
    for name, text in {**shims, "id": '#!/bin/sh\n[ "$1" = -u ] && echo 1000 || echo ai\n'}.items():
        write_shim(tmp_path, name, text)
    env = f"{{SPARKWRIGHT_SYSROOT: {tmp_path}/root, PATH: '{tmp_path}/bin', SPARKWRIGHT_LOCK_DIR: {tmp_path}}}"
    paths = f"{{state: {tmp_path}/state, hub: {tmp_path}/hub}}"
    (tmp_path / "cluster.yaml").write_text(f"nodes:\n  - {{name: a, ssh: local, env: {env}, paths: {paths}}}\n")
    yield made
    made.clean()


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def program(folder: Path, name: str) -> Path:
    (folder / "bin").mkdir(exist_ok=True)
    return folder / "bin" / name


def write_shim(folder: Path, name: str, text: str) -> None:
    program(folder, name).unlink(missing_ok=True)
    program(folder, name).write_text(text)
    program(folder, name).chmod(0o755)


def fixable_state(folder: Path) -> dict[str, str]:
    """All that a fix changes on this node."""
    conf = folder / "root" / CONF
    return {
        KBYTES: (folder / "root" / KBYTES).read_text(),
        NETPLAN: f"{(folder / 'root' / NETPLAN).stat().st_mode & 0o777:o}",
        REF: (folder / REF).read_text(),
        CONF: conf.read_text() if conf.exists() else "",
    }


BEFORE = {KBYTES: "67584\n", NETPLAN: "644", REF: "abc\n", CONF: ""}


def check_json(shell: UserShell, *words: str) -> tuple[int, dict[str, Any]]:
    code, out, err = shell.run("check", *words, "--json")
    assert out, err
    found: dict[str, Any] = json.loads(out)
    return code, found


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    return {one["code"]: one["outcome"] for one in found["changes"]}


def test_fixed_found_no_more_and_taken_back(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards the whole loop: three changes, root only where it is needed, none left to make, and all as it was."""
    code, found = check_json(user_shell, "--fix", "--yes")
    assert (code, outcomes(found)) == (1, dict.fromkeys(CODES, "done"))
    assert CODES.isdisjoint({one["code"] for one in found["findings"]})
    after = fixable_state(tmp_path)
    assert (after[KBYTES], after[NETPLAN], after[REF]) == ("3145728\n", "600", "abc")
    assert "vm.min_free_kbytes = 3145728\n" in after[CONF]
    assert (tmp_path / RECORD).stat().st_mode & 0o777 == 0o600
    assert "refs/main" not in (tmp_path / "sudo.log").read_text()
    log = (tmp_path / "state" / "audit.log").read_text()
    assert all(text in log for text in ("chmod 600", "set vm.min_free_kbytes = 3145728", "refs/main"))
    assert check_json(user_shell, "--fix", "--yes")[1]["changes"] == []
    code, found = check_json(user_shell, "--undo", "--yes")
    assert (code, outcomes(found)) == (0, dict.fromkeys(CODES, "done"))
    assert fixable_state(tmp_path) == BEFORE
    assert user_shell.run("check", "--undo", "--yes")[1] == "nothing is recorded that --fix has changed\n"


def test_dry_run_shows_the_commands_and_changes_nothing(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards what the user agrees to: the lines that would be typed, sudo where root is needed and only there."""
    _, out, _ = user_shell.run("check", "--fix", "--dry-run")
    lines = [line.strip() for line in out.splitlines()]
    assert "sudo sysctl -w vm.min_free_kbytes=3145728" in lines
    assert f"sudo chmod 600 /{NETPLAN}" in lines
    assert f"printf abc >{tmp_path}/{REF}" in lines
    assert fixable_state(tmp_path) == BEFORE
    assert not (tmp_path / "state").exists()


@pytest.mark.full
def test_only_what_is_named_is_changed(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards a user who wants one of them; and a sudo that mails to root: it is not tried where nothing needs it."""
    _, found = check_json(user_shell, "--fix", "--yes", "--only", "file002")
    assert outcomes(found) == {"MODEL005": "done"}
    assert not (tmp_path / "sudo.log").exists()
    _, found = check_json(user_shell, "--fix", "--yes", "--only", "net011")
    assert outcomes(found) == {"NET011": "done"}
    assert fixable_state(tmp_path) == {**BEFORE, NETPLAN: "600", REF: "abc"}


@pytest.mark.parametrize("sudo", [REFUSING, None])
def test_without_root_the_commands_are_for_the_user_to_type(
    user_shell: UserShell, tmp_path: Path, sudo: str | None
) -> None:
    """Guards that nothing is half done: what needs root is not begun, what needs none is made."""
    write_shim(tmp_path, "sudo", sudo or "")
    if not sudo:
        program(tmp_path, "sudo").unlink()
    _, out, _ = user_shell.run("check", "--fix", "--yes")
    why = "sudo is not installed there"
    said = " ".join(out.split())
    assert "not done from here, these need root: " in said and (sudo or f"{why}. By hand:" in said), out
    assert fixable_state(tmp_path) == {**BEFORE, REF: "abc"}
    code, out, _ = user_shell.run("check", "--fix", "--yes", "--only", "NET011")
    assert (code, f"by hand  NET011  a: /{NETPLAN}: mode 644 -> 600" in out) == (1, True)
    by_hand = {one["code"]: one["outcome"] for one in check_json(user_shell, "--fix", "--dry-run")[1]["changes"]}
    assert by_hand == {"MEM009": "by hand", "NET011": "by hand"}


def test_where_nobody_can_be_asked_nothing_is_done(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards scripts and cron jobs: without a terminal and --yes it is refused, with the way on."""
    for option in ("--fix", "--undo"):
        code, _, err = user_shell.run("check", option)
        assert (code, "--yes goes on without a question" in err) == (2, True)
    assert fixable_state(tmp_path) == BEFORE


def test_a_call_that_is_killed_in_between_can_be_taken_back(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards kill -9 while a value is set: the record was written first, and undo ends where all began."""
    (tmp_path / "root" / "wait").touch()
    process = user_shell.start("check", "--fix", "--yes")
    assert process.stderr
    for line in process.stderr:
        if "MEM009" in line:
            break
    while (tmp_path / "root" / KBYTES).read_text() != "3145728\n":
        assert process.poll() is None
    process.kill()
    process.communicate()
    (tmp_path / "root" / "wait").unlink()
    begun = {row["code"]: row["done"] for row in json.loads((tmp_path / RECORD).read_text())["changes"]}
    assert begun["MEM009"] is False
    code, found = check_json(user_shell, "--undo", "--yes", "--break-lease")
    assert (code, set(outcomes(found).values())) == (0, {"done"})
    assert fixable_state(tmp_path) == BEFORE


@pytest.mark.full
def test_what_somebody_set_since_is_left_to_him(user_shell: UserShell, tmp_path: Path) -> None:
    """Guards the owner's own value against our undo; the rest is taken back."""
    check_json(user_shell, "--fix", "--yes")
    (tmp_path / "root" / KBYTES).write_text("5000000\n")
    code, found = check_json(user_shell, "--undo", "--yes")
    assert (code, outcomes(found)) == (1, {"MEM009": "skipped", "NET011": "done", "MODEL005": "done"})
    assert fixable_state(tmp_path)[KBYTES] == "5000000\n"
