"""Signatures of a document: Huang 2008, section on signatures; README.md, step 2."""

import hashlib

import numpy as np
import numpy.typing as npt

from neardup.kernels import signing
from neardup.partition.parameters import Parameters
from neardup.partition.texts import sentences, weight


def signatures(text: str, parameters: Parameters) -> npt.NDArray[np.uint64]:
    """uint64[n, 2]: up to rotations * subsets signatures of a text, high and low half; fewer for a short text."""
    found = sentences(text, parameters)
    return signatures_of(
        [sentence.encode("utf-8", "surrogatepass") for sentence, _ in found],
        [weight(width) for _, width in found],
        parameters,
    )


def signatures_of(found: list[bytes], weights: list[int], parameters: Parameters) -> npt.NDArray[np.uint64]:
    """The same of distinct sentences with their weights."""
    if len(found) < parameters.smallest:
        return np.empty((0, 2), np.uint64)
    digests = b"".join(hashlib.md5(sentence, usedforsecurity=False).digest() for sentence in found)
    prints = np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)
    out = np.empty((parameters.rotations * parameters.subsets, 2), np.uint64)
    many = signing.sign(
        prints,
        np.array(weights, np.int64),
        parameters.rotations,
        parameters.subsets,
        parameters.smallest,
        out,
    )
    return out[:many]
