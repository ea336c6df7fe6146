"""The features of ssh alone: keys, shared connections, jump hosts, the agent, and connections that fail."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path

import pytest

from fakes.nodes import ENVIRON, make_node, settings
from fakes.ports import free_port
from fakes.processes import command_lines, started, wait_until_gone
from fakes.sshd import Sshd, make_key
from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.node_host import NodeHost
from sparkwright.adapters.ssh import ssh_host
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.command import Command, shell_command
from sparkwright.domain.errors import Unreachable, UsageError

TRUE = Command(("true",))


@pytest.fixture
def client_box(ssh_server: Sshd) -> Iterator["Box"]:
    made = Box(ssh_server)
    yield made
    made.remove()


async def test_the_address_is_the_one_behind_an_alias(client_box: "Box") -> None:
    """Guards a URL with an alias of ssh's configuration, which no client can resolve."""
    client_box.blocks += "Host lab\n  HostName spark-7.example.org\nHost jump-*\n  HostName %h.lab.example.org\n"
    for destination, address in (
        ("ann@lab", "spark-7.example.org"),
        ("jump-2", "jump-2.lab.example.org"),
        ("ssh://ann@10.0.0.7:2222", "10.0.0.7"),
        ("node", "127.0.0.1"),
    ):
        assert await client_box.host(destination).address() == address
    assert await client_box.host("ann@lab", program="no-such-ssh").address() == "lab"


class Box:
    """A client folder of a test's own next to the shared server: config, known_hosts and control sockets."""

    count = 0

    def __init__(self, sshd: Sshd) -> None:
        Box.count += 1
        self.sshd = sshd
        self.folder = sshd.folder / f"b{Box.count}"
        self.folder.mkdir()
        self.known_hosts = self.folder / "known_hosts"
        self.known_hosts.write_text(sshd.known_hosts.read_text())
        self.blocks = sshd.host_block("node")
        self.control = self.folder / "c"

    def host(self, destination: str = "node", key: Path | None = None, extra: str = "", **changed: object) -> NodeHost:
        config = self.folder / "config"
        common = self.sshd.common().replace(str(self.sshd.known_hosts), str(self.known_hosts))
        common = common.replace(str(self.sshd.key), str(key or self.sshd.key))
        config.write_text(f"{extra}{self.blocks}{common}")
        values = {"config": config, "control": self.control, "connect_timeout": 20, **changed}
        return ssh_host(make_node(self.folder, destination), settings(self.sshd, **values), "ann@laptop")

    def processes(self) -> list[str]:
        return [line for line in command_lines() if str(self.folder) in line]

    def remove(self) -> None:
        for socket_path in self.control.glob("*") if self.control.exists() else ():
            subprocess.run(
                ["ssh", "-F", "none", "-S", socket_path, "-O", "exit", "x"], capture_output=True, check=False
            )


@asynccontextmanager
async def refused(host: NodeHost) -> AsyncIterator[pytest.ExceptionInfo[Unreachable]]:
    with pytest.raises(Unreachable) as raised:
        yield raised
    await host.close()


async def test_one_connection_for_many_calls(client_box: Box) -> None:
    """Runs, files and tunnels of a call of sparkwright, and of the next call, share one connection."""
    before = client_box.sshd.connections()
    for _ in range(2):
        host = client_box.host()
        await asyncio.gather(*(host.run(TRUE) for _ in range(5)))
        await host.run_all([TRUE] * 5)
        await host.put(b"x", str(client_box.folder / "file"))
        async with host.tunnel("127.0.0.1", client_box.sshd.port):
            assert client_box.sshd.connections() - before == 1
        await host.close()
    assert client_box.sshd.connections() - before == 1


async def test_close_leaves_the_shared_connection_or_nothing(client_box: Box) -> None:
    """Only the shared connection is left after close; with persist=False not even that."""
    host = client_box.host()
    await host.run(TRUE)
    async with aclosing(host.stream(shell_command("echo up; sleep 61"))) as lines:
        await anext(lines)
    await host.close()
    assert [line for line in client_box.processes() if "[mux]" not in line] == []
    assert len(client_box.processes()) == 1
    await host.close(persist=False)
    assert await wait_until_gone(str(client_box.folder)) and list(client_box.control.iterdir()) == []


