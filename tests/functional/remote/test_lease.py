"""The lease of a node: the real scripts, in a folder of this machine."""

import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from fakes.sh import Sh
from sparkwright.domain.command import Command, Completed
from sparkwright.remote import lease

MINE, THEIRS = "0123456789abcdef", "fedcba9876543210"  # random hex, as real ones: no other field holds it


def content(nonce: str) -> str:
    return json.dumps({"holder": "anna@laptop", "why": "up twin", "since": 1, "nonce": nonce})


def take_lease(sh: Sh, nonce: str) -> Completed:
    return sh.run(lease.take_lease(content(nonce), nonce))


def holder(sh: Sh) -> str:
    """The nonce of who holds it, '' for nobody."""
    shown = sh.run(lease.show_lease()).stdout.partition("\n")[2]
    return json.loads(shown)["nonce"] if shown else ""


def file_names(sh: Sh) -> list[str]:
    return sorted(path.name for path in sh.home.rglob("*") if path.is_file())


@pytest.mark.parametrize("round_", range(3))
def test_of_twenty_at_once_exactly_one_takes_it(node_shell: Sh, round_: int) -> None:
    """Two people cannot both change a node: link(2) decides, and anyone who loses is shown who won."""
    names = [f"{number:016x}" for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda nonce: take_lease(node_shell, nonce), names))
    assert sorted(one.exit_code for one in done) == [0] + [lease.HELD] * 19
    winner = next(name for name, one in zip(names, done, strict=True) if one.ok)
    assert holder(node_shell) == winner
    for one in done:
        age, _, text = one.stdout.partition("\n")
        assert one.ok or (age.isdigit() and json.loads(text)["nonce"] == winner)
    assert len(file_names(node_shell)) == 1, "a loser leaves nothing behind"


def test_a_taker_never_sees_half_of_anything_while_it_changes_hands(node_shell: Sh) -> None:
    """Taken and given back again and again by many: each call is either winner or loser with a whole answer."""

    def turns(number: int) -> list[Completed]:
        found = []
        for _ in range(6):
            done = take_lease(node_shell, f"{number:016x}")
            found.append(done)
            if done.ok:
                node_shell.run(lease.release(f"{number:016x}"))
        return found

    with ThreadPoolExecutor(6) as pool:
        done = [one for turn in pool.map(turns, range(6)) for one in turn]
    assert {one.exit_code for one in done} <= {0, lease.HELD}, [one for one in done if one.exit_code not in (0, 9)]
    assert all(json.loads(one.stdout.partition("\n")[2]) for one in done if not one.ok)
    assert file_names(node_shell) == []


def test_taking_it_twice_is_taking_it_once(node_shell: Sh) -> None:
    """A call that is repeated after a lost connection finds its own lease and goes on."""
    assert take_lease(node_shell, MINE).ok and take_lease(node_shell, MINE).ok
    assert holder(node_shell) == MINE


def test_only_the_holder_gives_it_back(node_shell: Sh) -> None:
    """Somebody who lost the lease must not take away the winner's."""
    take_lease(node_shell, MINE)
    assert node_shell.run(lease.release(THEIRS)).ok
    assert holder(node_shell) == MINE
    assert node_shell.run(lease.release(MINE)).ok
    assert holder(node_shell) == ""
    assert node_shell.run(lease.release(MINE)).ok, "giving back what is not there is fine"


def test_renewing_is_a_sign_of_life(node_shell: Sh) -> None:
    """The age that others are reported counts from the last renewal."""
    take_lease(node_shell, MINE)
    (file,) = [path for path in node_shell.home.rglob("*") if path.is_file()]
    os.utime(file, (1, 1))
    assert int(take_lease(node_shell, THEIRS).stdout.partition("\n")[0]) > 1000
    assert node_shell.run(lease.renew_lease(MINE)).ok
    assert int(take_lease(node_shell, THEIRS).stdout.partition("\n")[0]) < 10


