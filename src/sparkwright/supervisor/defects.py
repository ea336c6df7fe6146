"""The supervisor's own failures: a defect of ours, or files of its program that something has damaged."""

import asyncio
import os
import signal
from pathlib import Path

from sparkwright.adapters.bundle_check import FOLDER, damaged_files, restore_files
from sparkwright.supervisor.context import DeploymentContext


async def explain_defect(context: DeploymentContext, error: Exception, folder: Path = FOLDER) -> str:
    """The reason why a work of the supervisor failed in itself.

    Damaged files of the program are restored from its archive, and the process ends: what keeps it running starts it
    again, with whole files. The ranks continue to run.
    """
    damaged = await asyncio.to_thread(damaged_files, folder)
    if not damaged:
        return f"our own defect: {error!r}"
    what = f"{len(damaged)} files of sparkwright's program on {context.supervisor_node} are damaged"
    what = what if len(damaged) > 1 else f"a file of sparkwright's program on {context.supervisor_node} is damaged"
    what += f" ({folder / damaged[0]})"
    if not await restore_files(context.journal.path, folder):
        return f"{what}, and its archive is, too: the same `sparkwright up` puts the program back"
    why = f"{what}: restored from its archive, and the supervisor starts again"
    context.notice(why, warning=True)
    os.kill(os.getpid(), signal.SIGTERM)
    return why
