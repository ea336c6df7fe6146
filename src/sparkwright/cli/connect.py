"""`sparkwright connect`: settings for clients, the tunnel that they need, and one request that shows that they work."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from pathlib import Path
from typing import Any

import click

from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import options as shared
from sparkwright.cli.columns import SIMULATED, aligned, echo_text
from sparkwright.cli.kinds import checked_url
from sparkwright.domain.errors import UsageError
from sparkwright.domain.units import duration
from sparkwright.domain.values import asdict, dataclass, replace


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """The command line of `connect`. client, target: '' where none is named. dry: of --dry-run. listing: of --list."""

    client: str
    target: str
    where: ClusterOptions
    as_json: bool
    key: str
    key_file: Path | None
    ca: Path | None
    model: str
    show_key: bool
    write: bool
    dry: bool
    undo: bool
    tunnel: bool
    stop: bool
    listing: bool
    check: bool


@click.command()
@click.argument("client", required=False, default="", shell_complete=shared.complete.clients)
@click.argument(
    "target", required=False, default="", metavar="[DEPLOYMENT | URL]", shell_complete=shared.complete.targets
)
@click.option("--key", default="", metavar="NAME", help="Name of the key. [default: one that opens the deployment]")
@click.option(
    "--key-file", metavar="FILE", type=click.Path(path_type=Path), default=None, help="File with the key, for a URL."
)
@click.option(
    "--ca", metavar="FILE", type=click.Path(path_type=Path), default=None, help="File with the authority, for a URL."
)
@click.option("--model", default="", metavar="NAME", help="Model to use, where several are served.")
@click.option("--show-key", is_flag=True, help="Also print the key itself.")
@click.option("--write", is_flag=True, help="Write the settings to where the client reads them.")
@click.option("--dry-run", "dry", is_flag=True, help="With --write: print the change and exit; write nothing.")
@click.option("--undo", is_flag=True, help="Put back what was there before --write.")
@click.option("--tunnel", is_flag=True, help="Open an ssh tunnel to the gateway in the background.")
@click.option("--stop", is_flag=True, help="End the tunnel of NAME, or all tunnels.")
@click.option("--list", "listing", is_flag=True, help="List clients and tunnels.")
@click.option("--check/--no-check", default=True, help="Send one request as the client would. [default: --check]")
@shared.cluster_options
@shared.json_option
def connect(**given: Any) -> None:
    """Print settings of a client for a deployment, and check them with one request.

    Model and context are what the endpoint reports; what it does not report is left out. The key is named by its file
    and printed only with --show-key.

    Exit status: 0 the client works, 1 it does not, 2 usage error, 3 a node could not be reached, 5 no answer.

    \b
    Examples:
      sparkwright connect claude-code
      sparkwright connect codex deepseek-v4-flash --write
      sparkwright connect opencode --tunnel --write
      sparkwright connect curl https://spark-1:8443/v1 --key-file KEY --ca ca.crt
      sparkwright connect --list
    """
    options = ConnectOptions(**given)
    if options.stop:
        _stop(options.client, options.where, options.as_json)
    elif options.listing or not options.client:
        _list(options.where, options.as_json)
    elif options.undo:
        from sparkwright.gateway.clients import client as known
        from sparkwright.wiring import client_files

        path = client_files().undo(known(options.client).name)
        shared.answer(options.as_json, {"undone": str(path)}, f"{path} is as it was before")
    else:
        _connect(options)


def _stop(name: str, where: ClusterOptions, as_json: bool) -> None:
    from sparkwright.wiring import tunnels

    async def stop() -> list[str]:
        open_ = tunnels(where)
        names = [one.name for one in await open_.listed() if name in ("", one.name)]
        ran = [await open_.stop(one) for one in names]
        return [name for name, running in zip(names, ran, strict=True) if running]

    stopped = asyncio.run(stop())
    if name and not stopped:
        raise UsageError(f"no tunnel {name} is open", "`sparkwright connect --list` names them")
    shared.answer(as_json, {"stopped": stopped}, f"stopped: {', '.join(stopped)}" if stopped else "no tunnel is open")


def _list(where: ClusterOptions, as_json: bool) -> None:
    from sparkwright.gateway.clients import clients
    from sparkwright.wiring import tunnels

    found = asyncio.run(tunnels(where).listed())
    known = [_placed(one) for one in clients().values()]
    rows = [(one.name, one.title, one.path, one.file) for one in known]
    now = time.time()
    lines = [(t.name, t.destination, f"127.0.0.1:{t.port}", _state(t.ended, now - t.since)) for t in found]
    document = {"clients": [asdict(one) for one in known], "tunnels": [asdict(one) for one in found]}
    tunnel_text = f"tunnels\n{aligned(lines)}" if lines else "tunnels: none"
    shared.answer(as_json, document, f"clients\n{aligned(rows)}\n{tunnel_text}")


def _connect(options: ConnectOptions) -> None:
    from sparkwright.app.setup.connect import EndpointCheck, EndpointWay, check, check_endpoint
    from sparkwright.gateway.clients import client as known
    from sparkwright.gateway.clients import settings
    from sparkwright.wiring import make_asker

    client = _placed(known(options.client))
    if options.write and not client.file:
        raise UsageError(f"{client.title} reads no file that could be written", "set what `connect` prints")

    async def run(way: EndpointWay) -> EndpointCheck:
        shared.end_like_ctrl_c()
        able = make_asker(way.authority)
        return await (check(able, way, client) if options.check else check_endpoint(able, way))

    way = _way(options)
    seen = asyncio.run(run(way))
    made = settings(client, seen.at)
    change = _changed(client, made, options.dry, seen.works) if options.write else None
    key = {"key": way.key.reveal()} if options.show_key and way.key else {}
    about = {"client": client.name, "protocol": client.path, "simulated": seen.simulated, "models": seen.models}
    about |= {**asdict(seen.at), "output": seen.at.output, "settings": asdict(made), "written": change, **key}
    verdict = {"checked": options.check, "works": seen.works if options.check else None, "seconds": seen.seconds}
    document = about | verdict | {"troubles": [asdict(trouble) for trouble in seen.troubles]}
    lines = [*_head(client, seen, way), *([f"  key itself  {key['key']}"] if key else []), "", *_body(client, made)]
    lines += [change or "", ""] if change is not None else []
    text = "\n".join([*lines, *_verdict(client, seen, options.check)])
    shared.answer(options.as_json, document, text, int(not seen.works))


def _placed(client: Any) -> Any:
    """The client with its files where XDG_CONFIG_HOME has them: opencode reads them there."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    if not Path(given).is_absolute():
        return client
    usual, folder = "~/.config/", given.rstrip("/")
    run = client.run.replace(usual, f"{shlex.quote(folder)}/")
    return replace(client, file=client.file.replace(usual, f"{folder}/"), run=run)


