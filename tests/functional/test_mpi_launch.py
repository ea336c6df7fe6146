"""The real mpirun over our agent in place of sshd, started as render() states: on two addresses of the loopback, and
in two network namespaces whose interfaces have different names.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fakes.ports import free_port
from patience import PATIENCE, wait_until
from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.command import Secret
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Runtime, Serving
from sparkwright.engines.catalog import engine
from sparkwright.engines.engine import RenderContext, files_at
from sparkwright.engines.stuck import lost_a_peer
from sparkwright.facts.engine_log import LogStory, read_log

pytestmark = pytest.mark.skipif(not shutil.which("mpirun"), reason="hardware: Open MPI's mpirun is not installed")
KEY = "SPARKWRIGHT_LAUNCH_KEY"
# In the place of `trtllm-llmapi-launch trtllm-serve`: tells what it was given, rank 0 answers at --port, all wait.
STAND_IN = """
import http.server, json, os, pathlib, sys
rank = os.environ["OMPI_COMM_WORLD_RANK"]
found = {"pid": os.getpid(), "argv": sys.argv, "env": dict(os.environ), "size": os.environ["OMPI_COMM_WORLD_SIZE"]}
file = pathlib.Path(__file__).with_name(f"found{rank}.json")
file.with_suffix(".new").write_text(json.dumps(found))
file.with_suffix(".new").rename(file)
# A line is one write, as of loggers: an unbuffered print() writes its end apart, behind the other rank's line
os.write(1, f"[11/21/2026-10:00:00] [TRT-LLM] [RANK {rank}] [I] Using LLM with PyTorch backend\\n".encode())
port = int(sys.argv[sys.argv.index("--port") + 1]) if rank == "0" else 0
server = http.server.HTTPServer(("127.0.0.1", port), http.server.SimpleHTTPRequestHandler)
if rank == "0":
    os.write(1, b"INFO:     Application startup complete.\\n")
server.serve_forever()
"""

# A message through the real MPI library, without a package for it: one sum over both ranks, then rank 0's big array.
MPI_STAND_IN = """
import ctypes, json, os, pathlib
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
named = lambda name: ctypes.byref(ctypes.c_char.in_dll(mpi, name))
mpi.MPI_Init(None, None)
mine, total = ctypes.c_int(int(os.environ["OMPI_COMM_WORLD_RANK"]) + 1), ctypes.c_int()
world, integer = named("ompi_mpi_comm_world"), named("ompi_mpi_int")
mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, integer, named("ompi_mpi_op_sum"), world)
many = (ctypes.c_int * 500_000)(*([7] * 500_000 if mine.value == 1 else []))
mpi.MPI_Bcast(many, len(many), integer, 0, world)
mpi.MPI_Finalize()
found = {"pid": os.getpid(), "env": dict(os.environ), "sum": total.value, "content": sum(many)}
pathlib.Path(__file__).with_name(f"found{mine.value - 1}.json").write_text(json.dumps(found))
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@dataclass
class MpiRanks:
    """The two ranks of one launch, as the nodes would start them. env differs: each reports on which node it is."""

    folder: Path
    port: int
    specs: tuple[RankSpec, ...]
    processes: dict[int, "subprocess.Popen[bytes]"]
    inside: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def start(self, rank: int, key: str = "the-key") -> None:
        spec = self.specs[rank]
        secrets = dict.fromkeys(spec.secrets, key)
        env = {**os.environ, **spec.env, **secrets, "THIS_NODE": spec.node}
        with self.log_file(rank).open("wb") as out:
            words = (*self.inside[rank], *spec.argv)
            self.processes[rank] = subprocess.Popen(
                words, env=env, cwd=self.folder, stdout=out, stderr=out, start_new_session=True
            )

    def log_file(self, rank: int) -> Path:
        return self.folder / f"log{rank}"

    def log(self, rank: int) -> str:
        return self.log_file(rank).read_text()

    def found(self, rank: int) -> dict:
        return json.loads((self.folder / f"found{rank}.json").read_text())

    def both_up(self) -> tuple[int, int]:
        """The process ids of the two stand-ins."""
        wait_until(lambda: all((self.folder / f"found{k}.json").exists() for k in (0, 1)), lambda: self.log(0))
        wait_until(lambda: "startup complete" in self.log(0), lambda: self.log(0))
        return self.found(0)["pid"], self.found(1)["pid"]

    def ended(self, rank: int) -> int:
        return self.processes[rank].wait(PATIENCE)


