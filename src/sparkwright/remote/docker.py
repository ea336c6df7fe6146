"""Docker as asked by sparkwright: the engine is the container's main process, and its logs stay as evidence."""

from collections.abc import Sequence

from sparkwright.domain.command import Command
from sparkwright.domain.plan import Mount, RankSpec
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

LABEL = "sparkwright."
OOM_SCORE = "500"
_BUSY = 240.0  # seconds: a daemon that imports an image or whose disk is busy needs a minute for one `docker rm`
SECRETS_AT = "/run/sparkwright/secrets.env"
FILES_AT = "/run/sparkwright/files"
# exec keeps the engine the container's main process; the values stand neither in argv nor in `docker inspect`.
_WITH_SECRETS = 'set -a; . "$0"; set +a; exec "$@"'


def container_name(deployment: str, rank: int) -> str:
    return f"sparkwright-{deployment}-rank{rank}"


def keeper_name(deployment: str, rank: int) -> str:
    return f"sparkwright-{deployment}-weights{rank}"


def run(spec: RankSpec, name: str, secrets_file: str = "", raise_memlock: bool = True, files_dir: str = "") -> Command:
    """`docker run -d` of one rank. secrets_file: absolute path on the node of a 0600 file of KEY='value' lines.

    files_dir: absolute folder on the node with RankSpec.files.

    raise_memlock: False where the daemon has no right to (rootless Docker, tests): the start would fail.
    """
    own = [Mount(secrets_file, SECRETS_AT, read_only=True)] if secrets_file else []
    own += [Mount(files_dir, FILES_AT, read_only=True)] if spec.files else []
    words = ["docker", "run", "--detach", "--init", "--name", name, "--restart", "no"]
    words += ["--network", "host", "--ipc", "host", "--shm-size", str(spec.shm_bytes)]
    words += ["--ulimit", "stack=67108864", *(("--ulimit", "memlock=-1:-1") if raise_memlock else ())]
    # What the GPU has taken does not count as a process's memory: else the kernel ends anything but the engine.
    words += ["--oom-score-adj", OOM_SCORE]
    words += ["--log-driver", "json-file", "--log-opt", "max-size=64m", "--log-opt", "max-file=4"]
    words += ["--gpus", "all"] if spec.gpu else []
    # Host networking alone is not enough: without the verbs devices NCCL silently falls back to sockets.
    words += ["--device", "/dev/infiniband", "--cap-add", "IPC_LOCK"] if spec.rdma else []
    words += [w for key, value in spec.labels.items() for w in ("--label", f"{LABEL}{key}={value}")]
    mounts = (f"{m.host}:{m.container}{':ro' if m.read_only else ''}" for m in (*spec.mounts, *own))
    words += [w for mount in mounts for w in ("--volume", mount)]
    words += [w for key, value in spec.env.items() for w in ("--env", f"{key}={value}")]
    return Command((*words, *_program(spec, secrets_file)), timeout=120, changes=f"docker run {name} ({spec.image})")


def make_folders(spec: RankSpec) -> Command:
    """The writable folders that the rank mounts, as the ssh user's own."""
    folders = [m.host for m in spec.mounts if not m.read_only]
    return script('[ $# -eq 0 ] || mkdir -p "$@"', *folders, changes="make cache folders")


def _program(spec: RankSpec, secrets_file: str) -> tuple[str, ...]:
    entry = spec.entrypoint or ()
    if secrets_file:
        return ("--entrypoint", "/bin/sh", spec.image, "-c", _WITH_SECRETS, SECRETS_AT, *entry, *spec.argv)
    if spec.entrypoint is None:
        return (spec.image, *spec.argv)
    return ("--entrypoint", entry[0] if entry else "", spec.image, *entry[1:], *spec.argv)


def follow(name: str, tail: int = 0, mark: str = "") -> Command:
    """Log lines (the last `tail`, 0: all) as they come, after the end `\\x1eexit MARK STATUS CODE OOMKILLED ENDED NOW`.

    mark: a word that no line of the log can have. ENDED, NOW: epoch seconds by the node's clock, so that ends on
    several nodes can be put in order. A last line of the log without a line feed runs into it.
    """
    return script(_sh("follow"), name, f"--tail={tail or 'all'}", mark)


def logs(name: str, tail: int) -> Command:
    return script('docker logs --tail "$2" "$1" 2>&1', name, str(tail) if tail else "all", timeout=60)


def stop(names: Sequence[str], grace: int) -> Command:
    """Stops containers but keeps them: their logs are evidence. Exit 1 with the names that still run."""
    return script(_sh("stop"), str(grace), *names, timeout=grace + _BUSY, changes=f"docker stop {' '.join(names)}")


def remove(names: Sequence[str], grace: int) -> Command:
    """Stops, removes and verifies. Exit 1 with the names that are still there."""
    text = f"GRACE={int(grace)}\n{_sh('remove')}"
    return script(text, *names, timeout=grace + _BUSY, changes=f"docker rm {' '.join(names)}")


def pull_image(reference: str) -> Command:
    return script('docker pull "$1" 2>&1', reference, timeout=7200, changes=f"docker pull {reference}")
