"""A deterministic embedding: the words of a text hashed into a vector."""

import re
from zlib import crc32

import numpy as np

DIMENSION = 1_024
"""The dimension of common embedding models."""

_WORD = re.compile(r"[a-z0-9_]+|(?=([\u4e00-\u9fff]{2}))")
"""A Latin word, or two adjacent Chinese characters."""


def vector(text: str) -> bytes:
    """Return a vector of length 1 as the bytes of its 32-bit floats.

    Each word is hashed to one dimension and a sign.

    Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009.
    """
    words = {found[1] or found[0] for found in _WORD.finditer(text.lower())}
    hashes = np.array([crc32(word.encode()) for word in words if word], dtype=np.uint32)
    signs = np.where(hashes & 1, 1.0, -1.0)
    summed = np.bincount((hashes >> 1) % DIMENSION, signs, minlength=DIMENSION)
    return (summed / (np.linalg.norm(summed) or 1.0)).astype(np.float32).tobytes()
