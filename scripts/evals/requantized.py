"""Further GGUF files of one model: its weights in another type, everything else as it was.

requantized.py FILE.gguf TYPE... (F16, Q8_0, Q5_1, Q5_0, Q4_1, Q4_0): writes FILE-TYPE.gguf next to it.

A type with more bits than FILE's adds no quality: the files are for starts that differ, not for comparing types.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import gguf
import numpy as np

_WHOLE = 32  # elements of a block of these types


def write_as(source: Path, target: Path, wanted: gguf.GGMLQuantizationType) -> None:
    """Vectors and rows that no block divides keep their type."""
    reader = gguf.GGUFReader(source)
    architecture = reader.get_field("general.architecture")
    assert architecture is not None, f"{source} names no architecture"
    writer = gguf.GGUFWriter(target, architecture.contents())
    for found in reader.fields.values():
        if found.name.startswith("GGUF.") or found.name in ("general.architecture", "general.file_type"):
            continue
        kind, inner = found.types[0], found.types[-1] if found.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(found.name, found.contents(), kind, inner)
    for tensor in reader.tensors:
        plain = len(tensor.shape) < 2 or int(tensor.shape[0]) % _WHOLE
        if plain:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            continue
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, gguf.quants.quantize(weights, wanted), raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(words: Sequence[str]) -> int:
    source, *types = words
    for name in types:
        target = Path(source).with_name(f"{Path(source).stem}-{name}.gguf")
        write_as(Path(source), target, gguf.GGMLQuantizationType[name])
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