def test_renewing_what_is_given_back_meanwhile_leaves_nothing(
    node_shell: Sh, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Guards the next command: an empty lease, made again by a late renewal, once kept everybody out for ever."""
    take_lease(node_shell, MINE)
    (file,) = [path for path in node_shell.home.rglob("*") if path.is_file()]
    programs = tmp_path_factory.mktemp("programs")
    (programs / "grep").write_text(f'#!/bin/sh\n{shutil.which("grep")} "$@"; found=$?; rm -f {file}; exit $found\n')
    (programs / "grep").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    node_shell.run(lease.renew_lease(MINE))
    assert not file.exists()
    assert take_lease(node_shell, THEIRS).ok


def test_seizing_takes_it_from_its_holder(node_shell: Sh) -> None:
    """The old holder's next renewal reports it, and its release takes nothing from the new one."""
    take_lease(node_shell, MINE)
    assert node_shell.run(lease.seize_lease(content(THEIRS), THEIRS)).ok
    assert holder(node_shell) == THEIRS
    lost = node_shell.run(lease.renew_lease(MINE))
    assert not lost.ok
    node_shell.run(lease.release(MINE))
    assert holder(node_shell) == THEIRS


def test_seizing_a_free_one_is_taking_it(node_shell: Sh) -> None:
    """--break-lease does no harm where nothing is to be broken."""
    assert node_shell.run(lease.seize_lease(content(MINE), MINE)).ok
    assert holder(node_shell) == MINE


@pytest.mark.parametrize("make", [lease.take_lease, lease.seize_lease])
def test_a_link_that_somebody_left_is_not_followed(node_shell: Sh, make: Callable[[str, str], Command]) -> None:
    """Everybody may write next to the lease, and a supervisor's nonce stays the same: no file of ours is lost by it."""
    folder, mine = node_shell.home / "sparkwright", node_shell.home / "authorized_keys"
    folder.mkdir()
    mine.write_text("ssh-ed25519 KEY\n")
    (folder / f"lease.{MINE}").symlink_to(mine)
    assert node_shell.run(make(content(MINE), MINE)).ok and holder(node_shell) == MINE
    assert mine.read_text() == "ssh-ed25519 KEY\n" and not (folder / "lease").is_symlink()


def test_nothing_to_show_is_nothing(node_shell: Sh) -> None:
    """A free node has no lease; asking leaves no trace."""
    assert node_shell.run(lease.show_lease()) == Completed(0, "", "")
    assert not node_shell.run(lease.renew_lease(MINE)).ok
    assert file_names(node_shell) == []


@pytest.mark.parametrize("kind", ["fifo", "folder", "link to a fifo"])
def test_what_is_no_lease_is_named_at_once_with_its_owner(node_shell: Sh, kind: str) -> None:
    """Guards against another user of the node who lays something there: no waiting, who it was, and a way on."""
    folder = node_shell.home / "sparkwright"
    folder.mkdir()
    if kind == "folder":
        (folder / "lease").mkdir()
    else:
        os.mkfifo(folder / ("lease" if kind == "fifo" else "other"))
    if kind == "link to a fifo":
        (folder / "lease").symlink_to(folder / "other")
    done = take_lease(node_shell, MINE)
    assert done.exit_code == lease.ODD and "of user root: " in done.stderr.replace(
        os.environ.get("USER", "root"), "root"
    )
    assert node_shell.run(lease.renew_lease(MINE)).exit_code == lease.HELD
    assert node_shell.run(lease.release(MINE)).ok and node_shell.run(lease.show_lease()).stdout == ""
    if kind != "folder":
        assert node_shell.run(lease.seize_lease(content(MINE), MINE)).ok and holder(node_shell) == MINE


def test_copying_to_a_node_does_not_keep_its_ranks_from_being_changed(node_shell: Sh) -> None:
    """Guards what serves while the weights of its replacement are copied for hours: its supervisor can launch it."""
    staging = lease.Of.STAGING
    assert node_shell.run(lease.take_lease(content(THEIRS), THEIRS, staging)).ok
    assert take_lease(node_shell, MINE).ok and holder(node_shell) == MINE
    assert node_shell.run(lease.take_lease(content(MINE), MINE, staging)).exit_code == lease.HELD, (
        "one copies at a time"
    )
    assert node_shell.run(lease.release(THEIRS, staging)).ok and holder(node_shell) == MINE
    assert not node_shell.run(lease.renew_lease(THEIRS, staging)).ok
