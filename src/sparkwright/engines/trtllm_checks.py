"""What trtllm-serve cannot do of what a recipe may ask: findings ENG021, ENG022 and ENG032."""

from collections.abc import Mapping

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.options import merge
from sparkwright.engines.trtllm_args import DECODING, EXTRA


def check_trtllm(recipe: Recipe) -> tuple[Finding, ...]:
    return (*_key(recipe), *_replicas(recipe), *_extra(recipe), *_method(recipe), *_daemons(recipe))


def _daemons(recipe: Recipe) -> tuple[Finding, ...]:
    """Seen with `ss` under Open MPI 4.1.4; there is no option for the address to listen on."""
    if recipe.nodes == 1:
        return ()
    return (
        Finding(
            "ENG032", Severity.WARN, "nodes", "Open MPI's daemons listen on all addresses of their nodes",
            evidence="mpirun and orted: ports of the system's choice on 0.0.0.0 and [::], while the job runs",
            cause="they tell each other their fabric addresses only, but bind to any",
            remedy="a firewall on the nodes' other interfaces; sparkwright's own agent listens on the fabric only",
        ),
    )  # fmt: skip


def _key(recipe: Recipe) -> tuple[Finding, ...]:
    """Its server checks no key, neither as an option nor in a middleware (serve/openai_server.py)."""
    s = recipe.serving
    if not s.api_key_env:
        return ()
    return (
        Finding(
            "ENG021", Severity.BLOCK, "serving", "trtllm-serve has no API key: everybody who reaches it may use it",
            evidence=f"serving.api_key_env: {s.api_key_env}",
            cause="the server looks at no Authorization header, so a key would only seem to protect it",
            remedy="leave out serving.api_key_env: the gateway that `sparkwright up` makes has keys of its own",
        ),
    )  # fmt: skip


def _replicas(recipe: Recipe) -> tuple[Finding, ...]:
    p = recipe.parallelism
    if p.dp == 1:
        return ()
    return (
        Finding(
            "ENG022", Severity.BLOCK, "parallelism.dp", "trtllm-serve has no data-parallel replicas",
            evidence=f"dp: {p.dp}",
            cause="its ranks are tp_size x pp_size; attention can be split by requests inside tp",
            remedy=f"tp: {p.tp * p.dp}, and flags: {{extra_llm_api_options: {{enable_attention_dp: true}}}}",
        ),
    )  # fmt: skip


def _extra(recipe: Recipe) -> tuple[Finding, ...]:
    given = merge({}, recipe.flags).get(EXTRA, {})
    if isinstance(given, Mapping):
        return ()
    return (
        Finding(
            "ENG022", Severity.BLOCK, f"flags.{EXTRA}", "the file of extra options is written by sparkwright",
            evidence=f"extra_llm_api_options: {given}",
            cause="a path in a recipe says nothing about what the file holds on each node",
            remedy="give the file's content as a mapping: extra_llm_api_options: {cuda_graph_config: {...}}",
        ),
    )  # fmt: skip


def _method(recipe: Recipe) -> tuple[Finding, ...]:
    method = recipe.speculation.method
    if not method or method in DECODING or "decoding_type" in recipe.speculation.options:
        return ()
    return (
        Finding(
            "ENG022", Severity.BLOCK, "speculation.method", f"TensorRT-LLM has no speculation method {method!r}",
            evidence=f"method: {method}",
            remedy=f"one of {', '.join(DECODING)}, or its own name as speculation.options.decoding_type",
        ),
    )  # fmt: skip
