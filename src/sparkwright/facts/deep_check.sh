# Sent to nodes by deep_check.py: `#: NAME` begins a section; the comment lines right below it are not sent.

#: clocks
sample() { LC_ALL=C nvidia-smi --query-gpu=clocks.sm,power.draw,utilization.gpu --format=csv,noheader; }
samples() { printf '@@ samples\n'; i=0; while [ $i -lt "$2" ]; do sleep 1; sample; i=$((i + 1)); done; }
command -v nvidia-smi >/dev/null 2>&1 || { printf '@@ skipped\nnvidia-smi is not installed\n'; exit 0; }
if [ "$5" = busy ]; then printf '@@ load\nwhat runs there\n'; samples x "$2"; exit 0; fi
if python3 -c 'import torch; assert torch.cuda.is_available()' >/dev/null 2>&1; then
  printf '@@ load\ntorch on the node\n'; set -- "$1" "$2" "$3" "$4" host
elif [ -n "$3" ]; then printf '@@ load\ntorch in %s\n' "$3"
else printf '@@ skipped\nno torch on the node, and no image with an engine\n'; exit 0; fi
log=$(mktemp) || exit 1
trap 'kill "$p" 2>/dev/null && wait "$p" 2>/dev/null; rm -f "$log"' EXIT; trap 'exit 1' HUP INT TERM
long=$(($2 + 6))
if [ "$5" = host ]; then python3 -c "$1" "$long" >"$log" 2>&1 & p=$!
else docker run --rm --init --name "$4" --gpus all --network none --pull never --entrypoint python3 \
  "$3" -c "$1" "$long" >"$log" 2>&1 & p=$!; fi
i=0
while ! grep -q '^started' "$log"; do
  kill -0 "$p" 2>/dev/null && [ $i -lt 600 ] || { printf '@@ skipped\n'; tail -n 1 "$log"; exit 0; }
  sleep 0.1; i=$((i + 1))
done
samples x "$2"

#: server
# Four queue pairs, as it takes to fill a rail. perftest before 24 calls the option that binds --source_ip; -h tells.
b=--bind_source_ip; ib_write_bw -h 2>&1 | grep -q -e "$b" || b=--source_ip
exec ib_write_bw -d "$1" -x "$2" -p "$3" -D "$4" $b "$5" -q 4 -F --report_gbits 2>&1

#: client
b=--bind_source_ip; ib_write_bw -h 2>&1 | grep -q -e "$b" || b=--source_ip
i=0
while :; do
  out=$(LC_ALL=C ib_write_bw -d "$1" -x "$2" -p "$3" -D "$4" $b "$5" -q 4 -F --report_gbits "$6" 2>&1); e=$?
  i=$((i + 1))
  case "$out" in *"ouldn't connect to"*) [ $i -ge 12 ] || [ $e -eq 0 ] || { sleep 0.25; continue; } ;; esac
  break
done
printf '%s\n' "$out"; exit $e
