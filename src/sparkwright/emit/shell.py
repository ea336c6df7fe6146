"""Shell: one POSIX sh script a node, with start, stop, logs and status; nothing of sparkwright is needed there."""

import re
import shlex

from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Runtime
from sparkwright.emit.source import (
    HERE,
    Source,
    Written,
    comment,
    docker_words,
    filling_step,
    lines_of_words,
    order,
    rank_files,
    secrets_file,
    title,
)
from sparkwright.remote import process

_DOCKER = r"""
start() {
    @FOLDERS@@COMMAND@
}

stop() {
    docker stop -t @GRACE@ @NAME@ && docker rm -v @NAME@
}

logs() {
    docker logs -f @NAME@
}

status() {
    docker inspect -f '{{.State.Status}} {{.State.ExitCode}}' @NAME@
}
"""
# The mark in the environment finds what made a session of its own; START of /proc tells a reused pid from ours.
_PROCESS = r"""
dir=@DIR@

started() {
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20
}

alive() {
    [ -s "$dir/pid" ] && read -r pid began <"$dir/pid" && [ "$(started "$pid")" = "$began" ]
}

marked() {
    grep -lzxF "SPARKWRIGHT_RANK_DIR=$dir" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}

start() {
    if alive; then
        echo "runs already (pid $pid)" >&2
        return 1
    fi
    umask 077
    mkdir -p "$dir/files"
    for file in "$here"/files/*; do
        if [ -f "$file" ]; then cp "$file" "$dir/files/"; fi
    done
    (
        if [ -f "$here/secrets.env" ]; then
            set -a
            # shellcheck disable=SC1091
            . "$here/secrets.env"
            set +a
        fi
        # shellcheck disable=SC3045
        ulimit -l unlimited 2>/dev/null || :
        export SPARKWRIGHT_RANK_DIR="$dir" SPT_NOENV=1
        @EXPORTS@
        # shellcheck disable=SC2016
        setsid sh -c 'echo "$$ $(sed "s/.*) //" /proc/$$/stat | cut -d" " -f20)" >"$0"; exec "$@"' "$dir/pid" \
            @COMMAND@
    ) </dev/null >"$dir/log" 2>&1 &
}

stop() {
    if alive; then kill -@SIGNAL@ "-$pid"; fi
    left=@TENTHS@
    while [ -n "$(marked)" ] && [ "$left" -gt 0 ]; do
        sleep 0.1
        left=$((left - 1))
    done
    for one in $(marked); do kill -KILL "$one" 2>/dev/null; done
    [ -z "$(marked)" ] && rm -rf "$dir/files" "$dir/pid"
}

logs() {
    tail -n +1 -f "$dir/log"
}

status() {
    if alive; then echo "running, pid $pid"; else echo "not running"; fi
}
"""
_MAIN = r"""
case "${1:-}" in
start | stop | logs | status) "$1" ;;
*)
    echo "usage: $0 start | stop | logs | status" >&2
    exit 2
    ;;
esac
"""


def shell(source: Source) -> tuple[Written, ...]:
    """NODE/rank.sh with NODE/files and NODE/secrets.env next to it."""
    return tuple(file for spec in source.specs for file in _node(source, spec))


def _node(source: Source, spec: RankSpec) -> tuple[Written, ...]:
    head = "#!/bin/sh\n" + comment(
        (
            title(source, spec),
            *filling_step(source),
            f"Start on the nodes in this order: {order(source)}. When one rank ends, stop the others, too.",
        )
    )
    here = '\nhere=$(cd "$(dirname "$0")" && pwd) || exit 1\n' if _beside(spec) else ""
    body = _docker(source, spec) if spec.runtime is Runtime.DOCKER else _process(source, spec)
    return (
        Written(f"{spec.node}/rank.sh", head + here + body + _MAIN, 0o755),
        *secrets_file(spec, spec.node),
        *rank_files(spec, spec.node),
    )


def _beside(spec: RankSpec) -> bool:
    return spec.runtime is Runtime.PROCESS or bool(spec.files or spec.secrets)


def _docker(source: Source, spec: RankSpec) -> str:
    words = docker_words(spec, source.container(spec), HERE)
    detached = (*words[:2], "--detach", *words[2:])
    folders = [m.host for m in spec.mounts if not m.read_only]
    return _filled(
        _DOCKER,
        FOLDERS=f"mkdir -p {shlex.join(folders)}\n    " if folders else "",
        COMMAND=lines_of_words(detached),
        GRACE=str(int(source.grace)),
        NAME=source.container(spec),
    )


def _process(source: Source, spec: RankSpec) -> str:
    return _filled(
        _PROCESS,
        DIR=shlex.quote(process.rank_dir(source.states[spec.node], source.name, spec.rank)),
        EXPORTS="\n        ".join(f"export {key}={shlex.quote(value)}" for key, value in spec.env.items()),
        COMMAND=lines_of_words((*(spec.entrypoint or ()), *spec.argv)),
        SIGNAL=source.signal.removeprefix("SIG"),
        TENTHS=str(int(source.grace * 10)),
    )


def _filled(template: str, **values: str) -> str:
    """The template with @NAME@ replaced in one go: what a value holds is never a name again."""
    return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], template)
