#!/bin/bash
# One session of vLLM's acceptance on a machine with two GPUs (root), in stages that each write their results to OUT.
#
#     VENV=/opt/vllm MODEL=/models/tiny OUT=/tmp/session tools/gpu/session.sh together     acceptance and failures at once
#     ... tools/gpu/session.sh alone          starts that measure the whole GPU, failures that need a whole one
#
# VENV/bin/python runs the engine; PYTHON (default python3) runs sparkwright. MODEL: config.json and tokenizer of a small
# Qwen3, without weights. PREDICTED: what `kv_tokens.py predict` wrote before. Neighbours have pools of a fixed size, so
# that they do not change each other's figures. LIMIT: seconds for a stage.
set -u
stage=$1; here=$(cd "$(dirname "$0")" && pwd); root=$(cd "$here/../.." && pwd)
: "${VENV:?}" "${MODEL:?}" "${OUT:?}" "${PREDICTED:=$root/tests/data/starts/vllm-0.33.0-predicted.json}"
: "${VERSION:=0.33.0}" "${PYTHON:=python3}" "${LIMIT:=560}" "${WORKS:=/var/tmp/session}"
export PYTHONUNBUFFERED=1 PYTHONPATH="$root/src${PYTHONPATH:+:$PYTHONPATH}" NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1
mkdir -p "$OUT/ranks" "$WORKS"
. "$here/common.sh"

lane() {  # lane NUMBER SCRIPT ARGUMENTS...: one run of acceptance.py or supervised.py next to others
    local n=$1 script=$2; shift 2
    timeout -k 5 "$LIMIT" "$PYTHON" "$here/$script" --whole --engine-version "$VERSION" --venv "$VENV" --model "$MODEL" \
        --lane "$n" --work "$WORKS/lane$n" --out "$OUT/lane$n" \
        --env NCCL_NVLS_ENABLE=0 --env TORCH_SYMM_MEM_DISABLE_MULTICAST=1 "$@" >"$OUT/lane$n.txt" 2>&1
    echo "lane $n ended: $?"
}
failures() {  # failures GPU NAME ARGUMENTS...: with a /tmp and a network of its own
    local gpu=$1 name=$2; shift 2
    # shellcheck disable=SC2016
    CUDA_VISIBLE_DEVICES=$gpu timeout -k 5 "$LIMIT" unshare -m -n sh -c \
        'mount --make-rprivate / && mount -t tmpfs tmpfs /tmp && ip link set lo up && exec "$@"' sh \
        "$VENV/bin/python" "$here/failures.py" --whole --models "$MODEL/.." --out "$OUT/failures" "$@" >"$OUT/failures-$name.txt" 2>&1
    echo "failures $name ended: $?"
}

keep_rank_logs & keeper=$!
began=$SECONDS
case $stage in
together)
    # shellcheck disable=SC2046
    {
    lane 0 acceptance.py --pinned $(cases facts plan up frozen killed down again interrupt) & l0=$!
    lane 1 acceptance.py --pinned --flag enforce-eager $(cases keyed reasoning wrong_value too_long small_kv) & l1=$!
    lane 2 acceptance.py --pinned $(cases dies head_killed gloo nccl) & l2=$!
    SPARKWRIGHT_SUPERVISOR_SCALE=0.3 lane 3 supervised.py --pinned --flag enforce-eager \
        $(cases plan serve learned killed head frozen gone) & l3=$!
    }
    timeout -k 5 "$LIMIT" "$PYTHON" "$here/kv_tokens.py" start --only pinned --together 2 --gpus 0,1 --python "$VENV/bin/python" \
        --predicted "$PREDICTED" --out "$OUT/kv" >"$OUT/kv-pinned.txt" 2>&1 & kv=$!
    failures 1 side --only side --jobs "${JOBS:-5}" --limit 75 & fa=$!
    wait $l0 $l1 $l2 $l3 $kv $fa
    ;;
alone)
    LIMIT=150 lane 4 acceptance.py --flag enforce-eager $(cases plan up down)
    timeout -k 5 $((LIMIT - 100)) "$PYTHON" "$here/kv_tokens.py" start --only free --gpus 0,1 --python "$VENV/bin/python" \
        --predicted "$PREDICTED" --out "$OUT/kv" >"$OUT/kv-free.txt" 2>&1
    ;;
rest)  # what the plan refuses, started by force; rows of models whose kernels are written in CuTe (CUTE: a Python that has it)
    # shellcheck disable=SC2046
    lane 5 acceptance.py --pinned --flag enforce-eager $(cases too_long small_kv gloo nccl) & l5=$!
    timeout -k 5 "$LIMIT" "$PYTHON" "$here/kv_tokens.py" start --only pinned --together 2 --gpus 1 --python "${CUTE:-$VENV}/bin/python" \
        --predicted "$PREDICTED" --out "$OUT/kv-cute" $(printf -- '--row %s ' 6 7 8 9 10 12 13 23) >"$OUT/kv-cute.txt" 2>&1 & kv=$!
    failures 0 alone $(cases weights-too-large kv-too-small kv-none shm-full killed-at-start disk-full warmup-oom lora-missing) & a=$!
    failures 1 requests --only requests & b=$!
    wait $l5 $kv $a $b
    ;;
failures)
    failures 0 alone --only alone & a=$!
    failures 1 requests --only requests & b=$!
    wait $a $b
    ;;
*) echo "unknown stage: $stage" >&2; exit 2 ;;
esac
kill $keeper
echo "$stage: $((SECONDS - began)) s"
