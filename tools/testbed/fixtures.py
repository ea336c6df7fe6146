"""The reports of a node's hardware: the shims' answers and the file trees, in the tools' own formats.

The values are this testbed's own. Formats follow `nvidia-smi` 580, iproute2's `rdma`, rdma-core's `ibv_devinfo`, and
Mellanox' `show_gids` and `ibdev2netdev` as they print on a GB10.
"""

import ipaddress
import json
from dataclasses import dataclass

from testbed import gpu_fixtures
from testbed.settings import FABRIC_B_DEVICE, FABRIC_DEVICE, NodeSpec

Files = dict[str, str]
GID_SLOTS = 16
KERNEL = "6.17.0-1014-nvidia"
ZERO_GID = ":".join(["0000"] * 8)


@dataclass(frozen=True, slots=True)
class FixturePort:
    """One RDMA device; on a GB10 each has one port."""

    device: str
    netdev: str
    ifindex: int
    guid: str
    address: str = ""  # a port without a cable has none

    @property
    def up(self) -> bool:
        return bool(self.address)

    @property
    def link_local(self) -> str:
        return "fe80:0000:0000:0000:" + self.guid

    @property
    def mapped(self) -> str:
        return ipaddress.IPv6Address(f"::ffff:{self.address}").exploded

    def gids(self) -> dict[int, tuple[str, str]]:
        """Index -> (GID, type) as the driver fills the table when the address comes after the link."""
        table = {0: (self.link_local, "v1"), 1: (self.link_local, "v2")}
        if self.up:
            table |= {2: (self.mapped, "v1"), 3: (self.mapped, "v2")}
        return table

    def drifted_gids(self) -> dict[int, tuple[str, str]]:
        """The GIDs after the interface has bounced: an empty slot, and IPv4's RoCE v2 entry no longer at 3."""
        if not self.up:
            return self.gids()
        pairs = ((self.link_local, "v1"), (self.link_local, "v2"), (self.mapped, "v1"))
        return dict(enumerate(pairs)) | {5: (self.mapped, "v2")}


def node_ports(spec: NodeSpec) -> tuple[FixturePort, ...]:
    def guid(port: int) -> str:
        return f"4abb:47ff:fe0{spec.index}:6a0{port}"

    return (
        FixturePort("rocep1s0f0", FABRIC_DEVICE, 3, guid(0), spec.fabric),
        FixturePort("rocep1s0f1", "enp1s0f1np1", 4, guid(1)),
        FixturePort("roceP2p1s0f0", FABRIC_B_DEVICE, 5, guid(4), spec.fabric_b),
        FixturePort("roceP2p1s0f1", "enP2p1s0f1np1", 6, guid(5)),
    )


def unplugged(port: FixturePort) -> FixturePort:
    return FixturePort(port.device, port.netdev, port.ifindex, port.guid)


def rdma_text(all_ports: tuple[FixturePort, ...], down_physical: str = "DISABLED") -> str:
    lines = []
    for port in all_ports:
        state, physical = ("ACTIVE", "LINK_UP") if port.up else ("DOWN", down_physical)
        lines.append(f"link {port.device}/1 state {state} physical_state {physical} netdev {port.netdev} \n")
    return "".join(lines)


def rdma_json(all_ports: tuple[FixturePort, ...], down_physical: str = "DISABLED") -> str:
    links = []
    for number, port in enumerate(all_ports):
        state, physical = ("ACTIVE", "LINK_UP") if port.up else ("DOWN", down_physical)
        link = {"ifindex": number, "ifname": port.device, "port": 1, "state": state, "physical_state": physical}
        links.append(link | {"netdev": port.netdev, "netdev_index": port.ifindex})
    return json.dumps(links, separators=(",", ":")) + "\n"


def ibdev2netdev_text(all_ports: tuple[FixturePort, ...]) -> str:
    return "".join(f"{p.device} port 1 ==> {p.netdev} ({'Up' if p.up else 'Down'})\n" for p in all_ports)


def show_gids_text(all_ports: tuple[FixturePort, ...], drifted: bool) -> str:
    lines = [
        "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n",
        "---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n",
    ]
    for port in all_ports:
        for index, (gid, version) in (port.drifted_gids() if drifted else port.gids()).items():
            ipv4 = f"{port.address}  " if gid != port.link_local else "\t"
            lines.append(f"{port.device}\t1\t{index}\t{gid}\t{ipv4}\t{version}\t{port.netdev}\n")
    return "".join(lines) + f"n_gids_found={len(lines) - 2}\n"


def ibv_devinfo_text(all_ports: tuple[FixturePort, ...]) -> str:
    return "\n".join(map(ibv_device, all_ports)) + "\n"


