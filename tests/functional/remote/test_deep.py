"""The scripts of `check --deep` run by a real sh, with stand-ins for ib_write_bw, nvidia-smi and torch."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from patience import wait_until
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.fabric_facts import Clocks, Skipped
from sparkwright.domain.facts import Unknown
from sparkwright.facts import deep_check

BARE = "/usr/bin:/bin"
# The table of the real tool; it says what it was given, and a client finds nobody until the file `there` exists.
PERFTEST = r"""#!/bin/sh
case "$*" in *-h*) printf '      %s  Source IP of the interface\n' OPTION; exit 0 ;; esac
echo "$*" >>"$TEST_DIR/asked"
if [ $(wc -l <"$TEST_DIR/asked") -lt TRIES ]; then
  printf " Couldn't connect to 10.40.0.2:18515\n" >&2; exit 1
fi
printf ' #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n'
printf ' 65536      1059332          0.00               97.41              0.176557\n'
"""
SMI = "#!/bin/sh\necho '2411 MHz, 45.10 W, 96 %'\n"
# Stands for python3 with torch: `import torch` works, and the load says that it began, and lasts.
TORCH = """#!/bin/sh
case "$2" in *assert*) exit 0 ;; esac
echo started; echo $$ >"$TEST_DIR/load"; exec sleep 60
"""


@pytest.fixture
def shim_folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    if (tmp_path / "load").is_file():
        pid = int((tmp_path / "load").read_text())
        if Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/comm").read_text().strip() == "sleep":
            os.kill(pid, signal.SIGKILL)


def write_program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def start(command: Command, folder: Path) -> subprocess.Popen[str]:
    env = {"PATH": f"{folder}:{BARE}", "HOME": str(folder), "TEST_DIR": str(folder), "TMPDIR": str(folder)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(command.argv, env=env, text=True, **pipes)  # type: ignore[call-overload, no-any-return]


def run(command: Command, folder: Path) -> Completed:
    program = start(command, folder)
    out, err = program.communicate(timeout=60)
    return Completed(program.returncode, out, err)


@pytest.mark.parametrize("option", ["--bind_source_ip", "--source_ip"])
def test_client_waits_for_its_server_and_binds_to_its_own_address(shim_folder: Path, option: str) -> None:
    """Guards that a server which needs a moment is waited for, with the option that this perftest knows."""
    write_program(shim_folder, "ib_write_bw", PERFTEST.replace("OPTION", option).replace("TRIES", "3"))
    done = run(deep_check.client("rocep1s0f0", 3, 18515, ("10.40.0.1", "10.40.0.2")), shim_folder)
    assert deep_check.bandwidth(done) == 97.41
    asked = (shim_folder / "asked").read_text().splitlines()
    assert asked == [f"-d rocep1s0f0 -x 3 -p 18515 -D 3 {option} 10.40.0.1 -q 4 -F --report_gbits 10.40.0.2"] * 3


def test_a_link_that_refuses_is_not_asked_again(shim_folder: Path) -> None:
    """Guards the tool's own text about the link: a second try would find no server, and report only that."""
    failed = PERFTEST.replace(
        "Couldn't connect to 10.40.0.2:18515", "Failed to modify QP 306 to RTR\n Unable to Connect"
    )
    write_program(shim_folder, "ib_write_bw", failed.replace("OPTION", "--bind_source_ip").replace("TRIES", "9"))
    found = deep_check.bandwidth(
        run(deep_check.client("rocep1s0f0", 9, 18515, ("10.40.0.1", "10.40.0.2")), shim_folder)
    )
    assert isinstance(found, Unknown)
    assert found.raw == "Failed to modify QP 306 to RTR"
    assert len((shim_folder / "asked").read_text().splitlines()) == 1


def test_server_listens_on_the_fabric_alone(shim_folder: Path) -> None:
    """Guards that the server is given an address of its own."""
    write_program(shim_folder, "ib_write_bw", PERFTEST.replace("OPTION", "--bind_source_ip").replace("TRIES", "1"))
    assert run(deep_check.server("rocep1s0f0", 3, 18515, "10.40.0.2"), shim_folder).ok
    wanted = "-d rocep1s0f0 -x 3 -p 18515 -D 3 --bind_source_ip 10.40.0.2 -q 4 -F --report_gbits\n"
    assert (shim_folder / "asked").read_text() == wanted