async def test_more_calls_than_sessions(client_box: Box) -> None:
    """sshd allows ten sessions a connection: more calls at a time still all work."""
    host = client_box.host()
    done = await asyncio.gather(*(host.run(shell_command("sleep 0.2; echo $1", str(n))) for n in range(14)))
    assert [each.stdout for each in done] == [f"{n}\n" for n in range(14)]


async def test_dead_shared_connection_is_replaced(client_box: Box) -> None:
    """A connection that was killed here, with its socket left behind, is not in the way."""
    host = client_box.host()
    await host.run(TRUE)
    os.kill(find_pid(f"{client_box.folder}", "[mux]"), signal.SIGKILL)
    assert await wait_until_gone(str(client_box.control))
    assert list(client_box.control.iterdir()) != []
    assert (await host.run(shell_command("echo again"))).stdout == "again\n"


async def test_broken_shared_connection_is_replaced(client_box: Box) -> None:
    """A node that dropped the connection (rebooted) is connected again, also in the moment of the loss."""
    host = client_box.host()
    parents = 'p=$(cut -d" " -f4 /proc/$PPID/stat); cut -d" " -f4 /proc/$p/stat'
    for _ in range(3):
        session = await host.run(shell_command(parents))
        os.kill(int(session.stdout), signal.SIGKILL)
        assert (await host.run(shell_command("echo again"))).stdout == "again\n"


async def test_connection_lost_while_running(client_box: Box) -> None:
    """A connection that breaks in a command is reported, and is not taken for the command's result."""
    host, token = client_box.host(), "61.7001"
    running = asyncio.create_task(host.run(Command(("sleep", token))))
    await started(token)
    await host.close(persist=False)
    async with refused(host) as raised:
        await running
    assert "connection lost while a command ran" in raised.value.message
    assert await wait_until_gone(token)


async def test_lost_stream(client_box: Box) -> None:
    """The same for a stream: it does not just end."""
    host, token = client_box.host(), "61.7007"
    async with refused(host) as raised:
        async for line in host.stream(shell_command('echo up; sleep "$1"', token)):
            assert line == "up"
            await started(token)
            await host.close(persist=False)
    assert "connection lost" in raised.value.message
    assert await wait_until_gone(token)


async def test_changed_host_key(client_box: Box) -> None:
    """A changed key refuses, names the line and the exact removal, and reports to verify first."""
    other = make_key(client_box.folder / "other").with_suffix(".pub").read_text().split()
    client_box.known_hosts.write_text(f"[127.0.0.1]:{client_box.sshd.port} {other[0]} {other[1]}\n")
    before = client_box.known_hosts.read_text()
    async with refused(host := client_box.host()) as raised:
        await host.run(TRUE)
    error = raised.value
    assert f"host key of [127.0.0.1]:{client_box.sshd.port} has CHANGED" in error.message
    assert f"{client_box.known_hosts} line 1" in error.message
    assert f"ssh-keygen -f {client_box.known_hosts} -R '[127.0.0.1]:{client_box.sshd.port}'" in error.hint
    assert "verify" in error.hint and error.exit_code == 3
    assert client_box.known_hosts.read_text() == before


async def test_unknown_host_key(client_box: Box) -> None:
    """An unknown key refuses and is not accepted automatically: the user is to inspect it once."""
    client_box.known_hosts.write_text("")
    async with refused(host := client_box.host()) as raised:
        await host.run(TRUE)
    assert "host key is not known" in raised.value.message
    assert f"`ssh -F {client_box.folder}/config node` once" in raised.value.hint
    assert client_box.known_hosts.read_text() == ""