def ibv_device(port: FixturePort) -> str:
    guid = port.guid
    state, mtu = ("PORT_ACTIVE (4)", "4096 (5)") if port.up else ("PORT_DOWN (1)", "1024 (3)")
    device = [
        ("transport", "\t\t\tInfiniBand (0)"),
        ("fw_ver", "\t\t\t\t28.45.4028"),
        ("node_guid", f"\t\t\t{guid}"),
        ("sys_image_guid", f"\t\t\t{guid}"),
        ("vendor_id", "\t\t\t0x02c9"),
        ("vendor_part_id", "\t\t\t4129"),
        ("hw_ver", "\t\t\t\t0x0"),
        ("board_id", "\t\t\tNVD0000000087"),
        ("phys_port_cnt", "\t\t\t1"),
    ]
    details = [
        ("state", f"\t\t\t{state}"),
        ("max_mtu", "\t\t4096 (5)"),
        ("active_mtu", f"\t\t{mtu}"),
        ("sm_lid", "\t\t\t0"),
        ("port_lid", "\t\t0"),
        ("port_lmc", "\t\t0x00"),
        ("link_layer", "\t\tEthernet"),
    ]
    head = "".join(f"\t{name}:{value}\n" for name, value in device)
    return f"hca_id:\t{port.device}\n{head}\t\tport:\t1\n" + "".join(f"\t\t\t{n}:{v}\n" for n, v in details)


def infiniband_tree(all_ports: tuple[FixturePort, ...], drifted: bool) -> Files:
    """/sys/class/infiniband. The kernel refuses to read the attributes of an empty slot; here they are not there."""
    files: Files = {}
    for port in all_ports:
        device = f"sys/class/infiniband/{port.device}"
        files |= {
            f"{device}/fw_ver": "28.45.4028\n",
            f"{device}/hca_type": "MT4129\n",
            f"{device}/board_id": "NVD0000000087\n",
            f"{device}/node_type": "1: CA\n",
            f"{device}/node_guid": f"{port.guid}\n",
            f"{device}/device/net/{port.netdev}/ifindex": f"{port.ifindex}\n",
        }
        files |= {f"{device}/ports/1/{name}": text for name, text in port_files(port, drifted).items()}
    return files


def port_files(port: FixturePort, drifted: bool) -> Files:
    files = {
        "state": "4: ACTIVE\n" if port.up else "1: DOWN\n",
        "phys_state": "5: LinkUp\n" if port.up else "3: Disabled\n",
        "link_layer": "Ethernet\n",
        "rate": "200 Gb/sec (2X NDR)\n" if port.up else "40 Gb/sec (4X QDR)\n",
        "counters/port_xmit_data": "0\n",
        "counters/port_rcv_data": "0\n",
    }
    table = port.drifted_gids() if drifted else port.gids()
    for index in range(GID_SLOTS):
        gid, version = table.get(index, (ZERO_GID, ""))
        files[f"gids/{index}"] = gid + "\n"
        if version:
            files[f"gid_attrs/types/{index}"] = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}[version] + "\n"
            files[f"gid_attrs/ndevs/{index}"] = port.netdev + "\n"
    return files


def shim_files(spec: NodeSpec) -> Files:
    """Paths under /opt/shims."""
    now = node_ports(spec)
    dark = tuple(unplugged(port) for port in now)
    half = (now[0], now[1], unplugged(now[2]), now[3])
    files = gpu_fixtures.shim_files(spec.index)
    for variant, state in {"default": now, "down": dark, "half": half}.items():
        physical = "LINK_UP" if variant == "half" else "DISABLED"
        files |= {
            f"rdma/{variant}.txt": rdma_text(state, physical),
            f"ibdev2netdev/{variant}.txt": ibdev2netdev_text(state),
        }
        for arguments in ("-j_link", "-j_link_show", "link_-j", "-json_link"):
            files[f"rdma/{variant}@{arguments}.txt"] = rdma_json(state, physical)
        files[f"show_gids/{variant}.txt"] = show_gids_text(state, drifted=False)
        files[f"ibv_devinfo/{variant}.txt"] = ibv_devinfo_text(state)
    files["show_gids/drifted.txt"] = show_gids_text(now, drifted=True)
    files |= {"rdma/none.txt": "", "rdma/none@-j_link.txt": "[ ]\n", "ibdev2netdev/none.txt": ""}
    files |= {"ibv_devinfo/none.err": "No IB devices found\n", "ibv_devinfo/none.exit": "255"}
    files |= {"show_gids/none.txt": "", "lspci/default.txt": gpu_fixtures.LSPCI}
    return files | {"uname/gb10@-m.txt": "aarch64\n", "uname/gb10@-r.txt": KERNEL + "\n", "uname/gb10.txt": "Linux\n"}


def sysroot_files(spec: NodeSpec) -> dict[str, Files]:
    """Variant -> paths under SPARKWRIGHT_SYSROOT; each variant but `default` is laid over it."""
    now = node_ports(spec)
    default = infiniband_tree(now, drifted=False) | gpu_fixtures.host_files(spec.index)
    return {
        "default": default,
        "drifted-gids": infiniband_tree(now, drifted=True),
        "links-down": infiniband_tree(tuple(unplugged(port) for port in now), drifted=False),
        **{name: {"proc/meminfo": text} for name, text in gpu_fixtures.meminfo_variants(spec.index).items()},
    }
