"""Is a model on a node, all of it, and what are its weights?"""

import re
from collections.abc import Iterator, Mapping, Sequence

from sparkwright.domain.checkpoint import MISSING, Checkpoint, Defect, Flaw, TensorGroup
from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.values import dataclass
from sparkwright.facts import gguf, model_config, safetensors
from sparkwright.facts.fact import Plain, parsed_json, whole_number
from sparkwright.facts.model_unread import STATE, known_family, list_pattern
from sparkwright.facts.model_values import Config, first_mapping, number, table_keys, texts_of
from sparkwright.facts.safetensors import INDEX, ShardIndex, index_flaws, indexes, main_index
from sparkwright.remote.programs.wire import COPYING

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_SHOWN = 3
# The norm before the attention: one a layer, as long as the hidden width. Encoders have theirs under other names.
_NORM = re.compile(r"(model\.)?(language_model\.)?(model\.)?layers\.#\.input_layernorm\.weight")
_WIDTHS = {"BF16": 2, "F16": 2, "F32": 4}
_DRAFTS = 8  # draft layers stand beside the model's, and a config may not tell them
_WEIGHTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth")
_PART = re.compile(r"(?P<stem>.*-)\d{5}-of-(?P<count>\d{5})(?P<end>\.(?:safetensors|gguf|bin))", re.ASCII)
_MISLEADING = (Defect.CONFIG, Defect.GARBAGE, Defect.PROJECTOR)
_ONE = ("path", "root", "revision", "config", "hf_quant_config", "gguf")
Rows = Sequence[Sequence[str]]


def doubts(text: str, shape: ModelShape | Unknown | None) -> tuple[str, ...]:
    """Sentences for the user. A text that is no JSON object is another flaw."""
    if isinstance(shape, Unknown) and (_config(text) or not text):
        return (shape.why,)
    if not isinstance(shape, ModelShape):
        return ()
    return tuple(_doubts(text, _config(text), shape))


def _config(text: str) -> Config:
    top = parsed_json(text)
    return {**top, **first_mapping(top, *_NESTED)} if isinstance(top, Mapping) else {}


def _doubts(text: str, config: Config, shape: ModelShape) -> Iterator[str]:
    if shape.architecture and not known_family(shape.architecture):
        code = ", and its code comes with the model (auto_map)" if config.get("auto_map") else ""
        yield f"the architecture {shape.architecture} is not known{code}: counted as plain attention, the most it keeps"
    if shape.state_layers and not (shape.state_matrix or shape.state_conv_width):
        yield f"{shape.state_layers} layers keep a state of unknown size: none is counted for them"
    if not shape.state_layers and any(STATE.match(key) and config[key] for key in config):
        yield "state layers, but not which: all are counted as attention"
    window = number(config, "sliding_window", "sliding_window_size")
    switched_off = config.get("use_sliding_window") is False
    told = switched_off or shape.window_layers or shape.compress or texts_of(config.get("layer_types"))
    if 0 < window < shape.positions and not told:
        yield f"a window of {window} tokens, but not of which layers: all are counted with the whole context"
    if shape.index_dim and not shape.index_layers:
        yield "an indexer, but not in which layers: none is counted"
    if shape.tables_unknown:
        yield (
            f"tables next to the vocabulary ({', '.join(table_keys(config)[:_SHOWN])}), but not how large: none is "
            "counted"
        )
    odd = sorted(model_config.odd_keys(text), key=lambda key: not list_pattern("telling").search(key))
    if odd:
        more = f" and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
        yield f"keys that are not understood here: {', '.join(odd[:_SHOWN])[:120]}{more}"


