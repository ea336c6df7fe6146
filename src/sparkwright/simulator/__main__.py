"""`python -m sparkwright.simulator serve MODEL [vLLM flags]`, `python -m sparkwright.simulator --version`."""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import Callable

from sparkwright.simulator import boot, options
from sparkwright.simulator.head import run_head, run_worker
from sparkwright.simulator.link import HeadLink
from sparkwright.simulator.log import recorded, voices
from sparkwright.simulator.model import SimulatedModel, find_model, read
from sparkwright.simulator.preload import preload
from sparkwright.simulator.rank import SimulatedRank, rank_from
from sparkwright.simulator.settings import Faults, SimulatorSettings, settings_from

VERSION = "0.21.0 (simulated: sparkwright's simulator of vLLM, no model runs)"
NO_FOLDER = (
    "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': "
    "'{}'. Use `repo_type` argument if needed."
)
NOT_CACHED = (
    "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder for the "
    "specified revision on the local disk and outgoing traffic has been disabled. To enable repo look-ups and "
    "downloads online, pass 'local_files_only=False' as input."
)


def main(argv: list[str], link: Callable[[SimulatedRank], HeadLink] = lambda rank: HeadLink(rank.nodes)) -> int:
    """Exit codes as vLLM's: 0 good, 1 the start failed, 2 usage. link: from rank 0 to the others."""
    if argv[:1] in (["--version"], ["-v"]):
        sys.stdout.write(VERSION + "\n")
        return 0
    if argv[:1] == ["preload"]:
        return preload(argv[1:])
    if argv[:1] != ["serve"]:
        sys.stderr.write(f"usage: {options.MAIN_USAGE}\nmain.py: error: sparkwright's simulator only knows `serve`\n")
        return 2
    try:
        settings = settings_from(os.environ)
        args = options.parse(argv[1:], settings.version or options.OWN)
        faults = Faults(settings.fault, settings.control, args.node_rank)
    except SystemExit as stop:
        return int(stop.code or 0)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"sparkwright.simulator: error: {error}\n")
        return 2
    return _serve(args, settings, faults, link)


def _serve(
    args: Namespace, settings: SimulatorSettings, faults: Faults, link: Callable[[SimulatedRank], HeadLink]
) -> int:
    world = args.tensor_parallel_size * args.pipeline_parallel_size
    said = voices(os.getpid(), args.node_rank, world, args.headless, faults.has("odd_lines"))
    said.api.warning("twin.py:1", boot.SIMULATED)
    model = _model(args, settings)
    if isinstance(model, str):
        said.api.info("utils.py:306", boot.LOGO.format(model=args.model))
        said.api.info("utils.py:240", f"non-default args: {args.given}")
        recorded("no-model", said, {"ERROR": model})
        return 1
    rank = rank_from(args, model, settings, faults)
    return asyncio.run(run_worker(rank) if args.headless else run_head(rank, link(rank)))


def _model(args: Namespace, settings: SimulatorSettings) -> SimulatedModel | str:
    """The model, or why it cannot be read, in the hub client's words when it is not there."""
    folder = find_model(args.model, settings.hub)
    if folder is None:
        return NOT_CACHED if args.model.count("/") == 1 and args.model[0] not in "/." else NO_FOLDER.format(args.model)
    try:
        return read(folder, args.model, settings.weights_gib)
    except (OSError, ValueError, KeyError) as error:
        return f"OSError: {folder} does not have a usable config.json: {error}"


def run_simulator() -> None:
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run_simulator()
