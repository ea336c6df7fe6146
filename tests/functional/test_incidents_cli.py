"""`status`, `incidents` and `logs --incident`, from what a supervisor has left on the head node."""

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from functional.command import UserShell
from functional.supervised import SupervisedHead, supervising
from patience import CALL
from sparkwright.adapters.sqlite.store import SqliteStore
from sparkwright.domain.incident import UNWATCHED, Incident, IncidentEvent
from sparkwright.domain.live import DeploymentState

DIAGNOSIS = {
    "causes": [
        {
            "code": "RAY009",
            "title": "a worker died",
            "fix": ["look at the log of rank 1"],
            "proof": [{"source": "rank1-spark-2.log", "number": 2, "text": "Killed"}],
        }
    ]
}


@pytest.fixture
def user_shell(tmp_path: Path) -> Iterator[UserShell]:
    made = UserShell(tmp_path)
    yield made
    made.clean()


@pytest.fixture
def head_node(user_shell: UserShell) -> SupervisedHead:
    return SupervisedHead(user_shell)


async def two_incidents(store: SqliteStore) -> None:
    """One that is over and explained, and one that is open."""
    began = time.time() - 1000
    first = await store.open(Incident("twin", "rank-exited", "rank 1 exited with 137", began, evidence=("exit 137",)))
    Path(first.folder, "rank0-spark-1.log").write_text("head starts\nhead ends\n")
    Path(first.folder, "rank1-spark-2.log").write_text("worker starts\nKilled\n")
    Path(first.folder, "diagnosis.json").write_text(json.dumps(DIAGNOSIS))
    await store.note("twin", IncidentEvent(began + 2, "captured", "logs of 2 ranks"), first.number)
    await store.explain(first.number, "a worker died", "RAY009", ("look at the log of rank 1",))
    await store.close(first.number, began + 65, "serving again", began + 64)
    await store.open(Incident("twin", "frozen", "no token for 31 s", began + 500, simulated=True))


def status(shell: UserShell) -> tuple[int, str, dict[str, object]]:
    code, text, err = shell.run("status")
    again, told, _ = shell.run("status", "--json")
    assert (err, again) == ("", code)
    (found,) = json.loads(told)["deployments"]
    return code, text, found


def seconds_since_ready(text: str, trouble: str) -> int:
    """The age of the last report of a supervisor with this trouble, as `status` shows it."""
    shown = re.search(rf"its supervisor on spark-1 {trouble}; it last reported ready, (\d+) s ago", text)
    assert shown, text
    return int(shown[1])