def differences(shape: ModelShape, tensors: Sequence[TensorGroup]) -> Iterator[str]:
    """`12 layers, the weights have 36`; nothing where the weights do not show it."""
    norms = [group for group in tensors if _NORM.fullmatch(group.name)]
    layers = sum(group.count for group in norms)
    if layers and not shape.layers <= layers <= shape.layers + max(shape.mtp_layers, _DRAFTS):
        yield f"{shape.layers} layers, the weights have {layers}"
    widths = {group.bytes // (group.count * _WIDTHS[group.dtype]) for group in norms if group.dtype in _WIDTHS}
    if widths and shape.hidden and shape.hidden not in widths:
        yield f"a width of {shape.hidden}, the weights have {min(widths)}"


@dataclass(frozen=True, slots=True)
class ModelListing:
    """The rows of remote.staging's listing; files: name -> bytes; one: what has one row."""

    rows: Rows
    files: Mapping[str, int]
    one: Mapping[str, str]
    indexes: tuple[ShardIndex, ...]


def parse(done: Completed) -> Checkpoint | Unknown:
    """Reads the listing of remote.staging. `missing` names each file that is absent, cut short or unfinished."""
    if not done.ok:
        return Unknown(done.stderr.strip()[:200], f"exit {done.exit_code}")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    one = {row[0]: row[1] for row in rows if len(row) == 2 and row[0] in _ONE}
    if odd := [one[name] for name in ("path", "root") if one.get(name) and not Plain.FOLDER.fits(one[name])]:
        return Unknown(f"{odd[0]!r}"[:200], "its folder cannot be used as it is")
    sizes = ((row[2], whole_number(row[1])) for row in rows if row[0] == "file" and len(row) == 3)
    files = {name: size for name, size in sizes if size is not None and size >= 0}
    return _checkpoint(ModelListing(rows, files, one, tuple(indexes(rows))))


def _checkpoint(listing: ModelListing) -> Checkpoint:
    path, files, one = listing.one.get("path", ""), listing.files, listing.one
    shape, tensors = _model(listing)
    flaws = tuple(_flaws(listing)) if path else ()
    misleading = next((flaw for flaw in flaws if flaw.defect in _MISLEADING), None)
    if misleading and misleading.defect is Defect.CONFIG and isinstance(shape, ModelShape):
        shape = Unknown("", str(misleading))
    return Checkpoint(
        path=path if files else "",
        root=one.get("root", ""),
        revision=one.get("revision", ""),
        bytes=sum(files.values()),
        files=len(files),
        missing=tuple(str(flaw) for flaw in flaws if flaw.defect in MISSING),
        config=one.get("config", ""),
        shape=shape,
        tensors=tensors,
        weights=_weights(listing),
        flaws=flaws,
        doubts=() if misleading else doubts(one.get("config", ""), shape),
    )


def _model(listing: ModelListing) -> tuple[ModelShape | Unknown | None, tuple[TensorGroup, ...]]:
    """Shape and tensors: of config.json and the safetensors headers, or of a GGUF file's header."""
    if packed := listing.one.get("gguf"):
        header = gguf.unpack(packed)
        parts = _weights(listing) if header and header.parts > 1 else 0
        return gguf.header_shape(header), gguf.groups(header, parts)
    text = listing.one.get("config", "")
    shape = model_config.parse(text, listing.one.get("hf_quant_config", "")) if text else None
    return shape, safetensors.groups(listing.rows)


def _weights(listing: ModelListing) -> int:
    """Bytes that an engine loads: the files whose headers it reads, else all weights next to config.json."""
    names = safetensors.loaded(listing.rows) or [
        name for name in listing.files if "/" not in name and (name or "x.gguf").endswith(_WEIGHTS)
    ]
    return sum(listing.files.get(name, 0) for name in names)


def _flaws(listing: ModelListing) -> Iterator[Flaw]:
    """Each file once, with the plainest reason; whether files fit each other is asked when all are there."""
    found: dict[str, Flaw] = {}
    for flaw in (*_gone(listing), *_damaged(listing), *_odd(listing)):
        if flaw.file not in found or flaw.defect not in MISSING:
            found.setdefault(flaw.file, flaw)
            yield flaw
    if not any(flaw.defect in {*MISSING, Defect.GARBAGE} for flaw in found.values()):
        yield from _contradictions(listing)


def _damaged(listing: ModelListing) -> Iterator[Flaw]:
    """Files that do not match their own headers."""
    yield from safetensors.file_flaws(listing.rows, listing.files)
    names = sorted(name for name in listing.files if (name or "x.gguf").endswith(".gguf"))
    if (packed := listing.one.get("gguf")) and names and (size := listing.files[names[0]]):
        header = gguf.unpack(packed)
        if said := gguf.damage(header, size):
            defect = Defect.PROJECTOR if header and header.projector else Defect.GARBAGE
            yield Flaw(Defect.SHORT if said.startswith("cut short") else defect, names[0], said)


def _gone(listing: ModelListing) -> Iterator[Flaw]:
    """Files that are not there, or not with all that they hold."""
    files, index = listing.files, main_index(listing.indexes)
    yield from (
        Flaw(Defect.EMPTY, name, "empty")
        for name, size in files.items()
        if not size and (name or "x.gguf").endswith(_WEIGHTS)
    )
    marked = tuple(_marked(listing.rows))
    yield from marked
    wanted = (*index.shards, *_parts(files)) if index else tuple(_parts(files))
    for name in wanted:
        if name not in files:
            yield Flaw(Defect.ABSENT, name, "absent, and the model needs it")
    if files and not wanted and not marked and not _is_model(files):
        yield Flaw(Defect.ABSENT, "", "no weights and no config.json")


def _marked(rows: Rows) -> Iterator[Flaw]:
    for kind, *rest in rows:
        if kind == "incomplete" and rest:
            copy = rest[0].endswith(COPYING)
            yield Flaw(Defect.UNFINISHED, rest[0], "a copy that was not finished" if copy else "unfinished download")
        elif kind == "broken" and rest:
            yield Flaw(Defect.BROKEN_LINK, rest[0], "broken link")
        # The hub client in offline mode finds a snapshot only by refs/main, and a newline in it breaks the path.
        elif kind == "noref":
            yield Flaw(Defect.REF, "refs/main", "absent: offline loading needs it")
        elif kind == "badref":
            yield Flaw(Defect.REF, "refs/main", "ends with a newline")
        elif kind == "lostref" and len(rest) == 2:
            yield Flaw(Defect.REF, "refs/main", f"names {rest[0]}, of which there is no snapshot; there is {rest[1]}")


def _parts(files: Mapping[str, int]) -> Iterator[str]:
    """All files of a model in parts, as the name of any one of them promises; also without an index."""
    matches = filter(None, map(_PART.fullmatch, files))
    for stem, count, end in {(match["stem"], match["count"], match["end"]) for match in matches}:
        yield from (f"{stem}{number:05}-of-{count}{end}" for number in range(1, int(count) + 1))


def _is_model(files: Mapping[str, int]) -> bool:
    return "" in files or any(name.endswith((*_WEIGHTS, "config.json")) for name in files)


def _odd(listing: ModelListing) -> Iterator[Flaw]:
    """Flaws without a missing file: the engine fails over them, or loads in an unexpected way."""
    loaded = safetensors.loaded(listing.rows)
    if loaded and "config.json" not in listing.files and "params.json" not in listing.files:
        yield Flaw(Defect.CONFIG, "config.json", "absent: no engine knows what the weights are")
    elif isinstance(broken := model_config.mapping(listing.one.get("config", "{}")), Unknown):
        yield Flaw(Defect.CONFIG, "config.json", broken.why.removeprefix("config.json "))
    index = main_index(listing.indexes)
    if index and not index.shards:
        yield Flaw(Defect.NO_INDEX, index.name, "names no file: it was cut off or is none")
    if len(loaded) > 1 and not listing.indexes:
        yield Flaw(Defect.NO_INDEX, INDEX, f"absent, with {len(loaded)} shards")
    if len(listing.indexes) > 1:
        names = ", ".join(index.name for index in listing.indexes)
        main = main_index(listing.indexes)
        yield Flaw(Defect.MANY_INDEXES, "", f"{names}; engines load what {main.name if main else INDEX} names")


def _contradictions(listing: ModelListing) -> Iterator[Flaw]:
    """Files that are all there and not of one model or release."""
    shape, tensors = _model(listing)
    if other := " and ".join(differences(shape, tensors)) if isinstance(shape, ModelShape) else "":
        yield Flaw(Defect.CONFIG, "config.json", f"is of another model: {other}")
    elif index := main_index(listing.indexes):
        yield from index_flaws(index, safetensors.groups(listing.rows))