async def test_wrong_user_key(client_box: Box) -> None:
    """A key that the node does not know: how to install it."""
    async with refused(host := client_box.host(key=make_key(client_box.folder / "stranger"))) as raised:
        await host.run(TRUE)
    assert (
        "accepts none of your keys (" in raised.value.message
        and "Permission denied (publickey)" in raised.value.message
    )
    assert "ssh-copy-id" in raised.value.hint


async def test_refused_port(client_box: Box) -> None:
    """Nothing listens: refused, and at once, for every kind of call."""
    client_box.blocks = f"Host node\n  HostName 127.0.0.1\n  Port {free_port()}\n"
    host = client_box.host()
    for call in (host.run(TRUE), host.run_all([TRUE]), host.put(b"", "x"), anext(host.stream(TRUE))):
        async with refused(host) as raised:
            await call
        assert "connection refused" in raised.value.message
    async with refused(host), host.tunnel("127.0.0.1", 1):
        raise AssertionError("opened")


async def test_silent_port(client_box: Box) -> None:
    """A port that takes the connection and reports nothing is an answer that did not come in time."""
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        client_box.blocks = f"Host node\n  HostName 127.0.0.1\n  Port {mute.getsockname()[1]}\n"
        async with refused(host := client_box.host(connect_timeout=1)) as raised:
            await host.run(TRUE)
    assert "no answer in time" in raised.value.message


async def test_jump_host(client_box: Box) -> None:
    """The user's ProxyJump is honoured: the connection is made from the jump host."""
    client_box.blocks += client_box.sshd.host_block("inner", "  ProxyJump node\n")
    before = client_box.sshd.connections()
    assert (await client_box.host("inner").run(shell_command("echo inside"))).stdout == "inside\n"
    assert client_box.sshd.connections() - before == 2


async def test_users_config_does_not_get_in_the_way(client_box: Box) -> None:
    """A config with its own forward (taken by another ssh), command, terminal and log level changes nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        extra = "  RemoteCommand top\n  RequestTTY yes\n  LogLevel VERBOSE\n  ForwardAgent yes\n"
        extra += f"  LocalForward {port} 127.0.0.1:1\n"
        client_box.blocks = client_box.sshd.host_block("node", extra)
        host = client_box.host()
        done = await host.run(shell_command("echo out"))
        async with host.tunnel("127.0.0.1", client_box.sshd.port) as url:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            greeting = await reader.readline()
            writer.close()
            await writer.wait_closed()
    assert (done.stdout, done.stderr) == ("out\n", "") and greeting.startswith(b"SSH-2.0")


async def test_noise_of_the_login_shell_is_no_output(client_box: Box) -> None:
    """The output of a .bashrc is neither the command's output nor its error."""
    key = make_key(client_box.folder / "noisy")
    noise = 'command="echo welcome; echo careful >&2; eval $SSH_ORIGINAL_COMMAND"'
    with (client_box.sshd.folder / "authorized_keys").open("a") as file:
        file.write(f"{noise} {key.with_suffix('.pub').read_text()}")
    host = client_box.host(key=key)
    done = await host.run(shell_command("echo out; echo err >&2"))
    lines = [line async for line in host.stream(shell_command("echo out"))]
    assert (done.stdout, done.stderr, lines) == ("out\n", "err\n", ["out"])


async def test_agent_goes_only_where_it_is_asked_for(client_box: Box) -> None:
    """A command gets the user's agent when it asks, over a connection of its own, and else never."""
    with agent(client_box.folder / "agent", client_box.sshd.key) as environ:
        host = client_box.host(environ=environ)
        plain = await host.run(Command(("ssh-add", "-l")))
        asked = await host.run(Command(("ssh-add", "-l"), forward_agent=True))
        after = await host.run(Command(("ssh-add", "-l")))
        await host.close(persist=False)
    assert (plain.ok, asked.ok, after.ok) == (False, True, False)
    assert "ED25519" in asked.stdout


