"""The rules of the family model-files-and-hub, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.files import (
    lfil001_corrupt_checkpoint,
    lfil002_disk_full,
    lfil003_gated_repo,
    lfil004_fast_loader,
    lfil005_hub_rate_limited,
    lfil006_no_vision_weights,
    lfil007_cache_incomplete_offline,
    lfil008_prequantized_keyerror,
    lfil009_model_not_found,
    lfil010_hub_unreachable,
    lfil011_shards_missing,
    lfil012_download_lock,
    lfil013_xet_stalls,
    lfil014_tokenizer_missing,
)

RULES: tuple[LogRule, ...] = (
    lfil001_corrupt_checkpoint,
    lfil002_disk_full,
    lfil003_gated_repo,
    lfil004_fast_loader,
    lfil005_hub_rate_limited,
    lfil006_no_vision_weights,
    lfil007_cache_incomplete_offline,
    lfil008_prequantized_keyerror,
    lfil009_model_not_found,
    lfil010_hub_unreachable,
    lfil011_shards_missing,
    lfil012_download_lock,
    lfil013_xet_stalls,
    lfil014_tokenizer_missing,
)
