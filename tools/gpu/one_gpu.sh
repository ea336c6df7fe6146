#!/bin/bash
# One session of vLLM's acceptance on a machine with one GPU (root), in stages that each write their results to OUT.
#
#     VENV=/opt/vllm MODEL=/models/tiny PREDICTED=FILE OUT=/tmp/session tools/gpu/one_gpu.sh together
#     ... tools/gpu/one_gpu.sh alone        starts that measure the whole GPU
#     ... tools/gpu/one_gpu.sh remember     weights and context after kill -9
#     ... tools/gpu/one_gpu.sh failures     those that want a GPU of their own, and requests
#
# VENV/bin/python runs the engine; PYTHON (default python3) runs sparkwright. MODEL: config.json and tokenizer of a small
# Qwen3, without weights. PREDICTED: what `kv_tokens.py predict` wrote for this GPU. LIMIT: seconds for a stage.
set -u
stage=$1; here=$(cd "$(dirname "$0")" && pwd); root=$(cd "$here/../.." && pwd)
: "${VENV:?}" "${MODEL:?}" "${OUT:?}" "${ROWS:=$root/tests/data/starts/vllm-0.33.0-one-gpu-rows.jsonl}"
: "${VERSION:=0.33.0}" "${PYTHON:=python3}" "${LIMIT:=560}" "${WORKS:=/var/tmp/session}" "${LARGE:=/dev/shm/large}"
export PYTHONUNBUFFERED=1 NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1
own="$root/src${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$OUT/ranks" "$WORKS"
. "$here/common.sh"

lane() {  # lane NUMBER SCRIPT ARGUMENTS...: one run of acceptance.py or supervised.py next to others
    local n=$1 script=$2; shift 2
    PYTHONPATH=$own timeout -k 5 "$LIMIT" "$PYTHON" "$here/$script" --one --whole --engine-version "$VERSION" --venv "$VENV" \
        --model "$MODEL" --lane "$n" --work "$WORKS/lane$n" --out "$OUT/lane$n" \
        --env NCCL_NVLS_ENABLE=0 --env TORCH_SYMM_MEM_DISABLE_MULTICAST=1 "$@" >"$OUT/lane$n.txt" 2>&1
    echo "lane $n ended: $?"
}
tokens() {  # tokens KIND ARGUMENTS...: pinned or free
    local kind=$1; shift
    PYTHONPATH=$own timeout -k 5 "$LIMIT" "$PYTHON" "$here/kv_tokens.py" start --only "$kind" --gpus 0 --python "$VENV/bin/python" \
        --rows "$ROWS" --predicted "${PREDICTED:?}" --out "$OUT/kv" "$@" >"$OUT/kv-$kind.txt" 2>&1
    echo "tokens $kind ended: $?"
}
failures() {  # failures NAME ARGUMENTS...: with a /tmp and a network of its own
    local name=$1; shift
    # shellcheck disable=SC2016
    timeout -k 5 "$LIMIT" unshare -m -n sh -c \
        'mount --make-rprivate / && mount -t tmpfs tmpfs /tmp && ip link set lo up && exec "$@"' sh \
        "$VENV/bin/python" "$here/failures.py" --whole --models "$MODEL/.." --out "$OUT/failures" "$@" >"$OUT/failures-$name.txt" 2>&1
    echo "failures $name ended: $?"
}

keep_rank_logs & keeper=$!
began=$SECONDS
# shellcheck disable=SC2046
case $stage in
together)
    lane 0 acceptance.py --pinned $(cases facts plan up healthy frozen killed down again interrupt) & l0=$!
    lane 1 acceptance.py --pinned --flag enforce-eager $(cases keyed reasoning wrong_value wrong_flag dies too_long small_kv) & l1=$!
    SPARKWRIGHT_SUPERVISOR_SCALE=0.3 lane 2 supervised.py --pinned --flag enforce-eager \
        $(cases plan serve learned killed frozen gone) & l2=$!
    tokens pinned --together 2 & kv=$!
    wait $l0 $l1 $l2 $kv
    ;;
alone)
    tokens free
    ;;
remember)
    "$VENV/bin/python" "$here/remember.py" run --model "$LARGE" --python "$VENV/bin/python" --out "$OUT/remember" "${@:2}"
    ;;
failures)
    failures requests --only requests
    failures alone $(cases cache-not-writable user-without-name lora-missing no-linker shm-full killed-at-start warmup-oom)
    ;;
*) echo "unknown stage: $stage" >&2; exit 2 ;;
esac
kill $keeper
echo "$stage: $((SECONDS - began)) s"
