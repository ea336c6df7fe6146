#!/bin/bash
# Acceptance of SGLang 0.5.23 and the questions asked of it and vLLM 0.33.0 together, on a machine with one GPU (root).
#
#     SGLANG=/opt/sglang VLLM=/opt/vllm MODELS=/models OUT=/tmp/session tools/gpu/today.sh together
#     ... tools/gpu/today.sh agents     turn 10 of an agent's loop, both engines, nothing else on the GPU
#     ... tools/gpu/today.sh grid       24 settings of vLLM, whole, in four lanes at the same time
#     ... tools/gpu/today.sh search     the real `tune` with four seeds, each in a quarter of the grid's time (GRID: a
#                                       recording; without it the parts that `grid` left in OUT)
#     ... tools/gpu/today.sh supervised SGLang under the supervisor, on one node and on two that share the GPU, with weights
#                                       whose answers are no garbage; `serving.disk_cache` next to it
#     ... tools/gpu/today.sh disk       `serving.disk_cache` of both engines: a context of 80,000 tokens after kill -9
#     ... tools/gpu/today.sh kv         KV tokens of SGLang, predicted before (PREDICTED, ROWS)
#
# SGLANG, VLLM: folders with bin/python that runs the engine; PYTHON (default python3) runs sparkwright. MODELS: tiny/
# (config.json and tokenizer of a small Qwen3, without weights) and 8b/config.json. LIMIT: seconds for a stage.
set -u
stage=$1; here=$(cd "$(dirname "$0")" && pwd); root=$(cd "$here/../.." && pwd)
: "${SGLANG:?}" "${VLLM:?}" "${MODELS:?}" "${OUT:?}" "${PYTHON:=python3}" "${LIMIT:=420}" "${WORKS:=/var/tmp/session}"
export PYTHONUNBUFFERED=1 NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1
: "${SGLANG_FLAGS:=}"  # what smoke.py found out: "--attention-backend triton" or so
flags=$(echo "$SGLANG_FLAGS" | sed -E 's/--([a-z-]+) ([^ ]+)/--flag \1=\2/g')
own="$root/src${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$OUT/ranks" "$WORKS"
. "$here/common.sh"

lane() {  # lane NUMBER ENGINE SCRIPT ARGUMENTS...: one run of acceptance.py or supervised.py next to others
    local n=$1 engine=$2 script=$3 version=0.5.23 venv=$SGLANG more=$flags; shift 3
    [ "$engine" = vllm ] && version=0.33.0 venv=$VLLM more=
    # shellcheck disable=SC2086
    PYTHONPATH=$own timeout -k 5 "$LIMIT" "$PYTHON" "$here/$script" --whole --engine "$engine" --engine-version $version --venv "$venv" \
        --model "${MODELS_TINY:-$MODELS/tiny}" --lane "$n" --work "$WORKS/lane$n" --out "$OUT/lane$n" \
        --env NCCL_NVLS_ENABLE=0 --env TORCH_SYMM_MEM_DISABLE_MULTICAST=1 $more "$@" >"$OUT/lane$n.txt" 2>&1
    echo "lane $n ended: $? after $((SECONDS - began)) s"
}
tuner() {  # tuner LANE ARGUMENTS...: bench_tune.py on four cores, with a network and leases of its own
    local n=$1; shift
    # shellcheck disable=SC2016
    PYTHONPATH=$own CUDA_VISIBLE_DEVICES=0 timeout -k 5 "$LIMIT" taskset -c $((n * 4))-$((n * 4 + 3)) unshare -mn sh -c \
        'mount --make-rprivate / && mount -t tmpfs x /run/lock && ip link set lo up && exec "$@"' - \
        "$PYTHON" "$root/scripts/bench/bench_tune.py" "$@" --folder "$WORKS/tune$n" --recipe "$here/tune_today.yaml" \
        --cluster "$WORKS/tune$n.yaml" --users 16 --only batched-tokens --only sequences \
        --set serving.batched_tokens=128,512,2048,8192 --set serving.sequences=4,8,16 --set flags.stream-interval=1,8 \
        >>"$OUT/tune$n.txt" 2>&1
    echo "tune lane $n ended: $? after $((SECONDS - began)) s"
}
disk() {  # disk ENGINE VERSION VENV NAME ARGUMENTS...: disk_cache.py with a network and leases of its own
    local engine=$1 version=$2 venv=$3 name=$4; shift 4
    # shellcheck disable=SC2016
    PYTHONPATH=$own timeout -k 5 "$LIMIT" unshare -mn sh -c \
        'mount --make-rprivate / && mount -t tmpfs x /run/lock && ip link set lo up && exec "$@"' - \
        "$PYTHON" "$here/disk_cache.py" --engine "$engine" --engine-version "$version" --venv "$venv" --model "$MODELS/tiny" \
        --env NCCL_NVLS_ENABLE=0 --work "$WORKS/disk-$name" --out "$OUT/disk-$name" "$@" >"$OUT/disk-$name.txt" 2>&1
    echo "disk $name ended: $? after $((SECONDS - began)) s"
}
clusters() {
    for n in 0 1 2 3; do
        echo "nodes: [{name: here, ssh: local, paths: {models: $MODELS, state: $WORKS/tune$n/state, cache: $WORKS/cache}}]" >"$WORKS/tune$n.yaml"
    done
}