@pytest.fixture
def mpi_ranks(tmp_path: Path) -> Iterator[MpiRanks]:
    found = rendered(tmp_path)
    yield found
    for process in found.processes.values():
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for file in tmp_path.glob("found*.json"):
        pid = json.loads(file.read_text())["pid"]
        if is_alive(pid):
            with suppress(ProcessLookupError):  # mpirun or the agent may end it meanwhile
                os.kill(pid, signal.SIGKILL)


LOOPBACK = (FabricChoice("127.0.0.1", "lo"), FabricChoice("127.0.0.2", "lo"))


def rendered(folder: Path, choices: tuple[FabricChoice, FabricChoice] = LOOPBACK, program: str = STAND_IN) -> MpiRanks:
    (folder / "stand_in.py").write_text(program)
    port = free_port("127.0.0.1")
    words = (sys.executable, str(folder / "stand_in.py"))
    recipe = Recipe(
        name="m",
        title="M",
        model=Model(path="/models/m"),
        engine=EngineChoice("trtllm", "1.2.1", Runtime.PROCESS, entrypoint=words),
        nodes=2,
        parallelism=Parallelism(tp=2),
        serving=Serving(master_port=free_port("127.0.0.2"), port=port, context=4096),
    )
    nodes = ("spark-1", "spark-2")
    fabric = dict(zip(nodes, choices, strict=True))
    home = {node: NodePaths("/m", "/hub", f"{folder}/cache", f"{folder}/{node}") for node in nodes}
    context = RenderContext(home, port=port, deployment="m", launch_key=Secret("the-key"))
    specs = engine("trtllm").render(recipe, Placement(nodes, fabric), context)
    for spec in specs:
        where = Path(files_at(recipe, context, spec.node, spec.rank))
        where.mkdir(parents=True)
        for file in spec.files:
            (where / file.name).write_text(file.text)
    return MpiRanks(folder, port, specs, {})


def test_both_ranks_start_each_with_the_environment_of_its_node(mpi_ranks: MpiRanks) -> None:
    """One job of two ranks, rank 0 serves; each has its own node's variables, and neither learns the launch's key."""
    mpi_ranks.start(1)
    mpi_ranks.start(0)
    mpi_ranks.both_up()
    assert [mpi_ranks.found(k)["env"]["THIS_NODE"] for k in (0, 1)] == ["spark-1", "spark-2"]
    assert [mpi_ranks.found(k)["size"] for k in (0, 1)] == ["2", "2"]
    assert mpi_ranks.found(0)["argv"][1:] == list(mpi_ranks.specs[0].engine_words) == mpi_ranks.found(1)["argv"][1:]
    for rank in (0, 1):
        assert KEY not in mpi_ranks.found(rank)["env"]
        assert "the-key" not in " ".join(mpi_ranks.specs[rank].argv)
    with urllib.request.urlopen(f"http://127.0.0.1:{mpi_ranks.port}/stand_in.py", timeout=60) as answer:
        assert answer.status == 200

    def head() -> LogStory:
        return read_log(mpi_ranks.log(0).splitlines(), engine("trtllm").read)

    wait_until(lambda: head().ready_after is not None, lambda: mpi_ranks.log(0))
    assert not head().root


def test_the_agent_listens_on_its_own_address_only_and_for_one_head(mpi_ranks: MpiRanks) -> None:
    """Not on 0.0.0.0, and once the head has come, nobody can ask for anything any more."""
    mpi_ranks.start(1)
    wait_until(lambda: "agent waits" in mpi_ranks.log(1), "the agent")
    ((address, port),) = mpi_ranks.specs[1].listens
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=60)
    mpi_ranks.start(0)
    mpi_ranks.both_up()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address, port), timeout=60)


