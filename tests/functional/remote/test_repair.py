"""The settings that `check --fix` sets and takes back, run by this machine's own sh on a tree; sysctl only takes
notes."""

import subprocess
from pathlib import Path

import pytest

from functional import netns
from sparkwright.domain.command import Command
from sparkwright.remote import repair

NAME = "vm.min_free_kbytes"
FILE = "etc/sysctl.d/90-sparkwright-vm-min-free-kbytes.conf"


@pytest.fixture
def node_tree(tmp_path: Path) -> Path:
    """A root folder, and next to it a sysctl that writes down how it was called."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sysctl").write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/called\n')
    (tmp_path / "bin" / "sysctl").chmod(0o755)
    (tmp_path / "root").mkdir()
    return tmp_path


def run(tree: Path, command: Command) -> str:
    env = {"PATH": f"{tree}/bin:/usr/bin:/bin", "SPARKWRIGHT_SYSROOT": f"{tree}/root"}
    done = subprocess.run(command.argv, env=env, check=True, timeout=60, stdin=subprocess.DEVNULL, capture_output=True)
    return done.stdout.decode().strip()


def test_a_setting_holds_now_and_at_each_boot_and_goes_without_trace(node_tree: Path) -> None:
    """Guards that the file reports what is set, and that taking it back leaves value and folder as they were."""
    run(node_tree, repair.set_sysctl(NAME, 3145728))
    assert "vm.min_free_kbytes = 3145728\n" in (node_tree / "root" / FILE).read_text()
    run(node_tree, repair.restore_sysctl(NAME, 67584))
    assert list((node_tree / "root" / "etc" / "sysctl.d").iterdir()) == []
    assert (node_tree / "called").read_text() == "-q -w vm.min_free_kbytes=3145728\n-q -w vm.min_free_kbytes=67584\n"


def test_a_file_that_was_there_comes_back(node_tree: Path) -> None:
    """Guards that an earlier setting of the same name is restored and not removed."""
    (node_tree / "root" / FILE).parent.mkdir(parents=True)
    (node_tree / "root" / FILE).write_text("vm.min_free_kbytes = 500000\n")
    run(node_tree, repair.set_sysctl(NAME, 3145728))
    run(node_tree, repair.restore_sysctl(NAME, 500000))
    assert (node_tree / "root" / FILE).read_text() == "vm.min_free_kbytes = 500000\n"
    assert len(list((node_tree / "root" / "etc" / "sysctl.d").iterdir())) == 1


def test_a_value_that_the_kernel_refuses_is_reported(node_tree: Path) -> None:
    """Guards that a setting that did not take is no success, and is not tried again at the next boot."""
    (node_tree / "bin" / "sysctl").write_text("#!/bin/sh\nexit 255\n")
    with pytest.raises(subprocess.CalledProcessError):
        run(node_tree, repair.set_sysctl(NAME, -1))
    assert not (node_tree / "root" / FILE).exists()


@pytest.mark.skipif(netns.MISSING, reason="hardware: network namespaces need root and iproute2")
def test_a_real_interface_takes_the_mtu_and_gives_it_back() -> None:
    """Guards the check along with the change: what the kernel's own `ip` reports is what the fix sets, and then what
    was."""
    fix = repair.mtu_fix("a", "fab0", 4000, 1500)

    def asked(command: Command) -> str:
        words = ("ip", "netns", "exec", namespace, *command.argv)
        return subprocess.run(words, check=True, timeout=60, capture_output=True, text=True).stdout.strip()

    with netns.two_nodes("fx", ("10.99.7.1", "10.99.7.2")) as (namespace, _):
        assert asked(fix.look) == "1500"
        asked(fix.do[0])
        assert asked(fix.look) == fix.sets == "4000"
        asked(fix.undo[0])
        assert asked(fix.look) == "1500"


def test_looks_report_what_is_set(node_tree: Path) -> None:
    """Guards that each look prints `sets` exactly when the change is there, down to a newline in a file."""
    file, ref = node_tree / "root" / "40 cx7.yaml", node_tree / "hub" / "models--org--big" / "refs" / "main"
    ref.parent.mkdir(parents=True)
    ref.write_text("abc\n")
    file.write_text("")
    file.chmod(0o644)
    for fix in (
        repair.mode_fix("a", "/40 cx7.yaml", "600", "644"),
        repair.ref_fix("a", f"{node_tree}/hub", "models--org--big", "abc\n"),
    ):
        before = run(node_tree, fix.look)
        run(node_tree, fix.do[0])
        assert run(node_tree, fix.look) == fix.sets != before
        run(node_tree, fix.undo[0])
        assert run(node_tree, fix.look) == before
    assert ref.read_text() == "abc\n"
