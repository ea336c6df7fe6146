"""What the codes ENG001 to ENG037 mean; the engines make findings of them. Codes are never reused."""

from sparkwright.domain.check import Check, by_code, explained
from sparkwright.domain.finding import BLOCK, OVERRIDE, WARN

CHECKS = explained(
    __file__,
    Check("ENG001", OVERRIDE, "unknown engine option"),
    Check("ENG002", OVERRIDE, "invalid option value"),
    Check("ENG003", OVERRIDE, "missing or malformed option value"),
    Check("ENG004", OVERRIDE, "unknown key in a JSON option"),
    Check("ENG005", WARN, "checked against a neighbouring version"),
    Check("ENG006", OVERRIDE, "no flag data for this engine"),
    Check("ENG007", WARN, "deprecated option or variable"),
    Check("ENG008", OVERRIDE, "engine does not read the variable"),
    Check("ENG009", WARN, "name not among the built-in ones"),
    Check("ENG010", BLOCK, "per-rank variable in the recipe"),
    Check("ENG011", BLOCK, "secret in the recipe"),
    Check("ENG012", WARN, "fixed GID index in the recipe"),
    Check("ENG013", BLOCK, "per-rank option in the recipe"),
    Check("ENG014", BLOCK, "ranks and nodes do not match"),
    Check("ENG016", BLOCK, "no image for runtime docker"),
    Check("ENG017", BLOCK, "no GGUF file in the recipe"),
    Check("ENG018", BLOCK, "engine not found in the image"),
    Check("ENG019", OVERRIDE, "engine version differs from the recipe"),
    Check("ENG020", BLOCK, "image for another architecture"),
    Check("ENG021", BLOCK, "trtllm-serve has no API key"),
    Check("ENG022", BLOCK, "not supported by trtllm-serve"),
    Check("ENG023", WARN, "llama.cpp RPC is unauthenticated"),
    Check("ENG024", OVERRIDE, "SGLang does not speculate across pipeline stages"),
    Check("ENG025", BLOCK, "SGLang cannot pin the KV cache in bytes"),
    Check("ENG026", WARN, "SGLang graph capture may deadlock across nodes"),
    Check("ENG027", WARN, "SGLang logs its API key"),
    Check("ENG028", BLOCK, "option not supported on Ray"),
    Check("ENG029", BLOCK, "data parallelism on Ray is not supported"),
    Check("ENG030", OVERRIDE, "unsupported quantization method"),
    Check("ENG031", BLOCK, "Ray on a single node"),
    Check("ENG032", WARN, "Open MPI listens on all addresses"),
    Check("ENG033", OVERRIDE, "RDMA requested but not available"),
    Check("ENG034", WARN, "image tag can move"),
    Check("ENG036", OVERRIDE, "engine may listen on all addresses"),
    Check("ENG037", BLOCK, "engine has no API key"),
)
ENG = by_code(CHECKS)
