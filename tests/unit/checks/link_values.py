"""Odd facts of the link, containers and stores, to be mixed at random: nothing of them may make a rule raise."""

from typing import Any

from hypothesis import strategies as st

from sparkwright.domain.fabric_facts import (
    Container,
    Containers,
    EnvironmentSetting,
    Firewall,
    Image,
    Network,
    Nic,
    PciFunction,
    Profile,
    RdmaDevice,
    Ref,
    Route,
    Settings,
    Store,
)
from sparkwright.domain.facts import Address, Docker, Gid, Interface, Listener, RdmaPort
from unit.checks.samples import NIC, ODD

WORD = st.sampled_from(["", "::", "10.40.0.1", "enp1s0f0np0", "enP2p1s0f0np0", "rocep1s0f0", "1.x", "9" * 40, "vllm"])
NUMBER = st.sampled_from([0, 1, 1500, 9000, 10**18])
ADDRESS = st.builds(Address, WORD, st.sampled_from([-1, 0, 24, 32, 99]))
INTERFACE = st.builds(Interface, WORD, st.booleans(), NUMBER, st.tuples(ADDRESS), NUMBER | st.just(ODD))
GID = st.builds(Gid, NUMBER, WORD, st.sampled_from(["", "v1", "v2"]), WORD)
PORT = st.builds(RdmaPort, WORD, NUMBER, st.sampled_from(["ACTIVE", "DOWN", ""]), WORD, WORD, st.tuples(GID))
SETTING = st.builds(
    EnvironmentSetting,
    WORD | st.just("session"),
    st.sampled_from(["NCCL_IB_GID_INDEX", "NCCL_IB_HCA", "GLOO_SOCKET_IFNAME", "http_proxy", "no_proxy", ""]),
    WORD | st.sampled_from(["3", "-1", "^", "=", "a,,b", "10.0.0.0/8", "*"]),
)
CONTAINER = st.builds(Container, WORD, WORD, st.booleans(), WORD, st.booleans(), st.booleans(), WORD, WORD)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "interfaces": st.tuples(INTERFACE, INTERFACE),
    "rdma": st.tuples(PORT, PORT),
    "nic": st.builds(
        Nic,
        st.just(ODD) | st.tuples(st.builds(PciFunction, WORD, st.floats(0, 64), NUMBER)),
        st.tuples(st.builds(RdmaDevice, WORD, WORD, st.none() | st.floats(0, 900), st.just({"link_downed": 10**9}))),
        st.booleans(),
        st.sampled_from([ODD, ()]),
        st.dictionaries(WORD, st.tuples(WORD), max_size=2),
    )
    | st.just(NIC),
    "network": st.builds(
        Network,
        st.tuples(st.builds(Route, WORD | st.just("default"), WORD, WORD)),
        st.tuples(st.builds(Profile, WORD, WORD, st.sampled_from(["", "auto", "link-local"]))),
        st.dictionaries(WORD, st.sampled_from(["", "600", "644", "0"]), max_size=1),
        st.sampled_from([None, Firewall("ufw", ODD), Firewall("", ())]),
    ),
    "settings": st.builds(
        Settings, st.tuples(SETTING), st.tuples(SETTING, SETTING), st.tuples(WORD), WORD, WORD, st.tuples(WORD)
    ),
    "containers": st.builds(
        Containers,
        st.tuples(CONTAINER),
        st.tuples(st.builds(Image, WORD, WORD, st.tuples(WORD))),
        WORD,
        st.tuples(WORD),
    ),
    "stores": st.tuples(
        st.builds(
            Store,
            WORD,
            st.sampled_from(["", "nfs4", "ext4"]),
            NUMBER,
            NUMBER,
            WORD | st.just("a b"),
            st.dictionaries(WORD, NUMBER, max_size=1),
            st.tuples(st.builds(Ref, WORD, st.sampled_from(["", "a", "a\n"]), st.booleans())),
        )
    ),
}
LISTENERS = st.tuples(st.builds(Listener, WORD | st.just("*"), st.sampled_from([0, 2375, 8000, 8265, 11434]), WORD))
DOCKER = st.just(Docker("1", snap=True, storage="vfs", log_driver="json-file", proxy="x"))