def test_sigterm_on_the_head_ends_everything_everywhere(mpi_ranks: MpiRanks) -> None:
    """`down` signals the process group: mpirun, the daemon, both ranks and the agent are gone within seconds."""
    mpi_ranks.start(1)
    mpi_ranks.start(0)
    pids = mpi_ranks.both_up()
    assert all(is_alive(pid) for pid in pids)
    os.killpg(mpi_ranks.processes[0].pid, signal.SIGTERM)
    mpi_ranks.ended(0)
    mpi_ranks.ended(1)
    wait_until(lambda: not any(is_alive(pid) for pid in pids), "the ranks' end")


def test_a_head_that_is_killed_takes_its_workers_along(mpi_ranks: MpiRanks) -> None:
    """SIGKILL leaves no time for messages: the lost connection is the message."""
    mpi_ranks.start(1)
    mpi_ranks.start(0)
    _, worker = mpi_ranks.both_up()
    os.killpg(mpi_ranks.processes[0].pid, signal.SIGKILL)
    mpi_ranks.ended(1)
    wait_until(lambda: not is_alive(worker), "the worker's end")
    assert "mpi: agent: orted ended" in mpi_ranks.log(1)


def test_an_agent_that_is_killed_ends_the_job_with_its_name(mpi_ranks: MpiRanks) -> None:
    """A worker node that dies is no hang: mpirun ends, and the head's log names the address."""
    mpi_ranks.start(1)
    mpi_ranks.start(0)
    mpi_ranks.both_up()
    os.killpg(mpi_ranks.processes[1].pid, signal.SIGKILL)
    assert mpi_ranks.ended(0) != 0
    found = read_log(mpi_ranks.log(0).splitlines(), engine("trtllm").read)
    assert "127.0.0.2" in found.root
    assert lost_a_peer(mpi_ranks.log(0).splitlines())


def test_a_wrong_key_is_refused_on_both_sides(mpi_ranks: MpiRanks) -> None:
    """Nothing starts without this launch's key; both logs report it and the agent goes on waiting."""
    mpi_ranks.start(1)
    mpi_ranks.start(0, key="another")
    assert mpi_ranks.ended(0) != 0
    assert "refused: it does not know the key" in mpi_ranks.log(0)
    refusal = "agent refused 127.0.0.1: it does not know the key"
    wait_until(lambda: refusal in mpi_ranks.log(1), lambda: mpi_ranks.log(1))
    assert mpi_ranks.processes[1].poll() is None
    assert not (mpi_ranks.folder / "found1.json").exists()


@pytest.mark.parametrize("said", [b'{"proof": "\\u00e9"}', b"[" * 100_000, b"\xff", b"7"])
def test_strangers_neither_end_nor_hold_a_waiting_agent(mpi_ranks: MpiRanks, said: bytes) -> None:
    """The agent refuses nonsense on its port, a silent client keeps nobody waiting, and the head gets in."""
    mpi_ranks.start(1)
    wait_until(lambda: "agent waits" in mpi_ranks.log(1), "the agent")
    place = mpi_ranks.specs[1].listens[0]
    with socket.create_connection(place, timeout=60), socket.create_connection(place, timeout=60) as loud:
        loud.sendall(said + b"\n")
        wait_until(lambda: "agent refused 127.0.0.1" in mpi_ranks.log(1), lambda: mpi_ranks.log(1))
        mpi_ranks.start(0)
        assert all(is_alive(pid) for pid in mpi_ranks.both_up())


