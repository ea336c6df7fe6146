"""Our scripts run by this machine's own sh, on a fixture tree and on the real machine."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from functional.facts.shell import BARE, SHELLS, path_with_tool, read_fact, run, write_files
from sparkwright.domain.command import Command
from sparkwright.domain.facts import Disk, Docker, DockerTrouble, Identity, Kernel, Memory, Unknown
from sparkwright.domain.units import MIB
from sparkwright.facts.disk import disks_fact
from unit.facts.subjects import ALL_FACTS

NOBODY = 65534


@pytest.mark.parametrize("name", ["memory", "kernel", "identity", "listeners", "interfaces", "disks", "rdma"])
def test_real_command_is_understood_on_this_machine(name: str) -> None:
    """Guards that what real tools print here today is read, without root and with a bare PATH."""
    if name == "interfaces" and not shutil.which("ip", path=BARE + ":/usr/sbin:/sbin"):
        pytest.skip("no iproute2 on this machine")
    found = read_fact(ALL_FACTS[name])
    assert not isinstance(found, Unknown), found


def test_real_facts_agree_with_this_machine() -> None:
    """Guards that the figures are this machine's and not merely well formed."""
    memory, kernel, who = (read_fact(ALL_FACTS[name]) for name in ("memory", "kernel", "identity"))
    assert isinstance(memory, Memory)
    assert isinstance(kernel, Kernel)
    assert isinstance(who, Identity)
    assert 0 < memory.free <= memory.total == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert kernel.release == os.uname().release
    assert (who.hostname, who.arch) == (os.uname().nodename, os.uname().machine)


def test_loopback_is_found_on_this_machine() -> None:
    """Guards that addresses come with their prefix from the real `ip`."""
    if not shutil.which("ip", path=BARE + ":/usr/sbin:/sbin"):
        pytest.skip("no iproute2 on this machine")
    found = read_fact(ALL_FACTS["interfaces"])
    assert isinstance(found, tuple)
    assert ("127.0.0.1", 8) in [(a.ipv4, a.prefix) for link in found for a in link.addresses]


def test_missing_folder_is_named_with_its_first_parent(tmp_path: Path) -> None:
    """Guards that space is known before the folder is there, with ~ as the node's home, and in the order asked."""
    paths = (str(tmp_path / "not" / "there yet"), "~/models", "/", "nowhere", str(tmp_path))
    found = read_fact(disks_fact(paths), HOME=str(tmp_path))
    assert isinstance(found, tuple)
    assert [disk.path for disk in found] == list(paths)
    assert all(isinstance(disk, Disk) and disk.total > 0 for disk in found)
    assert len({disk.total for disk in (found[0], found[1], found[4])}) == 1


def test_fixture_tree_replaces_the_hardware(tmp_path: Path) -> None:
    """Guards that tests and the demo can put a tree in place of /proc and /sys, and that the serial is left there."""
    release = 'DGX_PLATFORM="GX10"\nDGX_SERIAL_NUMBER="S3CR3T"\nDGX_OTA_VERSION="7.5.0"\nDGX_OTA_VERSION="7.6.0"'
    write_files(
        tmp_path, {"etc/dgx-release": release, "sys/class/dmi/id/product_name": "GX10\n", "etc/machine-id": "abc\n"}
    )
    done = run(ALL_FACTS["identity"].command, SPARKWRIGHT_SYSROOT=str(tmp_path))
    who = ALL_FACTS["identity"].read(done)
    assert isinstance(who, Identity)
    assert (who.product, who.dgx_platform, who.ota_version, who.machine_id) == ("GX10", "GX10", "7.6.0", "abc")
    assert "S3CR3T" not in done.stdout + done.stderr
    assert who.hostname == os.uname().nodename
    assert isinstance(read_fact(ALL_FACTS["memory"], SPARKWRIGHT_SYSROOT=str(tmp_path)), Unknown)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("rdma", ["json", "text", "absent"])
def test_gid_tables_are_read_from_sysfs(tmp_path: Path, rdma: str, shell: str) -> None:
    """Guards that one pass over sysfs gives state, netdev and the GIDs at their own indices, in every common sh."""
    port = "root/sys/class/infiniband/rocep1s0f0/ports/1"
    zero, v4 = ":".join(["0000"] * 8), "0000:0000:0000:0000:0000:ffff:0a28:0001"
    files = {f"{port}/gids/{n}": zero + "\n" for n in range(32)}
    files |= {f"{port}/gids/5": v4 + "\n", f"{port}/gid_attrs/types/5": "RoCE v2\n"}
    files |= {f"{port}/gid_attrs/ndevs/5": "enp1s0f0np0\n", f"{port}/state": "4: ACTIVE\n"}
    write_files(tmp_path, files | {f"{port}/phys_state": "5: LinkUp\n"})
    text = "link rocep1s0f0/1 state ACTIVE physical_state LINK_UP netdev enp1s0f0np0"
    links = '[{"ifname":"rocep1s0f0","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"enp1s0f0np0"}]'
    answer = {"json": f"echo '{links}'", "text": f'[ "$1" != -j ] || exit 1\necho "{text}"', "absent": "exit 127"}
    path = path_with_tool(tmp_path / "bin", "rdma", answer[rdma])
    fact = ALL_FACTS["rdma"]
    words = (shell, "sh") if shell == "busybox" else (shell,)
    command = Command((*words, *fact.command.argv[1:]))
    (found,) = fact.read(run(command, SPARKWRIGHT_SYSROOT=str(tmp_path / "root"), PATH=path))
    assert (found.state, found.physical_state, found.netdev) == ("ACTIVE", "LINK_UP", "enp1s0f0np0")
    assert [(g.index, g.version, g.ipv4, g.netdev) for g in found.gids] == [(5, "v2", "10.40.0.1", "enp1s0f0np0")]


