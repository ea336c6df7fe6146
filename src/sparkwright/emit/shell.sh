# What rank.sh of a node does; emit/shell.py fills in the names between two @.
#: docker
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

#: process
# The mark in the environment finds what made a session of its own; START of /proc tells a reused pid from ours.
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
    # What was killed is listed until it has ended, on a busy node for a while.
    while processes=$(marked); [ -n "$processes" ] && [ "$left" -gt -100 ]; do
        if [ "$left" -le 0 ]; then
            for one in $processes; do kill -KILL "$one" 2>/dev/null; done
        fi
        sleep 0.1
        left=$((left - 1))
    done
    [ -z "$(marked)" ] && rm -rf "$dir/files" "$dir/pid"
}

logs() {
    tail -n +1 -f "$dir/log"
}

status() {
    if alive; then echo "running, pid $pid"; else echo "not running"; fi
}

#: main
case "${1:-}" in
start | stop | logs | status) "$1" ;;
*)
    echo "usage: $0 start | stop | logs | status" >&2
    exit 2
    ;;
esac