def short_clock_test(busy: bool = False, image: str = "") -> Command:
    """The clock test with one sample instead of ten."""
    command = deep_check.sample_clocks(image, "sparkwright-clock-test", busy)
    at = command.argv.index(str(deep_check.CLOCK_SECONDS))
    return Command((*command.argv[:at], "1", *command.argv[at + 1 :]))


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").is_file() and " Z " not in Path(f"/proc/{pid}/stat").read_text()


def test_load_is_ended_when_the_samples_are_there(shim_folder: Path) -> None:
    """Guards that the clocks are taken under the load, and that the load does not outlive them."""
    write_program(shim_folder, "nvidia-smi", SMI)
    write_program(shim_folder, "python3", TORCH)
    found = deep_check.clocks(run(short_clock_test(), shim_folder), "spark-1")
    assert isinstance(found, Clocks)
    assert found.load == "torch on the node"
    assert [(s.sm_mhz, s.power_w, s.utilization) for s in found.samples] == [(2411.0, 45.1, 96.0)]
    assert not is_alive(int((shim_folder / "load").read_text()))
    assert list(shim_folder.glob("tmp*")) == []


def test_load_is_ended_with_its_caller(shim_folder: Path) -> None:
    """Guards that Ctrl-C, which reaches a node as TERM, leaves no load there."""
    write_program(shim_folder, "nvidia-smi", SMI.replace("echo", "sleep 5; echo"))
    write_program(shim_folder, "python3", TORCH)
    program = start(short_clock_test(), shim_folder)
    wait_until(lambda: (shim_folder / "load").is_file() and (shim_folder / "load").read_text(), "the load")
    program.send_signal(signal.SIGTERM)
    program.communicate(timeout=60)
    assert not is_alive(int((shim_folder / "load").read_text()))


def test_next_to_a_rank_nothing_is_started(shim_folder: Path) -> None:
    """Guards that a GPU that is busy anyway is watched only."""
    write_program(shim_folder, "nvidia-smi", SMI)
    write_program(shim_folder, "python3", TORCH)
    found = deep_check.clocks(run(short_clock_test(busy=True), shim_folder), "spark-1")
    assert isinstance(found, Clocks)
    assert found.load == "what runs there"
    assert not (shim_folder / "load").exists()


@pytest.mark.parametrize(
    ("programs", "why"),
    [
        ({}, "nvidia-smi is not installed"),
        ({"nvidia-smi": SMI, "python3": "#!/bin/sh\nexit 1\n"}, "no torch on the node, and no image with an engine"),
        (
            {
                "nvidia-smi": SMI,
                "python3": '#!/bin/sh\ncase "$2" in *assert*) ;; *) echo oh: no memory; exit 1 ;; esac\n',
            },
            "oh: no memory",
        ),
    ],
)
def test_what_cannot_be_measured_reports_why(shim_folder: Path, programs: dict[str, str], why: str) -> None:
    """Guards that a node without the means, or with a load that fails, gives a reason."""
    for name, text in programs.items():
        write_program(shim_folder, name, text)
    assert deep_check.clocks(run(short_clock_test(), shim_folder), "n") == Skipped("clocks under load", "n", why)


def test_an_image_with_an_engine_makes_the_load(shim_folder: Path) -> None:
    """Guards that without torch on the node the container is named, has no network, and pulls nothing."""
    write_program(shim_folder, "nvidia-smi", SMI)
    write_program(shim_folder, "python3", "#!/bin/sh\nexit 1\n")
    write_program(
        shim_folder,
        "docker",
        '#!/bin/sh\nprintf "%s " "$1 $2 $3 $4 $5 $6 $7 $8 $9" >"$TEST_DIR/docker-asked"\n' + TORCH[10:],
    )
    found = deep_check.clocks(run(short_clock_test(image="vllm/vllm-openai:v0.21.0"), shim_folder), "n")
    assert isinstance(found, Clocks)
    assert found.load == "torch in vllm/vllm-openai:v0.21.0"
    wanted = "run --rm --init --name sparkwright-clock-test --gpus all --network none "
    assert (shim_folder / "docker-asked").read_text() == wanted
    assert not is_alive(int((shim_folder / "load").read_text()))
