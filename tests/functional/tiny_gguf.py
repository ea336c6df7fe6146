"""A language model of random weights that fits in a megabyte: real enough for llama.cpp to load, serve and stream.

Its answers are noise. What it proves is the path: argv, loading, HTTP, streaming, usage, stop.
"""

from pathlib import Path

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, KV_HEADS, FEED_FORWARD, CONTEXT = 64, 2, 4, 2, 128, 2048
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)

TO_THE_LIMIT = {"temperature": 0, "ignore_eos": True}
"""What a request to it must contain for an answer of exactly `max_tokens`: chance weights may end one at any token."""


def vocabulary() -> tuple[list[bytes], list[float], list[int]]:
    """A sentencepiece vocabulary: three control tokens, the 256 bytes, and letters, so that every text has tokens."""
    kinds = gguf.TokenType
    tokens = [b"<unk>", b"<s>", b"</s>"]
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL]
    tokens += [f"<0x{byte:02X}>".encode() for byte in range(256)]
    types += [kinds.BYTE] * 256
    letters = ["\u2581", *(chr(code) for code in range(33, 127)), *("\u2581" + chr(code) for code in range(97, 123))]
    tokens += [letter.encode() for letter in letters]
    types += [kinds.NORMAL] * len(letters)
    scores = [0.0] * 259 + [-float(rank) for rank in range(len(letters))]
    return tokens, scores, [int(kind) for kind in types]


def write_tiny_gguf(path: Path, seed: int = 0, embeds: bool = False) -> Path:
    """Writes the model to `path` (about 0.5 MB, F32) and returns it; the same seed gives the same bytes.

    embeds: an answer is the mean of its tokens' vectors, as an embedding model's file has it.
    """
    writer = gguf.GGUFWriter(str(path), "llama")
    _metadata(writer)
    if embeds:
        writer.add_pooling_type(gguf.PoolingType.MEAN)
    _tokenizer(writer)
    _tensors(writer, np.random.default_rng(seed))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _metadata(writer: gguf.GGUFWriter) -> None:
    writer.add_name("tiny-random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(int(gguf.LlamaFileType.ALL_F32))


def _tokenizer(writer: gguf.GGUFWriter) -> None:
    tokens, scores, types = vocabulary()
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(CHAT_TEMPLATE)


def _tensors(writer: gguf.GGUFWriter, random: np.random.Generator) -> None:
    kv_width = WIDTH // HEADS * KV_HEADS
    vocab = len(vocabulary()[0])

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * 0.05).astype(np.float32))

    add("token_embd.weight", vocab, WIDTH)
    add("output.weight", vocab, WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, dtype=np.float32))
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"{block}.{norm}.weight", np.ones(WIDTH, dtype=np.float32))
        add(f"{block}.attn_q.weight", WIDTH, WIDTH)
        add(f"{block}.attn_k.weight", kv_width, WIDTH)
        add(f"{block}.attn_v.weight", kv_width, WIDTH)
        add(f"{block}.attn_output.weight", WIDTH, WIDTH)
        add(f"{block}.ffn_gate.weight", FEED_FORWARD, WIDTH)
        add(f"{block}.ffn_up.weight", FEED_FORWARD, WIDTH)
        add(f"{block}.ffn_down.weight", WIDTH, FEED_FORWARD)