@pytest.mark.parametrize("command", ["touch {}/proof", "orted; touch {}/proof", "sh -c 'touch {}/proof; orted'"])
def test_only_a_daemon_is_started(mpi_ranks: MpiRanks, command: str) -> None:
    """Even with the key nothing but Open MPI's daemon runs, and no shell inspects the words."""
    mpi_ranks.start(1)
    ((address, port),) = mpi_ranks.specs[1].listens
    launcher = mpi_ranks.specs[1].argv[1]
    words = (sys.executable, launcher, "rsh", "--port", str(port), address, command.format(mpi_ranks.folder))
    done = subprocess.run(words, env={**os.environ, KEY: "the-key"}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "refused: asked for something that is not orted" in done.stdout
    assert not (mpi_ranks.folder / "proof").exists()


def test_an_agent_without_a_head_gives_up(mpi_ranks: MpiRanks) -> None:
    """A worker that nobody calls does not wait for ever, and reports what it waited for."""
    spec = mpi_ranks.specs[1]
    mpi_ranks.specs = (mpi_ranks.specs[0], replace(spec, argv=(*spec.argv, "--wait", "0.3")))
    mpi_ranks.start(1)
    assert mpi_ranks.ended(1) == 1
    assert "no head came within 0.3 s" in mpi_ranks.log(1)
    assert read_log(mpi_ranks.log(1).splitlines(), engine("trtllm").read).root


def test_something_else_on_the_agents_port_is_not_trusted(mpi_ranks: MpiRanks) -> None:
    """The head's command line goes to who proves the key, too: an impostor is named."""
    ((address, port),) = mpi_ranks.specs[1].listens
    words = (sys.executable, mpi_ranks.specs[1].argv[1], "rsh", "--port", str(port), address, "orted")
    with socket.create_server((address, port)) as impostor:
        head = subprocess.Popen(words, env={**os.environ, KEY: "the-key"}, stdout=subprocess.PIPE, text=True)
        connection, _ = impostor.accept()
        with connection, connection.makefile("rwb") as stream:
            stream.write(b'{"challenge": "00"}\n')
            stream.flush()
            stream.readline()
            stream.write(b'{"proof": "00"}\n')
            stream.flush()
            said, _ = head.communicate(timeout=60)
    assert head.returncode == 1
    assert "something else listens there" in said


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two networks joined by a fabric whose ends are `fabA` and `fabB`, and by a management cable."""
    names = (f"sw-mpi-a-{os.getpid()}", f"sw-mpi-b-{os.getpid()}")
    for name in names:
        run_ip_command("netns", "add", name)
    for ends in (("fabA", "fabB"), ("mgmt", "mgmt")):
        run_ip_command(
            "link", "add", ends[0], "netns", names[0], "type", "veth", "peer", "name", ends[1], "netns", names[1]
        )
    for number, (name, device) in enumerate(zip(names, ("fabA", "fabB"), strict=True), 1):
        run_ip_command("-n", name, "address", "add", f"192.168.79.{number}/24", "dev", device)
        run_ip_command("-n", name, "address", "add", f"10.79.0.{number}/24", "dev", "mgmt")
        for up in ("lo", device, "mgmt"):
            run_ip_command("-n", name, "link", "set", up, "up")
    yield names
    for name in names:
        run_ip_command("netns", "delete", name)


def run_ip_command(*words: str) -> None:
    subprocess.run(("ip", *words), check=True, timeout=60)


@pytest.mark.skipif(os.geteuid() != 0, reason="hardware: network namespaces need root")
def test_mpi_talks_between_nodes_whose_interfaces_have_different_names(
    tmp_path: Path, namespaces: tuple[str, str]
) -> None:
    """Each rank's transport takes its own node's interface: with the head's name, or a list of addresses, they hang."""
    choices = (FabricChoice("192.168.79.1", "fabA"), FabricChoice("192.168.79.2", "fabB"))
    ranks = rendered(tmp_path, choices, MPI_STAND_IN)
    first, second = (("ip", "netns", "exec", name) for name in namespaces)
    ranks.inside = (first, second)
    ranks.start(1)
    ranks.start(0)
    assert ranks.ended(0) == 0, ranks.log(0)
    assert ranks.ended(1) == 0, ranks.log(1)
    assert [ranks.found(k)["sum"] for k in (0, 1)] == [3, 3]
    assert [ranks.found(k)["content"] for k in (0, 1)] == [3_500_000, 3_500_000]
    found = [ranks.found(k)["env"] for k in (0, 1)]
    assert [env["OMPI_MCA_btl_tcp_if_include"] for env in found] == ["fabA", "fabB"]
    assert all("tcp://192.168.79.1:" in env["OMPI_MCA_orte_hnp_uri"] for env in found)
    assert "WARNING" not in ranks.log(0)
