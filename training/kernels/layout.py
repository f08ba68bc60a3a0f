"""How weights are packed for the kernels in `wasm/networks`: rounded rows, tiles, and the header of the file."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

MAGIC = b"RCNW"
VERSION = 1
CAMPPLUS, SEGMENTATION, SEGMENTATION_V8 = 1, 2, 3
"""Numbers of the networks in the header."""
PAIR = 2
LARGEST_SUM = 2.13e9
"""Slightly less than 2^31, since weights are rounded after they are scaled."""


def write_weights(path: Path, network: int, sections: list[bytes]) -> None:
    """The header (magic, version, network, size of the rest; 32 bits each, little-endian), then the sections."""
    payload = b"".join(sections)
    if any(len(section) % 16 for section in sections):
        raise ValueError("the size of a section is not a multiple of 16 bytes")
    path.write_bytes(struct.pack("<4sIII", MAGIC, VERSION, network, len(payload)) + payload)


def floats(*arrays: np.ndarray) -> bytes:
    return b"".join(np.ascontiguousarray(array, "<f4").tobytes() for array in arrays)


def integers(*arrays: np.ndarray) -> bytes:
    return b"".join(np.ascontiguousarray(array, "<i2").tobytes() for array in arrays)


def row_steps(rows: np.ndarray, input_limit: int, signed: bool) -> np.ndarray:
    """The step of each row of weights [rows, inputs] in 16 bits, such that no sum of products exceeds 32 bits.

    Inputs are integers up to ``input_limit``. If they are not ``signed``, positive and negative weights cannot add up.
    """
    positive, negative = np.maximum(rows, 0).sum(1), np.maximum(-rows, 0).sum(1)
    largest = positive + negative if signed else np.maximum(positive, negative)
    return np.maximum.reduce(
        [largest * input_limit / LARGEST_SUM, np.abs(rows).max(1) / 32767, np.full(len(rows), 1e-30)]
    )


def norm_row_steps(rows: np.ndarray, input_norm: float) -> np.ndarray:
    """Like ``row_steps``, for inputs whose sum of squares is at most the square of ``input_norm``."""
    largest = np.linalg.norm(rows, axis=1) * input_norm
    return np.maximum.reduce([largest / LARGEST_SUM, np.abs(rows).max(1) / 32767, np.full(len(rows), 1e-30)])


def rounded(rows: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Rows [rows, ...] in units of their steps [rows]."""
    return np.rint(rows / steps.reshape(-1, *[1] * (rows.ndim - 1))).astype(np.int16)


def tiles(rows: np.ndarray, height: int) -> bytes:
    """Rows [rows, inputs] as [rows / height, inputs / 2, height, 2]: the order in which a product reads them."""
    count, inputs = rows.shape
    return integers(rows.reshape(count // height, height, inputs // PAIR, PAIR).transpose(0, 2, 1, 3))
