"""ssh's complaints, pasted, and what the user is shown."""

from sparkwright.adapters.ssh import broken, translate
from unit.for_each import for_each

CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Please contact your system administrator.
Add correct host key in /home/ann/.ssh/known_hosts to get rid of this message.
Offending ED25519 key in /home/ann/.ssh/known_hosts:12
Host key for 192.168.1.21 has changed and you have requested strict checking.
Host key verification failed.
"""


def reported(stderr: str) -> tuple[str, str]:
    error = translate("spark-2", "ann@spark-2", stderr, "ssh ann@spark-2")
    assert error.exit_code == 3 and error.node == "spark-2"
    return error.message, error.hint


def test_changed_key() -> None:
    """File, line, host and the exact removal; verify first."""
    message, hint = reported(CHANGED)
    assert message == (
        "spark-2: the host key of 192.168.1.21 has CHANGED: it is not the one in /home/ann/.ssh/known_hosts line 12"
    )
    assert "`ssh-keygen -f /home/ann/.ssh/known_hosts -R 192.168.1.21`" in hint
    assert hint.index("verify") < hint.index("ssh-keygen -f")


@for_each(
    "stderr, what, hint",
    [
        ("Host key verification failed.", "host key is not known here", "`ssh ann@spark-2` once"),
        ("ssh: Could not resolve hostname spark-2: Name or service not known", "no such host name", "`ssh:`"),
        ("ssh: connect to host spark-2 port 22: Connection refused", "connection refused", "sshd running"),
        ("ssh: connect to host spark-2 port 22: Connection timed out", "no answer in time", "ping"),
        ("Connection timed out during banner exchange", "no answer in time", "ping"),
        ("ssh: connect to host spark-2 port 22: No route to host", "no route to host", "ping"),
        ("ssh: connect to host spark-2 port 22: Network is unreachable", "network unreachable", "own link"),
        ("ann@spark-2: Permission denied (publickey,password).", "none of your keys", "`ssh-copy-id ann@spark-2`"),
        ("Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures", "none of", "IdentityFile"),
        ("/home/ann/.ssh/config: line 3: Bad configuration option: hots", "configuration is broken", "line"),
        ("something new\nand its end", "no ssh connection to ann@spark-2: and its end", "by hand"),
        ("", "no output of ssh", "by hand"),
    ],
)
def test_advice(stderr: str, what: str, hint: str) -> None:
    """Each known trouble has its own advice; an unknown one is passed on."""
    message, advice = reported(stderr)
    assert message.startswith("spark-2: ") and what in message and hint in advice


def test_lost_in_a_command() -> None:
    """The user must know that the command may go on there."""
    error = broken("spark-2", "client_loop: send disconnect: Broken pipe\n")
    assert "connection lost while a command ran (client_loop" in error.message and "still be running" in error.hint
