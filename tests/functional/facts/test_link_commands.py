"""Our scripts about the link, containers and stores, run by this machine's own sh on fixture trees."""

import os
from pathlib import Path

import pytest

from functional.facts.shell import SHELLS, path_with_tool, read_fact, run, write_files
from sparkwright.domain.command import Command
from sparkwright.domain.fabric_facts import Containers, Network, Nic, PciFunction, Ref, Settings
from sparkwright.domain.facts import Unknown
from sparkwright.facts.disk import model_stores
from sparkwright.remote import repair
from unit.facts.subjects import ALL_FACTS


@pytest.mark.parametrize("name", ["nic", "network", "settings", "containers", "stores"])
def test_real_command_is_understood_on_this_machine(name: str) -> None:
    """Guards that what this machine reports without root and with a bare PATH is an answer."""
    assert not isinstance(read_fact(ALL_FACTS[name]), Unknown)


@pytest.mark.parametrize("shell", SHELLS)
def test_nic_is_found_by_vendor_and_class(tmp_path: Path, shell: str) -> None:
    """Guards that only network functions of Mellanox count, and that marker and device nodes are seen, in every sh."""
    bus = "sys/bus/pci/devices"
    write_files(
        tmp_path,
        {
            f"{bus}/0000:01:00.0/vendor": "0x15b3\n",
            f"{bus}/0000:01:00.0/class": "0x020000\n",
            f"{bus}/0000:01:00.0/current_link_speed": "32.0 GT/s PCIe\n",
            f"{bus}/0000:01:00.0/current_link_width": "4\n",
            f"{bus}/0000:02:00.0/vendor": "0x15b3\n",
            f"{bus}/0000:02:00.0/class": "0x080100\n",
            f"{bus}/0007:01:00.0/vendor": "0x10ec\n",
            f"{bus}/0007:01:00.0/class": "0x020000\n",
            "sys/class/infiniband/rocep1s0f0/fw_ver": "28.45.4028\n",
            "sys/class/infiniband/rocep1s0f0/ports/1/rate": "200 Gb/sec (2X NDR)\n",
            "sys/class/net/bond0/bonding/slaves": "a b\n",
            "dev/infiniband/uverbs0": "",
            "etc/nvidia/cx7-hotplug-enabled": "",
        },
    )
    command = ALL_FACTS["nic"].command
    words = (shell, "sh") if shell == "busybox" else (shell,)
    found = ALL_FACTS["nic"].read(run(Command((*words, *command.argv[1:])), SPARKWRIGHT_SYSROOT=str(tmp_path)))
    assert isinstance(found, Nic)
    assert found.functions == (PciFunction("0000:01:00.0", 32.0, 4),)
    assert (found.armed, found.verbs, found.bonds) == (True, ("uverbs0",), {"bond0": ("a", "b")})
    assert [(d.name, d.firmware, d.rate_gbit) for d in found.devices] == [("rocep1s0f0", "28.45.4028", 200.0)]


def test_a_tree_without_a_bus_has_nothing_of_it(tmp_path: Path) -> None:
    """Guards that a fixture tree with ports and no bus is not taken for a machine whose NIC is gone."""
    write_files(tmp_path, {"sys/class/infiniband/rocep1s0f0/fw_ver": "28.45.4028\n"})
    found = read_fact(ALL_FACTS["nic"], SPARKWRIGHT_SYSROOT=str(tmp_path))
    assert isinstance(found, Nic)
    assert isinstance(found.functions, Unknown)
    assert isinstance(found.verbs, Unknown)


def test_files_of_the_network_are_read_below_the_tree(tmp_path: Path) -> None:
    """Guards netplan's modes under their real names, and that an active ufw without rights has unknown rules."""
    root = tmp_path / "root"
    write_files(root, {"etc/netplan/40-cx7.yaml": "network:\n", "etc/ufw/ufw.conf": "ENABLED=yes\n"})
    (root / "etc/netplan/40-cx7.yaml").chmod(0o640)
    path = path_with_tool(tmp_path / "bin", "sudo", "exit 1")
    path_with_tool(tmp_path / "bin", "ufw", "exit 1")
    path_with_tool(tmp_path / "bin", "nmcli", NMCLI)
    found = read_fact(ALL_FACTS["network"], SPARKWRIGHT_SYSROOT=str(root), PATH=path)
    assert isinstance(found, Network)
    assert found.netplan == {"/etc/netplan/40-cx7.yaml": "640"}
    assert found.firewall
    assert isinstance(found.firewall.allows, Unknown)
    assert [(p.name, p.interface, p.ipv4) for p in found.profiles] == [("net plan: one", "enp1s0f0np0", "link-local")]