began=$SECONDS
case $stage in
together)
    keep_rank_logs & keeper=$!
    # shellcheck disable=SC2046
    {
    lane 0 sglang acceptance.py --one --pinned --env OWN_JIT=1 $(cases facts plan up healthy frozen killed down again interrupt) &
    lane 1 sglang acceptance.py --one --pinned --flag cuda-graph-backend-prefill=disabled \
        $(cases keyed reasoning wrong_value wrong_flag too_long dies) &
    SPARKWRIGHT_SUPERVISOR_SCALE=0.3 lane 2 sglang supervised.py --one --pinned --flag cuda-graph-backend-prefill=disabled \
        $(cases plan serve learned killed frozen gone) &
    lane 3 sglang acceptance.py --share-gpu --flag cuda-graph-backend-prefill=disabled \
        $(cases plan up healthy killed down head_killed gloo dies) &
    lane 4 vllm acceptance.py --one --pinned --flag enforce-eager $(cases dies small_kv) &
    }
    # shellcheck disable=SC2016
    timeout -k 5 "$LIMIT" unshare -m -n sh -c \
        'mount --make-rprivate / && mount -t tmpfs tmpfs /tmp && ip link set lo up && exec "$@"' sh \
        "$SGLANG/bin/python" "$here/failures_sglang.py" --models "$MODELS" --out "$OUT/failures" --jobs "${JOBS:-4}" \
        >"$OUT/failures.txt" 2>&1 &
    # the keeper goes on until the others have ended
    while [ "$(jobs -rp | grep -vcx "$keeper")" -gt 0 ]; do sleep 1; done
    kill $keeper
    ;;
agents)
    memory=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | head -1)
    layers=36; [ "$memory" -lt 100000 ] && layers=24
    PYTHONPATH=$own timeout -k 5 "$LIMIT" "$PYTHON" "$here/agents.py" --whole --model "$MODELS/tiny" --config "$MODELS/8b/config.json" \
        --layers $layers --out "$OUT/agents" --sglang-flags "$SGLANG_FLAGS" --sglang "$SGLANG/bin/python" --vllm "$VLLM/bin/python" >"$OUT/agents.txt" 2>&1
    echo "agents ended: $?"
    ;;
grid)
    clusters
    for n in 0 1 2 3; do tuner $n record "$OUT/grid$n.json" --part $n 4 & done
    wait
    ;;
search)
    clusters
    : "${GRID:=$(echo "$OUT"/grid?.json)}"
    keep_rank_logs & keeper=$!
    # shellcheck disable=SC2086
    for n in 0 1 2 3; do tuner $n search $GRID --seed $((n + 1)) --searches 1 & done
    while [ "$(jobs -rp | grep -vcx "$keeper")" -gt 0 ]; do sleep 1; done
    kill $keeper
    cp "$WORKS"/tune?/search-*.json "$OUT"
    ;;
supervised)
    # the engines' dummy weights repeat one word, which the supervisor calls garbage
    [ -d "$MODELS/noise" ] || cp -r "$MODELS/tiny" "$MODELS/noise"
    "$PYTHON" "$here/random_weights.py" "$MODELS/noise"
    keep_rank_logs & keeper=$!
    # shellcheck disable=SC2046
    export MODELS_TINY=$MODELS/noise SPARKWRIGHT_SUPERVISOR_SCALE=0.3
    lane 2 sglang supervised.py --one --pinned --flag cuda-graph-backend-prefill=disabled \
        $(cases plan serve learned killed frozen gone) &
    lane 3 sglang supervised.py --share-gpu --flag cuda-graph-backend-prefill=disabled \
        $(cases plan serve learned killed head frozen gone) &
    { # shellcheck disable=SC2086
    LIMIT=280 disk sglang 0.5.23 "$SGLANG" page-64 --flag page-size=64 ${DISK:-}
    LIMIT=280 disk sglang 0.5.23 "$SGLANG" page-1 ${DISK:-}; } &
    while [ "$(jobs -rp | grep -vcx "$keeper")" -gt 0 ]; do sleep 1; done
    kill $keeper
    ;;
disk)
    disk vllm 0.33.0 "$VLLM" vllm; disk sglang 0.5.23 "$SGLANG" sglang --flag page-size=64
    ;;
kv)
    timeout -k 5 "$LIMIT" "$PYTHON" "$here/kv_sglang.py" --rows "${ROWS:?}" --predicted "${PREDICTED:?}" --ahead "${AHEAD:-5}" \
        --python "$SGLANG/bin/python" --out "$OUT/kv" >"$OUT/kv.txt" 2>&1
    ;;
*) echo "unknown stage: $stage" >&2; exit 2 ;;
esac
nvidia-smi --query-gpu=name,memory.total,memory.used,driver_version --format=csv,noheader >"$OUT/gpu-$stage.txt" 2>&1
echo "$stage: $((SECONDS - began)) s"
