"""A node's means for services, and the ways to reach it."""

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.service import Manager, Reach, ServiceHost
from sparkwright.facts.service import parse_reach, parse_service_host

DGX = """
@@ user
ai
@@ state
/home/ai/.local/state/sparkwright
@@ python
good /usr/bin/python3
@@ addresses
192.168.1.20 192.168.100.10 172.17.0.1 fe80::1 fd00::20
@@ manager
user
lingers
@@ runtimes
0123456789abcdef
@@ environment
PATH=/usr/local/cuda/bin:/usr/bin
LD_LIBRARY_PATH=/opt/x=y/lib
"""


def service_host(text: str, code: int = 0) -> ServiceHost:
    found = parse_service_host(Completed(code, text))
    assert isinstance(found, ServiceHost), found
    return found


def test_a_dgx() -> None:
    """The user's own systemd with linger; addresses that other machines may use."""
    found = service_host(DGX)
    assert (found.manager, found.lingers, found.why) == (Manager.USER, True, "")
    assert found.python == "/usr/bin/python3" and found.runtimes == ("0123456789abcdef",)
    assert found.addresses == ("192.168.1.20", "192.168.100.10", "172.17.0.1", "fd00::20")
    assert found.env == (("PATH", "/usr/local/cuda/bin:/usr/bin"), ("LD_LIBRARY_PATH", "/opt/x=y/lib"))


def test_an_old_python_is_named() -> None:
    """The user reads what is there, not only what is missing."""
    found = service_host(DGX.replace("good /usr/bin/python3", "old Python 3.8.10\nold Python 3.10.12"))
    assert (found.python, found.seen) == ("", "Python 3.8.10, Python 3.10.12")


def test_without_systemd() -> None:
    """The reason why nothing would restore a supervisor is saved for the finding."""
    found = service_host(DGX.replace("user\nlingers", "no systemd runs here"))
    assert (found.manager, found.why) == (Manager.NONE, "no systemd runs here")
    assert service_host(DGX.replace("user\nlingers", "system")).manager is Manager.SYSTEM


def test_a_shell_that_failed_is_unknown() -> None:
    """Half an answer is none."""
    assert isinstance(parse_service_host(Completed(1, DGX)), Unknown)
    assert isinstance(parse_service_host(Completed(0, "")), Unknown)


def test_the_address_at_which_it_was_reached_comes_first() -> None:
    """The one that worked now is the one to try; comments of keys stay behind."""
    text = "@@ user\nai\n@@ addresses\n192.168.1.21 192.168.100.11 192.168.1.21\n@@ port\n2222\n@@ keys\n"
    found = parse_reach(Completed(0, text + "ssh-ed25519 AAAA root@spark-2\nssh-rsa BBBB root@spark-2\n"))
    assert found == Reach("ai", ("192.168.1.21", "192.168.100.11"), 2222, ("ssh-ed25519 AAAA", "ssh-rsa BBBB"))


def test_without_host_keys_there_is_no_way() -> None:
    """A key that nobody vouches for is never accepted."""
    text = "@@ user\nai\n@@ addresses\n192.168.1.21\n@@ port\n22\n@@ keys\n"
    assert isinstance(parse_reach(Completed(0, text)), Unknown)