def test_a_supervisor_reports_the_state(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """The report has the start, memory and time left, canary, incidents and watcher; it wins over the ranks' looks."""
    head_node.write("door/endpoint", "https://spark-1:8443/v1\n")
    with supervising(head_node.home) as pid:
        # A supervisor writes its report every two seconds; this one must be fresh however long the calls take.
        head_node.live(pid=pid, at=time.time() + CALL, troubles=(("leak", "spark-1 loses 14 MiB a request"),))
        code, text, found = status(user_shell)
    assert code == 0, text
    assert text.startswith("SIMULATED  twin: ready for 1 h 01 min  https://spark-1:8443/v1\n")
    assert "problem: spark-1 loses 14 MiB a request" in text
    assert "spark-1  20.0 GiB available, 2.0 GiB less each hour; at its floor in 5 h 00 min" in text
    assert "spark-2  cannot be asked now" in text and "spark-3  not sampled yet" in text
    assert re.search(r"probe request: a simulated token in 0\.4 s, \d+(\.\d)? s ago", text)
    assert "incidents: 2, 1 relaunch, the last: sparkwright incidents show 2" in text
    assert "supervised on spark-1, not restarted after a reboot, for me@laptop" in text
    assert found["state"] == "ready" and found["supervised"]["live"]["nodes"][0]["time_left"] == 18000.0  # type: ignore[index]


def test_while_it_is_away_the_reason_and_the_time_are_there(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """The reason is there between two starts, when no rank is left: `nothing runs` would be a lie."""
    with supervising(head_node.home) as pid:
        waiting = DeploymentState.BACKING_OFF
        said = {"refusing": True, "why": "rank 1 exited", "back_at": time.time() + 7200, "incident": 2}
        head_node.live(pid=pid, at=time.time() + CALL, phase=waiting, reason="waits 30 s before launch 3", **said)
        code, text, found = status(user_shell)
    assert (code, found["state"]) == (1, "backing_off")
    assert "reason: waits 30 s before launch 3" in text
    assert re.search(r"new requests are refused: rank 1 exited; back in about 1 h 5\d min", text), text
    assert "incident 2 is open, 1 relaunch: sparkwright incidents show 2" in text


def test_a_dead_supervisor_is_reported(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """The last report of a dead supervisor is no truth any more."""
    head_node.live(pid=2**22 + 1, at=time.time() - 300)
    code, text, found = status(user_shell)
    assert (code, found["state"]) == (1, "stopped")
    assert 300 <= seconds_since_ready(text, "is not running") < 300 + CALL
    assert "nothing restarts it; the same `sparkwright up` starts one for" in text


def test_a_supervisor_that_hangs_is_reported(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """Its process is there and it writes nothing."""
    with supervising(head_node.home) as pid:
        head_node.live(pid=pid, at=time.time() - 60)
        _, text, _ = status(user_shell)
    assert 60 <= seconds_since_ready(text, "does not answer") < 60 + CALL


def test_a_pid_that_is_somebody_elses_is_no_supervisor(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """The number belongs to another program after a reboot."""
    with supervising(user_shell.folder / "other") as pid:
        head_node.live(pid=pid)
        assert "its supervisor on spark-1 is not running" in status(user_shell)[1]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"at": "x"}'])
def test_a_damaged_live_file_is_no_crash(user_shell: UserShell, head_node: SupervisedHead, text: str) -> None:
    """It is reported that nobody watches."""
    head_node.write("live.json", text)
    code, said, _ = status(user_shell)
    assert code == 1 and "its supervisor on spark-1 is not running: nothing restarts it" in said


async def one_unwatched(store: SqliteStore) -> None:
    """One that is open, and whose supervisor was asked to end."""
    began = time.time() - 60
    made = await store.open(Incident("twin", "frozen", "no token for 31 s", began))
    await store.note("twin", IncidentEvent(began + 20, UNWATCHED, "the supervisor was asked to end"), made.number)


def test_an_incident_that_nothing_watches_is_called_so(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """Guards an `open` that nobody works on: the list and the story say that the supervisor was stopped."""
    before = time.time() - 40
    head_node.store(one_unwatched)
    after = time.time() - 40
    code, text, err = user_shell.run("incidents", "list")
    assert (code, err) == (0, "") and "open, not watched" in text
    told = json.loads(user_shell.run("incidents", "list", "--json")[1])["incidents"][0]
    assert told["open"] and before <= told["unwatched_at"] <= after
    shown = user_shell.run("incidents", "show", "1")[1]
    assert "its supervisor was stopped 20 s after it began; nothing watches it" in " ".join(shown.split())


def test_incidents_are_listed_and_shown(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """An incident shows what, when, evidence, cause, proof, fix, actions, and its end; without any supervisor."""
    head_node.store(two_incidents)
    code, text, err = user_shell.run("incidents", "list")
    assert (code, err) == (0, "")
    first, second = text.splitlines()
    assert first.split()[0] == "2" and "SIMULATED  frozen" in first and "open" in first
    assert second.split()[0] == "1" and "serving again, 64 s away" in second and "a worker died" in second
    code, text, _ = user_shell.run("incidents", "show", "1")
    assert code == 0
    for part in (
        "incident 1  twin: rank-exited",
        "what      rank 1 exited with 137",
        "evidence  exit 137",
        "cause     a worker died [RAY009]",
        "proof     rank1-spark-2.log:2  Killed",
        "by hand   look at the log of rank 1",
        "+2.0 s  captured: logs of 2 ranks",
        "serving again, clients got nothing for 64 s",
        "diagnosis.json, rank0-spark-1.log, rank1-spark-2.log",
    ):
        assert part in text, part


def test_json_has_all_of_it(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """Scripts get the same fields in the list and of one incident."""
    head_node.store(two_incidents)
    listed = json.loads(user_shell.run("incidents", "list", "twin", "--json")[1])
    assert [(row["number"], row["open"], row["on"]) for row in listed["incidents"]] == [
        (2, True, "spark-1"),
        (1, False, "spark-1"),
    ]
    shown = json.loads(user_shell.run("incidents", "show", "1", "--json")[1])["incident"]
    assert (shown["code"], round(shown["away"]), shown["diagnosis"]) == ("RAY009", 64, DIAGNOSIS)
    assert {"name": "rank1-spark-2.log", "bytes": 21} in shown["files"]
    assert json.loads(user_shell.run("incidents", "list", "other", "--json")[1])["incidents"] == []


def test_restarts_that_belong_to_no_incident_are_listed(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """Clients had no answer for a moment: which program it was, when and why."""

    async def restarted(store: SqliteStore) -> None:
        await store.note("twin", IncidentEvent(time.time(), "restarted", "the gateway (Caddy) was restarted: killed"))

    head_node.store(restarted)
    text = user_shell.run("incidents", "list")[1]
    assert "-" not in text.split() and "restarted" in text and "the gateway (Caddy) was restarted: killed" in text
    (row,) = json.loads(user_shell.run("incidents", "list", "twin", "--json")[1])["restarts"]
    assert (row["deployment"], row["kind"], row["on"]) == ("twin", "restarted", "spark-1")


def test_an_old_incident_is_known_from_its_row(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """Its folder made room for newer ones: what was written down of it stays."""
    head_node.store(two_incidents)
    head_node.rows_only(1)
    text = user_shell.run("incidents", "show", "1")[1]
    assert "cause     a worker died [RAY009]" in text and "+2.0 s  captured: logs of 2 ranks" in text
    assert "its evidence is no longer kept" in text
    code, _, err = user_shell.run("logs", "twin", "--incident", "1")
    assert code == 2 and "incident 1 has no log" in err


def test_a_store_of_an_earlier_version_is_read(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """A laptop with a newer program than the node's: columns that were added since are not asked for."""
    head_node.store(two_incidents)
    head_node.rows_only(1)
    exact = json.loads(user_shell.run("incidents", "show", "1", "--json")[1])["incident"]
    assert (round(exact["away"]), exact["away_word"]) == (64, "")
    with closing(sqlite3.connect(head_node.state / "store.sqlite")) as connection:
        for name in ("boot_node", "boot", "began_up", "away_seconds", "away_word"):
            connection.execute(f"ALTER TABLE incidents DROP COLUMN {name}")
        connection.execute("PRAGMA user_version=2")
        connection.commit()
    text = user_shell.run("incidents", "show", "1")[1]
    assert "cause     a worker died [RAY009]" in text and "its evidence is no longer kept" in text


@pytest.mark.parametrize("damage", ["newer", "garbage", "gone"])
def test_without_its_store_the_folders_are_read(user_shell: UserShell, head_node: SupervisedHead, damage: str) -> None:
    """A store of a newer version, a damaged one, none: one sentence where something is wrong, and the incidents."""
    head_node.store(two_incidents)
    path = head_node.state / "store.sqlite"
    if damage == "newer":
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version=99")
        connection.close()
    elif damage == "garbage":
        path.write_bytes(b"no database" * 1000)
    else:
        path.unlink()
    code, text, err = user_shell.run("incidents", "list")
    assert (code, len(text.splitlines())) == (0, 2)
    said = {"newer": "of a newer version: 99", "garbage": "not a database", "gone": ""}[damage]
    assert (said in err and len(err.splitlines()) == 1) if said else err == ""


def test_logs_of_an_incident(user_shell: UserShell, head_node: SupervisedHead) -> None:
    """All ranks, one rank, the last lines."""
    head_node.store(two_incidents)
    code, text, _ = user_shell.run("logs", "twin", "--incident", "1")
    assert (code, text) == (0, "0| head starts\n0| head ends\n1| worker starts\n1| Killed\n")
    assert user_shell.run("logs", "twin", "--incident", "1", "--rank", "1", "--tail", "1")[1] == "1| Killed\n"
    line = json.loads(user_shell.run("logs", "twin", "--incident", "1", "--tail", "1", "--json")[1].splitlines()[0])
    assert line == {
        "schema": 1,
        "document": "logs",
        "rank": 0,
        "node": "spark-1",
        "simulated": False,
        "line": "head ends",
        "deployment": "twin",
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["incidents", "show", "9"], "no incident 9 on spark-1, spark-2"),
        (["incidents", "show", "0"], "found '0', expected a whole number of at least 1"),
        (["incidents", "list", "Not/A/Name"], "is no deployment's name"),
        (["logs", "twin", "--incident", "9"], "no incident 9"),
        (["logs", "other", "--incident", "1"], "no incident 1"),
        (["logs", "twin", "--incident", "1", "--rank", "7"], "has no log of rank 7"),
        (["logs", "twin", "--incident", "1", "-f"], "--follow and --incident exclude each other"),
    ],
)
def test_misuse_is_reported(user_shell: UserShell, head_node: SupervisedHead, words: list[str], said: str) -> None:
    """Exit 2 with a sentence, never a traceback."""
    head_node.store(two_incidents)
    code, _, err = user_shell.run(*words)
    assert code == 2 and said in err and "Traceback" not in err
