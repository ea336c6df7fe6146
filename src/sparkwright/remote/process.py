"""An engine without Docker: a session leader with a pid file, a log file and an exit file in one folder per rank.

The folder is `<state>/deployments/<deployment>/rank<k>`:
  rank.json   labels, as on a container
  pid         `PID START`: START is field 22 of /proc/PID/stat, so that a reused pid is not taken for ours
  log         stdout and stderr
  over        exit code, as soon as the engine has ended
  exit        exit code, once all that it printed is in the log
  alive       locked (flock) by the leader for as long as it lives: who waits for its end need not look again and again
  secrets.env 0600, sourced before the start
  leader.sh, printer.sh, environment  what the leader runs, takes the log with, and gives the engine
  files/      what RankSpec.files names
  temporary   folders below /tmp that a launcher has made for the rank, one a line
  memory      a link, once the disk was full: what could not be written any more, the log's last lines above all

Where the disk is full when the rank is started, the folder itself is a link into memory.
"""

from collections.abc import Sequence

from sparkwright.domain.command import Command
from sparkwright.domain.plan import RankSpec
from sparkwright.remote.host import assigned, exported, script, script_texts

_sh = script_texts(__name__)

FUNCTIONS = _sh("pid_functions", "functions")
ROOM = _sh("room")
LIST = FUNCTIONS + _sh("list")
_WITH_ROOM = FUNCTIONS + ROOM


def rank_dir(state: str, deployment: str, rank: int) -> str:
    return f"{state}/deployments/{deployment}/rank{rank}"


def keeper_dir(state: str, deployment: str, rank: int) -> str:
    """The folder of the process that keeps a rank's weights: like a rank's, and apart, since it outlives the rank."""
    return f"{state}/keepers/{deployment}/rank{rank}"


def place_keeper(directory: str, sockets: str) -> Command:
    """Makes its folder, and that of its sockets, which goes with it."""
    text = ROOM + 'umask 077; place "$(x "$1")" && mkdir -p "$2" && printf "%s\\n" "$2" >"$(x "$1")/temporary"'
    return script(text, directory, sockets, changes=f"make {directory}")


def files_dir(directory: str) -> str:
    """The folder of RankSpec.files on the node, for both runtimes."""
    return f"{directory}/files"


def make_folder(directory: str) -> Command:
    """Makes the rank's folder, for what is put there before the start; in memory where the disk is full."""
    return script(ROOM + 'umask 077; place "$(x "$1")"', directory, changes=f"make {directory}")


def start(spec: RankSpec, directory: str, labels: str) -> Command:
    """Starts the rank and returns once its pid file is there. Exit 9: it runs already. Also on a full disk."""
    texts_of = {"leader": _WITH_ROOM + _sh("leader"), "printer": _sh("room", "printer"), "scope": _sh("scope")}
    given = assigned(**texts_of, labels=labels, environment=exported(spec.env.items()))
    words = (*(spec.entrypoint or ()), *spec.argv)
    return script(_WITH_ROOM + given + _sh("start"), directory, *words, timeout=30, changes=f"start {directory}")


def follow(directory: str, tail: int = 0, mark: str = "") -> Command:
    """Log lines (the last `tail`, 0: all) as they come; after the end a line as docker.follow gives it."""
    return script(FUNCTIONS + _sh("printed", "follow"), directory, str(tail) if tail else "+1", mark)


def logs(directory: str, tail: int) -> Command:
    return script(_sh("printed") + 'printed "$(x "$1")" "$2"', directory, str(tail) if tail else "+1", timeout=60)


def stop(directories: Sequence[str], grace: int) -> Command:
    """TERM, then KILL after `grace` seconds, then verified gone. Keeps the folders. Exit 1 with what still lives."""
    return _stop(FUNCTIONS + _sh("stop") + "exit $rc", directories, grace)


def remove(directories: Sequence[str], grace: int) -> Command:
    """Stops the ranks like `stop`, then removes the folders."""
    return _stop(FUNCTIONS + _sh("stop", "room", "remove"), directories, grace)


def _stop(text: str, directories: Sequence[str], grace: int) -> Command:
    return script(text, str(grace), *directories, timeout=grace + 30, changes=f"stop {' '.join(directories)}")
