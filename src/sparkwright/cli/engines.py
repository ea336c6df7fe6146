"""`sparkwright engines`: the options that are known of each engine, and reading those of another version."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkwright.cli import engine_files
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned
from sparkwright.domain.errors import UsageError
from sparkwright.domain.recipe import EngineChoice, Runtime
from sparkwright.domain.values import asdict, dataclass
from sparkwright.engines.flag_data import FlagData, FlagLibrary, nearest
from sparkwright.engines.tables import SEPARATE
from sparkwright.engines.variants import shipped_variants
from sparkwright.wiring import flag_store

if TYPE_CHECKING:
    from sparkwright.app.cluster_options import ClusterOptions
    from sparkwright.engines.own_data import Row

_HEADS = ("ENGINE", "VERSION", "OPTIONS", "READ FROM")


@click.group()
def engines() -> None:
    """List the engines and versions that are known; read others.

    \b
    Examples:
      sparkwright engines list
      sparkwright engines validate ./my-engine.toml
      sparkwright engines update --wheel ./vllm-0.34.0-cp38-abi3-manylinux_2_31_aarch64.whl
    """


@engines.command(name="list", short_help="List the engine versions whose options are known.")
@shared.json_option
def list_engines(as_json: bool) -> None:
    """List the engine versions whose options are known, those that ship and those that you had read, and the engines
    that a file describes.

    \b
    Examples:
      sparkwright engines list
    """
    found = flag_store().read()
    own = tuple(data for data in found.values() if isinstance(data, FlagData))
    library = FlagLibrary(own)
    rows = [_row(library.read(name, version)) for name in SEPARATE for version in library.versions(name)]
    broken = [{"file": path, "error": why} for path, why in found.items() if isinstance(why, str)]
    lines = [(row["engine"], row["version"], str(row["options"]), row["from"]) for row in rows]
    others, unusable = engine_files.described()
    files = [engine_files.engine_row(made) for made in others.values()]
    lines += [(one["engine"], one["version"], "-", one["from"]) for one in files]
    forks = [engine_files.variant_row(one) for one in shipped_variants().values()]
    lines += [(one["engine"], f"+ {one['variant']}", "-", one["from"]) for one in forks]
    broken += unusable
    document = {"engines": rows, "described": files, "variants": forks, "broken": broken}
    shared.answer(as_json, document, aligned([_HEADS, *lines]))
    engine_files.warn_of(broken)


@engines.command("show", short_help="Show the options of an engine's version and where they were read.")
@click.argument("engine", metavar="ENGINE")
@click.argument("version", metavar="[VERSION]", default="")
@shared.json_option
def show_engine(engine: str, version: str, as_json: bool) -> None:
    """Show the options of an engine's version and where they were read; of an engine that a file describes, the file.
    [default: the newest version]

    \b
    Examples:
      sparkwright engines show vllm 0.33.0
    """
    others = engine_files.described()[0]
    if engine in others:
        engine_files.show_definition(others[engine], as_json)
        return
    if engine not in SEPARATE:
        raise UsageError(f"{engine}: no such engine", f"known are {', '.join((*SEPARATE, *others))}")
    library = flag_store().load()
    known = library.versions(engine)
    if version and version not in known:
        hint = f"nearest: {nearest(engine, version, known)}; `sparkwright engines update` reads another version"
        raise UsageError(f"{engine} {version}: its options were not read", hint)
    data = library.read(engine, version or known[-1])
    document = _row(data) | {"names": {name: asdict(option) for name, option in data.options.items()}}
    document |= {"variables": sorted(data.env)}
    head = f"{data.engine} {data.version}: {len(data.options)} options, {len(data.env)} variables"
    rows = [(f"--{name}", one.kind, _values(one.allowed(""))) for name, one in sorted(data.options.items())]
    shared.answer(as_json, document, f"{head}\nread from: {_row(data)['from']}\n\n{aligned(rows)}")


engines.add_command(engine_files.validate)


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """The command line of `engines update`; '' for what is not given. node: of the venv or the image."""

    engine: str
    wheel: Path | None
    venv: str
    image: str
    node: str
    where: ClusterOptions
    as_json: bool


@engines.command(short_help="Read the options of an engine from a wheel, a venv or an image.")
@click.argument("engine", metavar="[ENGINE]", default="", type=click.Choice(("", *SEPARATE)))
@click.option(
    "--wheel",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read this wheel; nothing of it is run.",
)
@click.option("--venv", default="", metavar="DIR", help="Ask the engine in this venv on the node.")
@click.option("--image", default="", metavar="IMAGE", help="Ask the engine in this image on the node.")
@click.option("--node", default="", metavar="NODE", help="The node to ask. [default: this machine]")
@shared.cluster_options
@shared.json_option
def update(**given: Any) -> None:
    """Read the options of an engine's version, so that recipes for it are checked exactly.

    Asking an engine starts its argument parser (half a minute of one CPU); no model is loaded. The result is kept in
    the state folder of this machine and used by `plan`, `up` and `recipes validate`.

    \b
    Examples:
      sparkwright engines update --wheel ./vllm-0.34.0-cp38-abi3-manylinux_2_31_aarch64.whl
      sparkwright engines update vllm --venv ~/venvs/vllm
      sparkwright engines update vllm --image vllm/vllm-openai:v0.34.0 --node spark-1
    """
    options = UpdateOptions(**given)
    wheel = options.wheel
    if wheel is None and not options.engine:
        raise click.UsageError("give --wheel FILE, or the ENGINE to ask with --venv or --image")
    if wheel and (options.engine or options.venv or options.image or options.node):
        raise click.UsageError("--wheel goes without ENGINE, --venv, --image and --node")
    if options.venv and options.image:
        raise click.UsageError("--venv and --image exclude each other")
    from sparkwright.app.plan.engine_options import read_from_wheel  # the readers of wheels

    row = read_from_wheel(wheel, time.time()) if wheel else _asked(options)
    path = flag_store().save(row)
    data = flag_store().load().read(row["engine"], row["version"])
    text = f"{data.engine} {data.version}: {len(data.options)} options, {len(data.env)} variables\n"
    shared.answer(
        options.as_json, _row(data) | {"file": path}, f"{text}read from: {_row(data)['from']}\nkept in: {path}"
    )


def _asked(options: UpdateOptions) -> Row:
    """The options as the engine in a venv or an image tells them."""
    from sparkwright.app.plan.engine_options import read_from_node
    from sparkwright.app.plan.estimate import HERE

    where, venv = options.where, options.venv
    cluster = shared.open_cluster(where) if options.node else HERE
    node = cluster.node(options.node) if options.node else cluster.nodes[0]
    runtime = Runtime.DOCKER if options.image else Runtime.PROCESS
    if venv and not options.node:
        venv = str(Path(venv).expanduser().absolute())
    choice = EngineChoice(options.engine, "", runtime, options.image, venv=venv)
    return shared.drive_on(cluster, where, lambda services: read_from_node(services, node, choice), options.as_json)


def _row(data: FlagData) -> dict[str, Any]:
    return {
        "engine": data.engine,
        "version": data.version,
        "options": len(data.options),
        "variables": len(data.env),
        "from": _origin(data),
        "own": _is_own(data),
        "build": data.build or data.sha256,
    }


def _is_own(data: FlagData) -> bool:
    return "at" in data.source


def _origin(data: FlagData) -> str:
    if _is_own(data):
        day = datetime.fromtimestamp(data.source["at"], UTC).strftime("%Y-%m-%d")
        return f"{data.source['place']}, {day}, by you"
    shipped = data.wheel or data.source.get("path") or "its sources"
    return f"{shipped}, ships with sparkwright"


def _values(found: Any) -> str:
    listed = [str(one) for one in found][:8]
    return ", ".join(listed) + (", ..." if len(found) > len(listed) else "")
