"""What the codes ENG001 to ENG033 mean; the engines make findings of them. Codes are never reused."""

from sparkwright.domain.check import Check, by_code
from sparkwright.domain.finding import BLOCK, OVERRIDE, WARN

CHECKS = (
    Check("ENG001", OVERRIDE, "unknown engine option").about(
        detects="an option of the recipe that this version of the engine does not have. A warning where only data of "
        "a neighbouring version are at hand.",
        fix="write the option that the finding names, or declare an own build's options in engine.extra_flags",
    ),
    Check("ENG002", OVERRIDE, "invalid option value").about(
        detects="a value that is not among those that the option takes.",
        cause="the engine refuses it at start",
        fix="write one of the values that the finding lists",
    ),
    Check("ENG003", OVERRIDE, "missing or malformed option value").about(
        detects="a value that is missing, superfluous or of the wrong type.",
        cause="the engine refuses it at start",
        fix="write a value as in the example of the finding",
    ),
    Check("ENG004", OVERRIDE, "unknown key in a JSON option").about(
        detects="a key of a JSON option that this version does not have.",
        cause="the engine refuses it at start, or ignores it",
        fix="write the key that the finding names",
    ),
    Check("ENG005", WARN, "checked against a neighbouring version").about(
        detects="no flag data for the recipe's version: those of the nearest one are used. Information within the "
        "same series.",
        fix="what only this build has is reported as a warning, not refused; data of its own: make engine-data",
    ),
    Check("ENG006", OVERRIDE, "no flag data for this engine").about(
        detects="no flag data for any version of the engine.",
        cause="its command line cannot be checked before the start",
        fix="make the data: scripts/engine_data.py",
    ),
    Check("ENG007", WARN, "deprecated option or variable").about(
        detects="an option or variable that the engine has deprecated. An override where this version has removed it.",
        cause="the next versions of the engine end at start because of it",
        fix="use what the engine names instead",
    ),
    Check("ENG008", OVERRIDE, "engine does not read the variable").about(
        detects="a variable with the engine's own prefix that this version does not read. A warning with data of a "
        "neighbouring version.",
        cause="it is ignored without a word, and what it should do does not happen",
        fix="remove it, or declare an own build's variables in engine.extra_env",
    ),
    Check("ENG009", WARN, "name not among the built-in ones").about(
        detects="a name (parser, backend, method) that is none of the engine's built-in ones.",
        cause="a plugin may add it; without one the engine ends at start",
        fix="write one of the names that the finding lists",
    ),
    Check("ENG010", BLOCK, "per-rank variable in the recipe").about(
        detects="a variable that holds a node's own address or name.",
        cause="every rank would advertise the same address, and the others would wait for it",
        fix="remove it: sparkwright sets it per rank from the node's fabric address",
    ),
    Check("ENG011", BLOCK, "secret in the recipe").about(
        detects="a key or token in the recipe's env.",
        cause="the environment of a container is readable to everyone who may ask Docker",
        fix="name the variable of your own shell that holds the key in serving.api_key_env",
    ),
    Check("ENG012", WARN, "fixed GID index in the recipe").about(
        detects="NCCL_IB_GID_INDEX in the recipe's env.",
        cause="the RoCE v2 IPv4 entry was seen at 3, 4, 5 and 6, and differs between the ports of one pair",
        fix="remove it: NCCL finds the entry by NCCL_IB_ROCE_VERSION_NUM=2 and NCCL_IB_ADDR_FAMILY=AF_INET",
        see=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",),
    ),
    Check("ENG013", BLOCK, "per-rank option in the recipe").about(
        detects="an option that sparkwright sets on each rank.",
        cause="in a recipe it would be the same on every rank, or bypass who may reach the endpoint",
        fix="use serving.port, serving.expose, serving.master_port or serving.api_key_env",
    ),
    Check("ENG014", BLOCK, "ranks and nodes do not match").about(
        detects="tp x pp x dp is not the number of nodes.",
        cause="a GB10 node has one GPU, and a rank needs a GPU of its own",
        fix="set nodes to tp x pp x dp, or choose tp, pp and dp whose product is the number of nodes",
    ),
    Check("ENG016", BLOCK, "no image for runtime docker").about(
        detects="engine.runtime is docker and engine.image is empty.",
        cause="there is nothing to run",
        fix="set engine.image (best by digest), or engine.runtime: process with engine.venv",
    ),
    Check("ENG017", BLOCK, "no GGUF file in the recipe").about(
        detects="model.path is not a .gguf file: llama.cpp loads one file (the first of several), never a folder.",
        cause="a hub model or a folder may hold many files, and llama.cpp must be given one",
        fix="set model.path to the .gguf file on the nodes (the first one of a model in parts)",
        see=("https://github.com/ggml-org/llama.cpp/tree/master/tools/server",),
    ),
    Check("ENG018", BLOCK, "engine not found in the image").about(
        detects="neither a package nor a program of the engine is in the image or environment. A warning where the "
        "program is the recipe's own, information where it could not be read.",
        cause="the rank would end in its first second",
        fix="correct engine.image, engine.venv or engine.entrypoint, or install the engine there",
    ),
    Check("ENG019", OVERRIDE, "engine version differs from the recipe").about(
        detects="the engine reports another version than the recipe names. A warning within the same minor release.",
        cause="flags, variables and known defects were checked for the recipe's version",
        fix="write the version into the recipe's engine, which checks its flags again, or take the other image",
    ),
    Check("ENG020", BLOCK, "image for another architecture").about(
        detects="the image is not for the node's processor.",
        cause="GB10 is linux/arm64; an emulator would not reach its GPU",
        fix="take the image's arm64 variant, or build one (`sparkwright build`)",
    ),
    Check("ENG021", BLOCK, "trtllm-serve has no API key").about(
        detects="serving.api_key_env for TensorRT-LLM.",
        cause="the server reads no Authorization header, so a key would only seem to protect it",
        fix="leave out serving.api_key_env: the gateway that `sparkwright up` makes has keys of its own",
    ),
    Check("ENG022", BLOCK, "not supported by trtllm-serve").about(
        detects="data-parallel replicas, a file of extra options, or a speculation method that trtllm-serve does not "
        "have.",
        cause="trtllm-serve would refuse or ignore it",
        fix="write it as the finding shows",
    ),
    Check("ENG023", WARN, "llama.cpp RPC is unauthenticated").about(
        detects="a llama.cpp recipe for several nodes. It blocks where the wheel has no RPC or no layer is offloaded.",
        cause="anybody who reaches that port can read and write the worker's memory",
        fix="keep the fabric a cable or a switch of its own, with no way to it from outside",
        see=("https://github.com/ggml-org/llama.cpp/tree/master/tools/rpc",),
    ),
    Check("ENG024", OVERRIDE, "SGLang does not speculate across pipeline stages").about(
        detects="parallelism.pp above 1 together with speculation.",
        cause="its own argument check refuses the two together in nearly every version and mode",
        fix="use tensor parallelism, or leave speculation out",
    ),
    Check("ENG025", BLOCK, "SGLang cannot pin the KV cache in bytes").about(
        detects="serving.kv_cache_bytes for SGLang.",
        cause="there is no option for it, and a limit that is dropped silently is none",
        fix="set flags.max-total-tokens, or serving.memory_fraction",
    ),
    Check("ENG026", WARN, "SGLang graph capture may deadlock across nodes").about(
        detects="CUDA graphs are on in an SGLang recipe for several nodes.",
        cause="the ranks go out of step while they capture their collectives",
        fix="if a start hangs in that phase: flags.disable-cuda-graph: true (a variable does not do it)",
        see=("https://github.com/sgl-project/sglang/issues/19991", "https://al-engr.com/minimax-sglang-debug.html"),
    ),
    Check("ENG027", WARN, "SGLang logs its API key").about(
        detects="an API key together with an own entrypoint.",
        cause="it logs all its arguments at start; our wrapper masks that, and this entrypoint goes around it",
        fix="leave engine.entrypoint out, or keep the log to yourself",
    ),
    Check("ENG028", BLOCK, "option not supported on Ray").about(
        detects="an option of vLLM's own multi-node mode in a recipe for vllm-ray.",
        cause="it belongs to vLLM's own multi-node mode; on Ray one `vllm serve` starts the workers of all nodes",
        fix="remove it, or set engine.name: vllm",
    ),
    Check("ENG029", BLOCK, "data parallelism on Ray is not supported").about(
        detects="parallelism.dp above 1 for vllm-ray.",
        cause="vLLM gives it a backend and placement of its own (--data-parallel-backend ray)",
        fix="set engine.name: vllm, which spreads replicas without Ray, or use tp",
        see=("https://docs.vllm.ai/en/latest/serving/data_parallel_deployment/",),
    ),
    Check("ENG030", OVERRIDE, "unsupported quantization method").about(
        detects="quant_method in config.json is none that this version has. A warning with data of a neighbouring "
        "version.",
        cause="the weights are written in a form that no loader of this version reads",
        fix="take a checkpoint in a format that it has, or a version that has the method",
    ),
    Check("ENG031", BLOCK, "Ray on a single node").about(
        detects="nodes: 1 for vllm-ray.",
        cause="it would only take memory and open ports",
        fix="set engine.name: vllm",
    ),
    Check("ENG032", WARN, "Open MPI listens on all addresses").about(
        detects="a TensorRT-LLM recipe for several nodes.",
        cause="they exchange their fabric addresses only, but bind to any",
        fix="a firewall on the nodes' other interfaces; sparkwright's own agent listens on the fabric only",
    ),
    Check("ENG033", OVERRIDE, "RDMA requested but not available").about(
        detects="NCCL_NET=IB in the environment, and no RDMA device on the node.",
        cause="without one NCCL ends with an error when the ranks meet",
        fix="name them in the node's `fabric.hcas`; for plain TCP write `env: {NCCL_NET: Socket, "
        "NCCL_IB_DISABLE: '1'}` with each node of the cluster file",
        see=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",),
    ),
)
ENG = by_code(CHECKS)
