# Sourced by one_gpu.sh and session.sh.

cases() { printf -- '--only %s ' "$@"; }
keep_rank_logs() {  # a hard link outlives `down`
    while sleep 1; do
        find "$WORKS" -path '*/deployments/*' -type f -name '*log*' -printf '%i %p\n' 2>/dev/null | while read -r i p; do
            to="$OUT/ranks/$(echo "${p#"$WORKS"/}" | sed 's#/state/deployments/acceptance##; s#/#-#g')-$i"
            [ -e "$to" ] || ln "$p" "$to" 2>/dev/null || cp "$p" "$to"
        done
    done
}
