# Sourced by the engines' tables: MODELS holds tiny/ (a small Qwen3 with tokenizer and chat template) and 8b/config.json.
mkdir -p /models
mount -t tmpfs tmpfs /models
cp -r "$MODELS/tiny" /models/tiny
chmod -R u+w /models
export HF_HUB_OFFLINE=1

# changed NAME JSON: a copy of tiny with other values in its config.json (null removes one).
changed() { rm -rf "/models/$1"; cp -r /models/tiny "/models/$1"; python3 "$TOOLS/tools.py" config "/models/$1/config.json" "${2:-{\}}"; }

# large NAME JSON: the same with the dimensions of an 8B model.
large() { changed "$1"; cp "$MODELS/8b/config.json" "/models/$1/"; python3 "$TOOLS/tools.py" config "/models/$1/config.json" "${2:-{\}}"; }

# weighted NAME JSON: with real weights, in two shards.
weighted() { changed "$1"; python3 "$TOOLS/tools.py" weights "/models/$1"; python3 "$TOOLS/tools.py" config "/models/$1/config.json" "${2:-{\}}"; }

# ask PATH [JSON [KEY]]: one request as curl shows it.
ask() { python3 "$TOOLS/tools.py" ask "http://127.0.0.1:$PORT$1" "${2:-}" "${3:-}"; }

# during COMMAND...: after the engine, started with `serve` in the background, is ready; its log first.
serving() { serve "$@" > server.log 2>&1 & wait_for "$READY" server.log 150; }
printed() { sleep 1; cat server.log; }

# stopped PATTERN SIGNAL: processes whose command line has it.
signalled() { ps -eo pid=,args= | grep -E "$1" | grep -vE 'grep|bash' | awk '{print $1}' | xargs -r kill -"$2"; }
