"""The gateway as `up` makes it ready on a head node, with everything that can be wrong there."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from functional.gateway.gateways import has_caddy, hides_cut_streams
from functional.gateway.head import GatewayHead, free_pair
from functional.simulator.process import HEAD_ADDRESS, SimulatorProcess
from sparkwright.adapters.artifacts import FolderKeyring
from sparkwright.app.serve.gateway import NO_KEY_HERE, GatewayReach, install_gateway
from sparkwright.app.setup import keys
from sparkwright.domain.errors import CommandFailed, UsageError
from sparkwright.domain.recipe import Gateway, GatewayTls

Made = Callable[..., GatewayHead]
USUAL = {"DOOR002"} if hides_cut_streams() else set()


@pytest.fixture
def make_head(tmp_path: Path, engine: SimulatorProcess) -> Iterator[Made]:
    if not has_caddy():
        pytest.skip("caddy is not installed")
    heads: list[GatewayHead] = []

    def make(**how: object) -> GatewayHead:
        heads.append(GatewayHead(tmp_path / f"{len(heads)}", engine.port, **how))  # type: ignore[arg-type]
        return heads[-1]

    yield make
    for head in heads:
        head.end()


def make_certificate(folder: Path, days: int, *, of: str = "own") -> tuple[str, str]:
    """A certificate for 127.0.0.1 that ends in so many days (negative: it has ended), and its key."""
    folder.mkdir(exist_ok=True)
    certificate, key = folder / f"{of}.pem", folder / f"{of}.key"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        "/CN=x",
    ]
    san = ["-addext", "subjectAltName=IP:127.0.0.1", "-days", str(max(days, 1))]
    subprocess.run([*words, *san, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    if days < 0:
        began = ["-set_serial", "1", "-days", "-1", "-signkey", key]
        subprocess.run(
            ["openssl", "x509", "-in", certificate, *began, "-out", certificate], check=True, capture_output=True
        )
    key.chmod(0o600)
    return str(certificate), str(key)


async def test_up_makes_a_gateway_and_a_key(make_head: Made) -> None:
    """Guards the whole: a key in a file of mine, a CA to trust, a request that is answered; modes of all secrets."""
    head = make_head()
    furnished, (reach, said) = await head.up()
    assert {finding.code for finding in furnished.findings} == USUAL
    assert (furnished.key, furnished.said, said) == (f"{head.folder}/laptop/desk/default.key", (), ())
    assert reach == GatewayReach(f"{head.url}/v1", authority=f"{head.folder}/laptop/desk/ca.crt")
    assert head.status(head.key()) == 200
    assert head.status("x") == 401
    key_file = head.folder / "laptop" / "desk" / "default.key"
    assert key_file.stat().st_mode & 0o777 == 0o600
    for path in (Path(head.where.state) / "door", Path(head.where.home) / "door"):
        assert path.stat().st_mode & 0o777 == 0o700
        assert head.key() not in "".join(p.read_text() for p in path.glob("*.json"))
    second = replace(head.services, keyring=FolderKeyring(head.folder / "second laptop"))
    there = await install_gateway(second, head.plan, head.where)
    assert (there.key, there.said) == ("", (NO_KEY_HERE,)), "its owner is told that only another machine has a key"


async def test_up_again_changes_nothing_and_takes_over_what_changed(make_head: Made) -> None:
    """Guards that a second call makes no second key, and that a running Caddy learns of a new limit automatically."""
    head = make_head()
    await head.up()
    key = head.key()
    furnished, _ = await head.up()
    assert furnished.key == f"{head.folder}/laptop/desk/default.key"
    assert head.key() == key
    head.gateway = replace(head.gateway, names=("spark.example.org",))
    await head.up()
    asked = ["openssl", "s_client", "-connect", f"127.0.0.1:{head.gateway.port}", "-servername", "spark.example.org"]
    told = subprocess.run(asked, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60).stdout
    assert "Sparkwright gateway" in told
    assert head.running["caddy"].poll() is None


@pytest.mark.full
async def test_a_certificate_that_failed_at_first_is_made_again_at_once(make_head: Made) -> None:
    """Guards the start on a busy or full disk: Caddy would try again after a minute, and answers with a TLS alert."""
    head = make_head()
    certificates = Path(head.where.state) / "door/ca/certificates/local/localhost"
    obstacle = certificates / "localhost.json"  # Caddy puts a file there, which it cannot
    (obstacle / "x").mkdir(parents=True)
    up = asyncio.create_task(head.up())
    while "will retry" not in caddy_log(head):
        assert not up.done(), up.result()
        await asyncio.sleep(0.05)
    (obstacle / "x").rmdir()
    obstacle.rmdir()
    _, (reach, said) = await up
    assert reach and said == ()
    assert head.status(head.key()) == 200


def caddy_log(head: GatewayHead) -> str:
    path = head.folder / "caddy.log"
    return path.read_text() if path.exists() else ""


async def test_keys_are_added_and_revoked_while_it_serves(make_head: Made) -> None:
    """Guards that each key works at once, ends at once, and that taken or unknown names are reported."""
    head = make_head()
    await head.up()
    added = await keys.create_key(head.services, "laptop")
    only = await keys.create_key(head.services, "other", "big")
    assert head.status(added.secret.reveal()) == 200
    assert head.status(only.secret.reveal()) == 401
    assert [key.name for key in (await keys.listed(head.services)).keys] == ["default", "laptop", "other"]
    with pytest.raises(UsageError, match="there already"):
        await keys.create_key(head.services, "laptop")
    await keys.revoke(head.services, "laptop")
    assert head.status(added.secret.reveal()) == 401
    assert head.status(head.key()) == 200
    with pytest.raises(UsageError, match="no key laptop"):
        await keys.revoke(head.services, "laptop")


async def test_two_who_add_at_once_both_get_their_key(make_head: Made) -> None:
    """Guards against a key that is lost because somebody else wrote the file a moment later."""
    head = make_head()
    await asyncio.gather(*(keys.create_key(head.services, f"k{n}") for n in range(4)))
    assert {key.name for key in (await keys.listed(head.services)).keys} == {"k0", "k1", "k2", "k3"}


async def test_a_given_certificate_serves(make_head: Made, tmp_path: Path) -> None:
    """Guards tls: files, and that its near end is reported."""
    certificate, key = make_certificate(tmp_path / "pki", 5)
    head = make_head(gateway=Gateway(free_pair(), GatewayTls.FILES, certificate, key))
    furnished, _ = await head.up()
    assert {finding.code for finding in furnished.findings} == {"DOOR004"} | USUAL
    assert head.status(head.key(), verify=certificate) == 200


@pytest.mark.parametrize("wrong", ["expired", "differs", "missing", "unreadable", "no key"])
async def test_a_certificate_that_cannot_serve_is_reported_and_the_internal_ca_does(
    make_head: Made, tmp_path: Path, wrong: str
) -> None:
    """Guards that serving continues with one clear finding."""
    certificate, key = make_certificate(tmp_path / "pki", -1 if wrong == "expired" else 90)
    if wrong == "differs":
        key = make_certificate(tmp_path / "pki", 90, of="other")[1]
    if wrong == "missing":
        Path(certificate).unlink()
    if wrong == "unreadable":
        Path(certificate).write_text("-----BEGIN CERTIFICATE-----\nx\n")
    if wrong == "no key":
        Path(key).unlink()
    head = make_head(gateway=Gateway(free_pair(), GatewayTls.FILES, certificate, key))
    furnished, _ = await head.up()
    (finding,) = [f for f in furnished.findings if f.code not in USUAL]
    assert finding.code == "DOOR003"
    assert certificate in finding.evidence
    assert head.status(head.key()) == 200


async def test_without_caddy_there_is_one_finding_and_the_figures(make_head: Made, tmp_path: Path) -> None:
    """Guards that a missing Caddy stops nothing else."""
    bare = tmp_path / "bin"
    bare.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name != "caddy":
            (bare / program.name).symlink_to(program)
    head = make_head(path=str(bare))
    furnished, _ = await head.up()
    assert [finding.code for finding in furnished.findings] == ["DOOR001"]
    assert [service.name for service in furnished.services] == ["door"]
    head.wait_for_figures()


@pytest.mark.full
async def test_figures_that_have_no_port_are_reported(make_head: Made) -> None:
    """Guards two gateways whose ports are neighbours: it opens, and the missing figures are reported."""
    head = make_head()
    with socket.create_server(("127.0.0.1", head.gateway.port + 1)) as other:
        other.settimeout(0.1)
        _, (reach, said) = await head.up()
    assert reach and f"port {head.gateway.port + 1} is taken" in said[0]
    assert head.status(head.key()) == 200


async def test_a_taken_port_is_reported_with_who_has_it(make_head: Made) -> None:
    """Guards that Caddy is not started to fail again and again; its own port is none that is taken."""
    head = make_head()
    with socket.create_server((HEAD_ADDRESS, head.gateway.port)):
        furnished, _ = await head.up()
        assert "DOOR006" in {finding.code for finding in furnished.findings}
        assert [service.name for service in furnished.services] == ["door"]
    assert "DOOR006" not in {finding.code for finding in (await head.up())[0].findings}
    assert "DOOR006" not in {finding.code for finding in (await head.up())[0].findings}


@pytest.mark.full
async def test_keys_with_wrong_rights_or_content_are_reported(make_head: Made) -> None:
    """Guards both findings; with a broken file the gateway keeps out, and the command reports what to do."""
    head = make_head()
    await head.up()
    assert head.status(head.key()) == 200
    file = Path(head.where.state) / "door" / "keys.json"
    file.chmod(0o644)
    assert "DOOR005" in {finding.code for finding in (await head.up())[0].findings}
    file.chmod(0o600)
    file.write_text('{"keys": [{"na')
    furnished, _ = await head.up()
    assert {finding.code for finding in furnished.findings} == {"DOOR007"} | USUAL
    assert "no key could be made" in furnished.said[0]
    # What it has read before holds for two seconds (tests/unit/supervisor); `up` may take longer than that.
    assert head.status(head.key()) in (200, 401)
    with pytest.raises(CommandFailed, match="cannot be read"):
        await keys.listed(head.services)


@pytest.mark.full
async def test_a_list_of_keys_that_was_emptied_is_named_and_made_again_by_up(make_head: Made) -> None:
    """Guards a way back with a new key only: an old one may have been revoked."""
    head = make_head()
    await head.up()
    old, file = head.key(), Path(head.where.state) / "door" / "keys.json"
    file.write_text("")
    furnished, _ = await head.up()
    assert {finding.code for finding in furnished.findings} == {"DOOR007"} | USUAL
    assert old != head.key() and (head.status(head.key()), head.status(old)) == (200, 401)
    assert {finding.code for finding in (await head.up())[0].findings} == USUAL
