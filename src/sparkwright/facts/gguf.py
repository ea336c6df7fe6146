"""The head of a GGUF file (llama.cpp's format, versions 2 and 3): metadata and the table of its tensors.

Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Total: a head that is cut or damaged gives what could
be read before that point; nothing is read twice and no count is trusted beyond the bytes that are there.
"""

import base64
import re
import struct
import zlib
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sparkwright.domain.checkpoint import TensorGroup
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.values import dataclass, field
from sparkwright.facts.gguf_config import shape_of, tensor_type

MOST = 16 * 1024 * 1024
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_KEPT = 4096  # entries of an array that is kept; of longer ones (tokens) only the length matters
_MOST_DIMENSIONS = 8
_ALIGNED, _MOST_ALIGNED = 32, 1 << 20
_PROJECTORS = ("clip", "mmproj")
_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Header:
    """metadata: key -> value, of an array of text or a long one its length. tensors: name, type, bytes.

    whole: everything up to the numbers was there, so that no tensor is missing. parts: files that the model is in.
    read: bytes that were there to read. end: length of the file by its table of tensors.
    """

    metadata: Mapping[str, Any] = field(default_factory=dict)
    tensors: tuple[tuple[str, str, int], ...] = ()
    whole: bool = False
    read: int = 0
    end: int = 0

    @property
    def projector(self) -> bool:
        """True if the file is an encoder of images or sound that goes with a model, and no model."""
        said = (self.metadata.get(key) for key in ("general.architecture", "general.type"))
        return any(kind in _PROJECTORS for kind in said if isinstance(kind, str))

    @property
    def parts(self) -> int:
        count = self.metadata.get("split.count", 1)
        return count if isinstance(count, int) and count > 0 else 1


class _Cut(Exception):
    """The bytes end before the value does, or it is none."""


@dataclass(slots=True)
class _Reader:
    data: bytes
    order: str = "<"
    at: int = 0

    def scalar(self, code: str) -> Any:
        form = self.order + code
        end = self.at + struct.calcsize(form)
        if end > len(self.data):
            raise _Cut
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at = end
        return value

    def skip(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise _Cut
        self.at += count
        return self.data[self.at - count : self.at]

    def text(self) -> str:
        return self.skip(self.scalar("Q")).decode("utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY and depth < 2:
            return self.array(depth)
        if kind not in _SCALARS:
            raise _Cut
        return self.scalar(_SCALARS[kind])

    def array(self, depth: int) -> Any:
        kind, count = self.scalar("I"), self.scalar("Q")
        if kind in _SCALARS and count > _KEPT:
            self.skip(count * struct.calcsize(self.order + _SCALARS[kind]))
            return count
        if kind == _STRING:
            return self.texts(count)
        if count > len(self.data):
            raise _Cut
        values = [self.value(kind, depth + 1) for _ in range(count)]
        return values if kind in _SCALARS else count

    def texts(self, count: int) -> int:
        """Steps over so many texts: the tokens and merges are most of a head, half a million of them."""
        length, at = struct.Struct(self.order + "Q").unpack_from, self.at
        try:
            for _ in range(count):
                at += 8 + length(self.data, at)[0]
        except (struct.error, OverflowError):  # a length of 2**64-1
            raise _Cut from None
        self.at = at
        return count


def unpack(packed: str) -> Header | None:
    """The header in the listing's base64 of the gzipped first bytes; None for another kind of file."""
    try:
        data = zlib.decompressobj(31).decompress(base64.b64decode(packed, validate=True), MOST)
    except (ValueError, zlib.error):
        return None
    return parse(data)


def parse(data: bytes) -> Header | None:
    """None for bytes that are no GGUF file."""
    if data[:4] != b"GGUF" or len(data) < 24:
        return None
    order = "<" if struct.unpack_from("<I", data, 4)[0] < 1 << 16 else ">"
    reader = _Reader(data, order, 8)
    count, pairs = reader.scalar("Q"), reader.scalar("Q")
    metadata: dict[str, Any] = {}
    tensors: list[tuple[str, str, int]] = []
    last = 0
    try:
        for _ in range(pairs):
            key = reader.text()
            metadata[key] = reader.value(reader.scalar("I"))
        for _ in range(count):
            name, kind, size, offset = _tensor(reader)
            tensors.append((name, kind, size))
            last = max(last, offset + size)
    except _Cut:
        return Header(metadata, read=len(data))
    end = _aligned(reader.at, metadata) + max(last, sum(size for _, _, size in tensors))
    return Header(metadata, tuple(tensors), True, len(data), end)


def _aligned(at: int, metadata: Mapping[str, Any]) -> int:
    """The beginning of the numbers: the next whole multiple of the file's alignment."""
    step = metadata.get("general.alignment")
    step = step if isinstance(step, int) and 0 < step <= _MOST_ALIGNED else _ALIGNED
    return -(-at // step) * step


def _tensor(reader: _Reader) -> tuple[str, str, int, int]:
    """Name, type, bytes, and where they begin among the numbers."""
    name, dimensions = reader.text(), reader.scalar("I")
    if dimensions > _MOST_DIMENSIONS:
        raise _Cut
    numbers = 1
    for _ in range(dimensions):
        numbers *= reader.scalar("Q")
    kind, offset = reader.scalar("I"), reader.scalar("Q")
    written, block, size = tensor_type(kind)
    return name, written, -(-numbers // block) * size, offset


def groups(header: Header | None, whole: int = 0) -> tuple[TensorGroup, ...]:
    """Groups of tensors by name and type. whole: bytes of all files of a model in parts, of which only the first one's
    head was read."""
    if header is None or not header.whole:
        return ()
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for name, kind, size in header.tensors:
        found[_NUMBER.sub("#", name), kind].append(size)
    rest = whole - sum(size for _, _, size in header.tensors)
    others = (TensorGroup("other parts", "?", rest, header.parts - 1),) if whole and rest > 0 else ()
    return (*(TensorGroup(name, kind, sum(s), len(s)) for (name, kind), s in sorted(found.items())), *others)


def damage(header: Header | None, size: int) -> str:
    """The fault of a file of this size, '' for none. Of a model in parts only the first one is judged."""
    if header is None:
        return "does not begin with the mark of a GGUF file"
    if header.projector:
        return "a projector (mmproj) of images or sound, and no model: give the file with the language model"
    if not header.whole and not header.metadata.get("general.architecture"):
        return "its header cannot be read"
    if not header.whole and size <= header.read:
        return f"cut short inside its header, after {size:,} bytes"
    if header.whole and size < header.end:
        small = header.end < GIB
        there, promised = (f"{one:,} bytes" if small else gib(one) for one in (size, header.end))
        return f"cut short: {there} of the {promised} that its header promises"
    return ""


def header_shape(header: Header | None) -> ModelShape | Unknown:
    """The model as the header describes it."""
    if header is None:
        return Unknown("", "no GGUF file: it does not begin with its mark")
    return shape_of(header.metadata, groups(header), header.whole and header.parts == 1)
