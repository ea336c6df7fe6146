"""Count the parameters of every causal class of an installed transformers, from its default configuration.

model_classes.py OUT.jsonl. It needs transformers and torch, which the project does not depend on; use a virtual
environment of its own. Each class is built on the meta device, which takes no memory, and its parameters are counted.
The result is tests/data/models/classes.jsonl, with which the count of weights is compared.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

_LEFT_OUT = re.compile(
    r"id2label|label2id|.*_token_id|.*dropout.*|transformers_version|return_dict|output_.*|use_cache|_name_or_path|"
    r"initializer_.*|problem_type|is_encoder_decoder|chunk_size_feed_forward|rope_parameters|.*_eps|pruned_heads|"
    r"tf_legacy_loss|torchscript|finetuning_task"
)


def main(words: list[str]) -> int:
    import torch  # not a dependency of the project
    from transformers import AutoModelForCausalLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    with Path(words[0]).open("w", encoding="utf-8") as out:
        for kind, name in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items()):
            try:
                config = CONFIG_MAPPING[kind]()
                with torch.device("meta"):
                    model = AutoModelForCausalLM.from_config(config)
            except Exception as error:  # some defaults build no model; each costs its own row only
                print(f"{kind}: {type(error).__name__}: {error}"[:120], file=sys.stderr)
                continue
            found = json.loads(config.to_json_string(use_diff=False))
            row = {"model_type": kind, "parameters": sum(one.numel() for one in model.parameters())}
            row["config"] = {**short_config(found), "architectures": [name], "dtype": "bfloat16"}
            out.write(f"{json.dumps(row, separators=(',', ':'))}\n")
    return 0


def short_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the config without what no count needs: nulls, ids of tokens, labels, losses."""
    kept = {key: value for key, value in config.items() if value is not None and not _LEFT_OUT.fullmatch(key)}
    return {key: short_config(value) if isinstance(value, dict) else value for key, value in kept.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