def test_listeners_come_from_the_kernel_where_ss_is_missing(tmp_path: Path) -> None:
    """Guards that a taken port is seen on a node without ss."""
    line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4021 1\n"
    write_files(
        tmp_path, {"root/proc/net/tcp": "  sl  local_address rem_address   st\n" + line, "root/proc/net/tcp6": ""}
    )
    path = path_with_tool(tmp_path / "bin", "ss", "exit 127")
    found = read_fact(ALL_FACTS["listeners"], PATH=path, SPARKWRIGHT_SYSROOT=str(tmp_path / "root"))
    assert isinstance(found, tuple)
    assert [(entry.address, entry.port) for entry in found] == [("127.0.0.1", 8080)]


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        ('echo \'{"ServerVersion":"28.1"}\'', DockerTrouble.NONE),
        ("echo 'kann nicht verbinden' >&2; exit 1", DockerTrouble.NOT_RUNNING),
        ('echo \'{"ServerVersion":"","ServerErrors":["no"]}\'', DockerTrouble.NOT_RUNNING),
    ],
)
def test_docker_is_judged_without_its_words(tmp_path: Path, answer: str, trouble: DockerTrouble) -> None:
    """Guards that what is wrong with Docker is read from its JSON and its socket, in any language."""
    script = f'case "$1" in info) {answer} ;; *) echo unix://{tmp_path}/none.sock ;; esac'
    found = read_fact(ALL_FACTS["docker"], PATH=path_with_tool(tmp_path / "bin", "docker", script))
    assert isinstance(found, Docker)
    assert found.trouble == trouble


def test_socket_without_write_permission_is_a_matter_of_rights() -> None:
    """Guards that a user outside the docker group is named; root, who may write everywhere, asks as nobody."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        write_files(folder, {"docker.sock": ""})
        (folder / "docker.sock").chmod(0o444)
        script = f'case "$1" in info) exit 1 ;; *) echo unix://{folder}/docker.sock ;; esac'
        fact, path = ALL_FACTS["docker"], path_with_tool(folder / "bin", "docker", script)
        found = fact.read(run(fact.command, user=NOBODY if os.geteuid() == 0 else None, PATH=path))
    assert isinstance(found, Docker)
    assert found.trouble == DockerTrouble.NO_RIGHTS


def test_failed_nvidia_smi_keeps_the_loaded_module(tmp_path: Path) -> None:
    """Guards that a GPU lost to a torn update still shows which driver is loaded."""
    write_files(
        tmp_path, {"root/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open  580.173.02  Release Build\n"}
    )
    path = path_with_tool(tmp_path / "bin", "nvidia-smi", 'echo "NVIDIA-SMI has failed because it could not"')
    env = {"PATH": path, "SPARKWRIGHT_SYSROOT": str(tmp_path / "root")}
    assert getattr(read_fact(ALL_FACTS["driver"], **env), "version", None) == "580.173.02"
    assert isinstance(read_fact(ALL_FACTS["gpus"], **env), Unknown)
    assert isinstance(read_fact(ALL_FACTS["gpu_processes"], **env), Unknown)


@pytest.mark.parametrize("knows", [True, False])
def test_an_old_driver_is_asked_again_without_what_it_does_not_know(tmp_path: Path, knows: bool) -> None:
    """Guards that one name that nvidia-smi does not know, for which it answers nothing, hides no GPU."""
    script = """case "$1" in
        *memory.reserved*) KNOWS || { echo 'Field "memory.reserved" is not a valid field to query.'; exit 2; } ;;
        esac
        echo "${1#--query-gpu=}"
        echo "NVIDIA RTX A6000, 470.82, 8.6, 49140 MiB, 33, 21.50 W, 210 MHz, 0 %$(KNOWS && echo ', 458 MiB')"
        """
    path = path_with_tool(tmp_path / "bin", "nvidia-smi", script.replace("KNOWS", "true" if knows else "false"))
    found = read_fact(ALL_FACTS["gpus"], PATH=path)
    assert isinstance(found, tuple)
    (one,) = found
    assert (one.name, one.memory_total, one.sm_clock_mhz) == ("NVIDIA RTX A6000", 49140 * MIB, 210.0)
    unknown = Unknown("", "nvidia-smi does not report memory.reserved")
    assert one.memory_reserved == (458 * MIB if knows else unknown)
