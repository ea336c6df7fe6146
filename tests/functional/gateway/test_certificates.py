"""Files of the gateway's own CA that are damaged on the head, with the real Caddy."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from functional.gateway.gateways import LocalGateway, has_caddy
from functional.simulator.process import HEAD_ADDRESS, wait_until
from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.ssh import SshSettings
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.gateway.caddy import certificate_folders
from sparkwright.remote.gateway import certificates

NAME, AUTHORITY = "certificates/local/localhost/localhost", "pki/authorities/local"
FILES = (
    *(f"{NAME}.{end}" for end in ("crt", "key", "json")),
    *(f"{AUTHORITY}/{which}.{end}" for which in ("intermediate", "root") for end in ("crt", "key")),
)


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[LocalGateway]:
    """A gateway whose clients were given its CA; nothing runs any more."""
    if not has_caddy():
        pytest.skip("caddy is not installed")
    gateway = LocalGateway(tmp_path / "tiny", f"{HEAD_ADDRESS}:1")
    gateway.home.mkdir()
    gateway.write()
    gateway.start_caddy()
    folders = [Path(folder) for folder in certificate_folders(gateway.front)]
    wait_until("each name has its certificate", lambda: all((one / f"{one.name}.json").exists() for one in folders))
    shutil.copy(gateway.home / "ca" / AUTHORITY / "root.crt", gateway.home / "given.crt")
    assert mended(gateway) == ([], "")
    yield gateway
    gateway.end()


def mended(gateway: LocalGateway, renew: bool = False) -> tuple[list[str], str]:
    """The report of the program as a supervisor runs it."""
    cluster = Cluster("desk", (Node("spark-1", "local"),), "spark-1")
    command = certificates(str(gateway.home / "ca"), str(gateway.folder), renew)
    done = asyncio.run(ClusterHosts(cluster, SshSettings())["spark-1"].run(command))
    assert done.ok, done.stderr
    found = json.loads(done.stdout)
    return found["mended"], found["lost"]


def answers(gateway: LocalGateway) -> bool:
    """True if a client that has the CA of the beginning gets through."""
    try:
        trusted = ssl.create_default_context(cafile=str(gateway.home / "given.crt"))
        with httpx.Client(verify=trusted) as client:
            return client.get(gateway.url).status_code == 404
    except httpx.TransportError:
        return False


def damage(path: Path, how: str) -> None:
    whole = path.read_bytes()
    path.write_bytes({"garbled": b"\0garbage\n" * 30, "empty": b"", "half": whole[: len(whole) // 2]}[how])


@pytest.mark.full
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("how", ["garbled", "empty", "half"])
def test_a_damaged_file_of_the_ca_is_made_good_and_clients_need_nothing(
    stopped: LocalGateway, file: str, how: str
) -> None:
    """Guards heads after a power cut: Caddy fails for good on a certificate or key that it cannot read."""
    stopped.end()
    damage(stopped.home / "ca" / file, how)
    said, lost = mended(stopped)
    assert (len(said), lost) == (1, "")
    stopped._run("caddy", ["caddy", "run", "--config", "caddy.json"])
    wait_until(lambda: f"clients get through: {stopped.log('caddy')[-300:]}", lambda: answers(stopped))
    assert mended(stopped) == ([], "")


def test_files_that_their_owner_may_not_read_are_opened_and_the_ca_stays(stopped: LocalGateway) -> None:
    """Guards somebody's `chmod`: the CA is whole, and clients need no other one."""
    stopped.end()
    store = stopped.home / "ca"
    inside = sorted(store.rglob("*"), reverse=True)
    for path in (*inside, store):
        path.chmod(0)
    said, lost = mended(stopped)
    assert said == [f"{len(inside) + 1} files of the CA could not be read by their owner: their mode is right again"]
    assert lost == "" and all(path.stat().st_mode & 0o600 == 0o600 for path in inside)
    stopped._run("caddy", ["caddy", "run", "--config", "caddy.json"])
    wait_until("clients get through", lambda: answers(stopped))
    assert mended(stopped) == ([], "")


def test_a_running_caddy_takes_the_mended_certificate_over(stopped: LocalGateway) -> None:
    """Guards that a gateway which began with a damaged certificate serves without a restart."""
    stopped.end()
    damage(stopped.home / "ca" / f"{NAME}.crt", "garbled")
    stopped._run("caddy", ["caddy", "run", "--config", "caddy.json"])
    wait_until("Caddy has seen the damage", lambda: "unusable certificate" in stopped.log("caddy"))
    assert not answers(stopped)
    said, lost = mended(stopped)
    assert said == ["the certificate of localhost was damaged"] and not lost
    wait_until("clients get through", lambda: answers(stopped))
    assert stopped.processes["caddy"].poll() is None


def test_a_certificate_of_another_ca_is_made_again(stopped: LocalGateway) -> None:
    """Guards a store that was put together from two backups: each file is whole, and no client trusts it."""
    stopped.end()
    ca = stopped.home / "ca"
    kept = stopped.home / "kept"
    shutil.copytree(ca, kept)
    shutil.rmtree(ca)
    stopped.write()
    stopped.start_caddy()
    stopped.end()
    for name in ("root.crt", "root.key"):
        shutil.copy(kept / AUTHORITY / name, ca / AUTHORITY / name)
    said, lost = mended(stopped)
    assert any("not signed by this CA" in text for text in said) and not lost
    stopped._run("caddy", ["caddy", "run", "--config", "caddy.json"])
    wait_until("clients get through", lambda: answers(stopped))


def test_a_ca_without_a_copy_is_lost_and_made_new_by_up_alone(stopped: LocalGateway) -> None:
    """Guards that no supervisor changes the CA behind its clients' backs, and that `up` gets the gateway going."""
    (stopped.home / "given.key").unlink()
    damage(stopped.home / "ca" / AUTHORITY / "root.key", "empty")
    said, lost = mended(stopped, renew=True)
    assert not said and "root.key" in lost, "Caddy runs and serves: nothing is taken away"
    assert answers(stopped)
    stopped.end()
    said, lost = mended(stopped)
    assert not said and "root.key" in lost
    said, lost = mended(stopped, renew=True)
    assert len(said) == 1 and "a new CA is made" in said[0] and not lost
    stopped.start_caddy()


def test_the_copy_of_the_key_is_as_private_as_the_key(stopped: LocalGateway) -> None:
    """Guards the second copy of the CA's key: nobody else may read it."""
    assert (stopped.home / "given.key").stat().st_mode & 0o777 == 0o600
    assert (stopped.home / "given.key").read_bytes() == (stopped.home / "ca" / AUTHORITY / "root.key").read_bytes()
