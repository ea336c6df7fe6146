"""Shell: one POSIX sh script a node, with start, stop, logs and status; nothing of sparkwright is needed there."""

import shlex

from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Runtime
from sparkwright.emit import source as common
from sparkwright.emit.source import DeploymentSource, EmittedFile
from sparkwright.remote import process
from sparkwright.remote.host import filled, script_texts

_text = script_texts(__name__)


def emit_shell(source: DeploymentSource) -> tuple[EmittedFile, ...]:
    """NODE/rank.sh with NODE/files and NODE/secrets.env next to it."""
    return tuple(file for spec in source.specs for file in _node(source, spec))


def _node(source: DeploymentSource, spec: RankSpec) -> tuple[EmittedFile, ...]:
    order = f"Start on the nodes in this order: {common.start_order(source)}. When one rank ends, stop the others, too."
    text = "#!/bin/sh\n" + common.comment((common.rank_title(source, spec), *common.filling_step(source), order))
    if spec.runtime is Runtime.PROCESS or spec.files or spec.secrets:
        text += '\nhere=$(cd "$(dirname "$0")" && pwd) || exit 1\n'
    text += _docker(source, spec) if spec.runtime is Runtime.DOCKER else _process(source, spec)
    return (
        EmittedFile(f"{spec.node}/rank.sh", text + _text("main"), 0o755),
        *common.secrets_file(spec, spec.node),
        *common.rank_files(spec, spec.node),
    )


def _docker(source: DeploymentSource, spec: RankSpec) -> str:
    words = common.docker_words(spec, source.container(spec), common.HERE)
    detached = (*words[:2], "--detach", *words[2:])
    folders = [m.host for m in spec.mounts if not m.read_only]
    return filled(
        _text("docker"),
        FOLDERS=f"mkdir -p {shlex.join(folders)}\n    " if folders else "",
        COMMAND=common.lines_of_words(detached),
        GRACE=str(int(source.grace)),
        NAME=source.container(spec),
    )


def _process(source: DeploymentSource, spec: RankSpec) -> str:
    return filled(
        _text("process"),
        DIR=shlex.quote(process.rank_dir(source.states[spec.node], source.name, spec.rank)),
        EXPORTS="\n        ".join(f"export {key}={shlex.quote(value)}" for key, value in spec.env.items()),
        COMMAND=common.lines_of_words((*(spec.entrypoint or ()), *spec.argv)),
        SIGNAL=source.signal.removeprefix("SIG"),
        TENTHS=str(int(source.grace * 10)),
    )
