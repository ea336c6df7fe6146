"""Any values of the facts about a node's system, for the test that no rule raises."""

from typing import Any

from hypothesis import strategies as st

from sparkwright.domain.facts import Kernel
from sparkwright.domain.host_facts import (
    Activity,
    Board,
    KernelLog,
    KernelNote,
    Library,
    Package,
    Process,
    Times,
    Unit,
    Upkeep,
)
from unit.checks.host_cases import ENOMEM, GSP, KILLED, OVERRIDE, PACKAGES, XID, XID_43
from unit.checks.samples import ODD

_LINES = st.sampled_from([XID, XID_43, GSP, ENOMEM, KILLED, "Xid (): 99999", "Oops", ""]) | st.text(max_size=20)
_SECONDS = st.none() | st.floats(0, 9e9)
_NUMBER = st.just(ODD) | st.integers(-9, 1 << 40)
_SWITCH = st.sampled_from([ODD, True, False])
_VERSIONS = st.sampled_from(["", "-", "1:580.142-0", "580.142", "x"])
_UNITS = st.sampled_from(["sleep.target", "display-manager.service", "earlyoom.service", "apport.service", "x"])
_SYSCTLS = st.sampled_from(["vm.min_free_kbytes", "vm.overcommit_memory", "kernel.core_pattern"])

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "kernel": st.builds(Kernel, st.sampled_from(["", "7.0.0-1019-nvidia", "x"]), st.text(max_size=9), st.just("")),
    "kernel_log": st.builds(
        KernelLog, st.integers(0, 9), st.lists(st.builds(KernelNote, _LINES, st.integers(0, 9), _SECONDS)).map(tuple)
    ),
    "packages": st.lists(
        st.builds(Package, st.sampled_from([p.name for p in PACKAGES]), _VERSIONS, st.booleans()), max_size=6
    ).map(tuple),
    "activity": st.builds(
        Activity,
        _NUMBER,
        _NUMBER,
        st.just(ODD) | st.floats(0, 100),
        oom_kills=_NUMBER,
        processes=st.sampled_from([ODD, (), (Process(1, "", 9**12),)]),
    ),
    "times": st.builds(
        Times,
        st.just(ODD) | st.floats(0, 9e9),
        _SECONDS.map(lambda s: ODD if s is None else s),
        _SWITCH,
        _SWITCH,
        _SWITCH,
    ),
    "upkeep": st.builds(
        Upkeep,
        sysctls=st.dictionaries(_SYSCTLS, st.sampled_from(["", "0", "2", "x", "9" * 30])),
        units=st.dictionaries(_UNITS, st.builds(Unit, _UNITS, st.just("loaded"), st.sampled_from(["active", ""]))),
        memlock=st.none() | _NUMBER,
        reboot_needed=st.booleans(),
        grub_timeout=_NUMBER,
        wifi=st.sampled_from(["", "wlan0"]),
        power_save=_SWITCH,
    ),
    "board": st.builds(
        Board,
        bios=st.sampled_from(["", "1"]),
        zones=st.dictionaries(st.sampled_from(["acpitz", "x"]), st.floats(-99, 999)),
        nvidia=st.sampled_from([ODD, {}, {"a": "10de:2e12"}]),
        devices=st.sampled_from([ODD, (), ("nvidiactl",)]),
        libcuda=st.sampled_from([ODD, Library("", 0), Library("/x.so.1.2", 9, "1.2")]),
        module=st.sampled_from([ODD, "1.2"]),
        drm=st.sampled_from([(), (OVERRIDE,), ("",)]),
        modeset=_SWITCH,
    ),
}