def _state(ended: bool, age: float) -> str:
    return "ended: --tunnel opens it again, --stop forgets it" if ended else f"open since {duration(age)}"


def _way(options: ConnectOptions) -> Any:
    """The way to an endpoint: a deployment, or a URL, which needs no cluster file. Opens the tunnel where one is asked
    for. Raises UsageError."""
    from sparkwright.app.setup import connect as use
    from sparkwright.wiring import authority, keys_to_try

    target, where = options.target, options.where
    if "://" in target and not target.startswith(("http://", "https://")):
        raise UsageError(f"{target}: only http and https, as in https://HOST:8443/v1")
    if "://" in target:
        secret = keys_to_try(options.key_file)[0] if options.key_file else None
        paths = {"key_file": _path(options.key_file), "authority": _path(options.ca)}
        return use.EndpointWay(checked_url(target).rstrip("/"), key=secret, model=options.model, **paths)
    if options.key_file or options.ca:
        raise UsageError("--key-file and --ca go with a URL", "--key NAME chooses a key of the cluster")
    cluster = shared.open_cluster(where)
    trusted = authority(cluster.name)
    way = shared.drive_on(
        cluster, where, lambda services: use.find_endpoint(services, target, options.key, trusted), quiet=True
    )
    return asyncio.run(_tunnelled(replace(way, model=options.model), where, options.tunnel))