NMCLI = """case "$*" in
*--active*) echo 0a1b-2c3d:enp1s0f0np0; echo 4e5f: ;;
*) printf 'net plan: one\\nlink-local\\n' ;;
esac
"""


def test_settings_are_read_where_they_are(tmp_path: Path) -> None:
    """Guards that session, system and user files are distinguished, and that no password and no other variable
    comes."""
    home, root = tmp_path / "home", tmp_path / "root"
    proxy = "http_proxy=http://me:S3CR3T@proxy:3128\n"
    write_files(root, {"etc/environment": f"NCCL_NET=Socket\nAPI_KEY=S3CR3T\n{proxy}"})
    write_files(
        home, {".bashrc": "export GLOO_SOCKET_IFNAME=lo\n", ".ssh/config": "Host *\n  StrictHostKeyChecking no\n"}
    )
    write_files(home, {".cache/huggingface/token": "S3CR3T"})
    (home / ".cache/huggingface/token").chmod(0o644)
    write_files(root, {"usr/local/lib/libnccl.so.2.30.4": ""})
    done = run(ALL_FACTS["settings"].command, HOME=str(home), SPARKWRIGHT_SYSROOT=str(root), NCCL_DEBUG="INFO")
    found = ALL_FACTS["settings"].read(done)
    assert "S3CR3T" not in done.stdout + done.stderr
    assert isinstance(found, Settings)
    told = [(s.where, s.name, s.value) for s in (*found.communication, *found.proxies)]
    assert told == [
        ("session", "NCCL_DEBUG", "INFO"),
        ("/etc/environment", "NCCL_NET", "Socket"),
        (f"{home}/.bashrc", "GLOO_SOCKET_IFNAME", "lo"),
        ("/etc/environment", "http_proxy", "http://proxy:3128"),
    ]
    assert found.nccl == ("/usr/local/lib/libnccl.so.2.30.4",)
    assert (found.token_mode, found.lax_ssh) == ("644", (f"{home}/.ssh/config",))


def test_containers_are_asked_in_one_call_each(tmp_path: Path) -> None:
    """Guards that an empty daemon is no error, and that the answer of a full one is found."""
    script = """case "$1 $2" in
"ps -aq") echo c1 ;;
"inspect --format") echo '{"name":"/a","image":"i","running":true,"ours":"","path":"p","args":[]}' ;;
"image ls") exit 0 ;;
*) exit 1 ;;
esac
"""
    found = read_fact(ALL_FACTS["containers"], PATH=path_with_tool(tmp_path / "bin", "docker", script))
    assert isinstance(found, Containers)
    assert [(c.name, c.command) for c in found.containers] == [("a", "p")]
    assert found.images == ()


def test_stores_are_looked_into(tmp_path: Path) -> None:
    """Guards that refs with a newline, lost snapshots, unfinished downloads and foreign files are seen."""
    entry = tmp_path / "hub" / "models--org--big"
    write_files(entry, {"refs/main": "abc\n", "snapshots/abc/config.json": "{}", "blobs/0a.incomplete": "12345"})
    write_files(tmp_path / "hub" / "models--org--lost", {"refs/main": "def"})
    if os.geteuid() == 0:
        os.chown(entry / "blobs", 65534, 65534)
    (found,) = ask_stores(str(tmp_path / "hub"), str(tmp_path / "nowhere"))
    assert found.fs
    assert found.partial == {"models--org--big/blobs/0a.incomplete": 5}
    assert found.refs == (Ref("models--org--big", "abc\n", True), Ref("models--org--lost", "def", False))
    assert bool(found.foreign) == (os.geteuid() == 0)


def ask_stores(*paths: str) -> tuple:  # type: ignore[type-arg]
    found = read_fact(model_stores(paths))
    assert isinstance(found, tuple)
    return found


def test_a_ref_is_fixed_and_comes_back(tmp_path: Path) -> None:
    """Guards that the repair writes exactly what it states, in the user's home, and that its undo restores the
    bytes."""
    write_files(tmp_path / "hub" / "models--org--big", {"refs/main": "abc\n"})
    file = tmp_path / "hub" / "models--org--big" / "refs" / "main"
    for text in ("abc", "abc\n"):
        assert run(repair.write_ref("~/hub", "models--org--big", text), HOME=str(tmp_path)).ok
        assert file.read_text() == text


def test_a_mode_is_set_and_comes_back(tmp_path: Path) -> None:
    """Guards the repair of a file's mode and its undo."""
    write_files(tmp_path, {"40 cx7.yaml": ""})
    for mode in ("600", "644"):
        assert run(repair.set_mode(str(tmp_path / "40 cx7.yaml"), mode)).ok
        assert oct((tmp_path / "40 cx7.yaml").stat().st_mode)[-3:] == mode
