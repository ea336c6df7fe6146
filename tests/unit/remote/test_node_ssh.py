"""The way of a head to its workers: the texts that ssh reads."""

from sparkwright.domain.service import Reach
from sparkwright.remote.node_ssh import authorized_line, config, known_hosts

WORKER = Reach("ai", ("192.168.1.21", "192.168.100.11"), 2222, ("ssh-ed25519 AAAA", "ssh-rsa BBBB"))


def test_the_key_on_a_worker_is_narrow() -> None:
    """Commands only, from the head's addresses only, and marked so that `down` finds it."""
    line = authorized_line("ssh-ed25519 AAAA", ("192.168.1.20", "192.168.100.10"), "sparkwright:lab/twin")
    assert line == 'restrict,from="192.168.1.20,192.168.100.10" ssh-ed25519 AAAA sparkwright:lab/twin'


def test_the_first_address_that_takes_a_connection_is_used() -> None:
    """A cut management network does not cut the way over the fabric; the last one is taken untried."""
    lines = config("/home/ai/.local/state/sparkwright/supervision/twin", [("spark-2", WORKER)]).splitlines()
    assert lines[0].startswith('Match originalhost spark-2 exec "') and "/dev/tcp/192.168.1.21/2222" in lines[0]
    assert lines[1:4] == ["  HostName 192.168.1.21", "Host spark-2", "  HostName 192.168.100.11"]
    assert {"  Port 2222", "  User ai", "  HostKeyAlias spark-2"} <= set(lines)


def test_no_host_key_is_ever_accepted_and_nothing_is_asked() -> None:
    """Only the keys that the laptop vouches for, only keys as proof, and no agent."""
    text = config("/state/50%", [("spark-2", WORKER)])
    for line in ("StrictHostKeyChecking yes", "IdentitiesOnly yes", "BatchMode yes", "GlobalKnownHostsFile /dev/null"):
        assert f"  {line}\n" in text
    assert '  IdentityFile "/state/50%%/ssh/id_ed25519"\n' in text
    assert '  UserKnownHostsFile "/state/50%%/ssh/known_hosts"\n' in text


def test_host_keys_are_known_by_the_nodes_name() -> None:
    """The same key at every address of the node."""
    assert known_hosts([("spark-2", WORKER)]) == "spark-2 ssh-ed25519 AAAA\nspark-2 ssh-rsa BBBB\n"