class agent:
    """A real ssh-agent with one key; `with` gives the environment that has it."""

    def __init__(self, path: Path, key: Path) -> None:
        self._environ = {**ENVIRON, "SSH_AUTH_SOCK": str(path)}
        self._key = key

    def __enter__(self) -> dict[str, str]:
        argv = ["ssh-agent", "-D", "-a", self._environ["SSH_AUTH_SOCK"]]
        self._process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        while not self._listens():
            assert self._process.poll() is None
        subprocess.run(["ssh-add", "-q", str(self._key)], env=self._environ, check=True)
        return self._environ

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)

    def _listens(self) -> bool:
        """The socket's name exists a moment before anybody listens at it."""
        with socket.socket(socket.AF_UNIX) as end:
            return end.connect_ex(self._environ["SSH_AUTH_SOCK"]) == 0


async def test_killed_sparkwright_leaves_no_stream(client_box: Box) -> None:
    """A stream ends on the node even when sparkwright is killed and cannot report it."""
    token = "61.4711"
    host = client_box.host()
    await host.run(TRUE)
    code = (
        "import asyncio, pathlib, sys\n"
        "from sparkwright.adapters.ssh import SshSettings, ssh_host\n"
        "from sparkwright.domain.cluster import Node\n"
        "from sparkwright.domain.command import Command\n"
        "settings = SshSettings(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))\n"
        "async def main():\n"
        "    async for _ in ssh_host(Node('n', 'node'), settings).stream(Command(('sleep', '61.' + '4711'))): pass\n"
        "asyncio.run(main())\n"
    )
    argv = [sys.executable, "-c", code, str(client_box.folder / "config"), str(client_box.control)]
    child = subprocess.Popen(argv, env=ENVIRON)
    await started(token)
    child.kill()
    child.wait(60)
    assert await wait_until_gone(token)


async def test_destination_is_never_an_option(client_box: Box) -> None:
    """A cluster file cannot make ssh run a program on this machine."""
    proof = client_box.folder / "proof"
    async with refused(host := client_box.host(f"-oProxyCommand=touch {proof}")):
        await host.run(TRUE)
    assert not proof.exists()


async def test_control_folder_of_somebody_else(client_box: Box) -> None:
    """A folder that others can enter is not used, nor what listens there already: ssh would give it everything."""
    client_box.control.mkdir(mode=0o755)
    here = client_box.host()
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(here._transport._control))  # type: ignore[attr-defined]
        theirs.listen()
        for host in (here, client_box.host("other")):
            with pytest.raises(UsageError, match="not a folder of yours alone"):
                await host.run(TRUE)


async def test_control_path_too_long(client_box: Box) -> None:
    """A name that no socket can have is refused before ssh complains about it with its own message."""
    with pytest.raises(UsageError, match="too long a name for a socket"):
        await client_box.host(control=client_box.folder / ("c" * 90)).run(TRUE)


async def test_no_ssh_on_this_machine(client_box: Box) -> None:
    """A machine without ssh is shown what to install."""
    with pytest.raises(UsageError, match="no no-ssh-here on this machine"):
        await client_box.host(program="no-ssh-here").run(TRUE)


async def test_hosts_of_a_cluster(client_box: Box, tmp_path: Path) -> None:
    """Each node is reached in its own way, once made; an unknown one is refused with the names there are."""
    client_box.host()
    here, there = make_node(tmp_path, "local"), make_node(tmp_path)
    cluster = Cluster("lab", (here, type(there)("spark-2", "node", paths=there.paths)), "spark-1")
    hosts = ClusterHosts(
        cluster, settings(client_box.sshd, config=client_box.folder / "config", control=client_box.control)
    )
    done = [await hosts[name].run(shell_command('echo "${SSH_CONNECTION:+far}"')) for name in cluster.names]
    assert [each.stdout for each in done] == ["\n", "far\n"]
    assert hosts["spark-2"] is hosts["spark-2"]
    with pytest.raises(UsageError, match="spark-9 is no node of cluster lab"):
        hosts["spark-9"]
    await hosts.close(persist=False)
    assert await wait_until_gone(str(client_box.control))


def find_pid(*parts: str) -> int:
    """The process whose command line has all parts."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and all(part in line_of(entry) for part in parts):
            return int(entry.name)
    raise AssertionError(parts)


def line_of(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