async def _tunnelled(way: Any, where: ClusterOptions, asked: bool) -> Any:
    from sparkwright.adapters.tunnels import Tunnel
    from sparkwright.app.setup.connect import port_of, through
    from sparkwright.wiring import tunnels

    if not way.tunnel:
        if asked:
            echo_text(f"no tunnel is needed: {way.url} is reached from here", err=True)
        return way
    open_, port = tunnels(where), port_of(way)
    one = Tunnel(f"{way.node}-{port}", way.tunnel, port, time.time())
    if asked:
        new = await open_.open(one)
        state = "open in the background" if new else "open already"
        echo_text(f"tunnel {one.name}: {state}; `sparkwright connect --stop {one.name}` ends it", err=True)
    elif (known := {one.name: one for one in await open_.listed()}.get(one.name)) is None or known.ended:
        text = f"the gateway of {way.deployment} listens on the loopback of {way.node} only"
        text += f", and the tunnel {one.name} has ended" if known else ""
        raise UsageError(text, "add --tunnel, or serve with `serving.expose: all`")
    return through(way, port)


def _changed(client: Any, made: Any, dry: bool, works: bool) -> str:
    """The difference, which is written unless it is a dry run, or does not work."""
    from sparkwright.gateway.clients import merged
    from sparkwright.wiring import client_files

    able = client_files()
    change = able.change(client.file, lambda before: merged(client, before, made))
    if change.before == change.after:
        return f"{change.path}: unchanged"
    if dry or not works:
        why = "--dry-run" if dry else "it does not work; --no-check writes it all the same"
        return f"{change.difference}\nnothing was written ({why})"
    able.apply(client.name, change)
    return f"{change.difference}\nwritten; `sparkwright connect {client.name} --undo` puts back what was there"


def _path(path: Path | None) -> str:
    return str(path.expanduser().absolute()) if path else ""


def _head(client: Any, seen: Any, way: Any) -> list[str]:
    at = seen.at
    context = f"{at.context:,} tokens" if at.context else "not reported by the endpoint"
    output = f"{at.output:,} tokens (a quarter of the context, at most 32,768)" if at.output else "not known"
    rows = [("address", at.url), ("model", at.model), ("context", context), ("output", output)]
    rows += [("key", at.key_file or "none"), ("authority", at.authority or "the system's")]
    others = [name for name in seen.models if name != at.model]
    rows += [("also serves", ", ".join(others[:8]))] if others else []
    mark = f"{SIMULATED}  " if seen.simulated else ""
    title = f"{mark}{client.title}{f' for {way.deployment}' if way.deployment else ''}"
    return [title, *aligned(rows).split("\n")]


def _body(client: Any, made: Any) -> list[str]:
    lines = []
    if made.env:
        lines += ["in the shell that starts it:", "", made.exports]
    if made.text:
        lines += [f"in {made.file}:", "", made.text]
    if made.snippet:
        lines += [made.snippet]
    lines += [f"start it: {client.run}"] if client.run else []
    return [*lines, *(f"note: {note}" for note in made.notes), f"its documentation: {client.see}", ""]


def _verdict(client: Any, seen: Any, checked: bool) -> list[str]:
    if not checked:
        return ["not checked (--no-check)"]
    state = "works" if seen.works else "does not work"
    lines = [f"{client.path}, streamed{', with a tool' if client.needs else ''}: {state}, {seen.seconds:.1f} s"]
    for trouble in seen.troubles:
        lines += [f"  {'fails' if trouble.fails else 'warns'}: {trouble.text}", f"         hint: {trouble.hint}"]
    return lines
