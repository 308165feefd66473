"""Computes the signatures of a document: Huang 2008, section on signatures; README.md, step 2."""

import hashlib

import numpy as np
import numpy.typing as npt

from neardup.kernels import signing
from neardup.partition.parameters import Parameters
from neardup.partition.texts import passages, sentences, weight

#: A text with fewer than 1 / _FEW of the possible signatures also gets signatures of its passages.
_FEW = 4


def signatures(text: str, parameters: Parameters) -> npt.NDArray[np.uint64]:
    """Computes the signatures of a text: uint64[n, 2], high and low half; sentences give at most rotations * subsets.

    A text whose sentences give fewer than a quarter of these also gets as many signatures of its passages at most,
    since text without punctuation has hardly any sentences.
    """
    made = signatures_of(sentences(text, parameters), parameters)
    if parameters.passage_words and _FEW * len(made) < parameters.rotations * parameters.subsets:
        made = np.unique(np.concatenate([made, signatures_of(passages(text, parameters), parameters)]), axis=0)
    return made


def signatures_of(found: list[tuple[str, int]], parameters: Parameters) -> npt.NDArray[np.uint64]:
    """Computes the signatures of distinct sentences, given with their widths."""
    if len(found) < parameters.smallest:
        return np.empty((0, 2), np.uint64)
    encoded = (sentence.encode("utf-8", "surrogatepass") for sentence, _ in found)
    digests = b"".join(hashlib.md5(sentence, usedforsecurity=False).digest() for sentence in encoded)
    prints = np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)
    out = np.empty((parameters.rotations * parameters.subsets, 2), np.uint64)
    many = signing.sign(
        prints,
        np.array([weight(width) for _, width in found], np.int64),
        parameters.rotations,
        parameters.subsets,
        parameters.smallest,
        out,
    )
    return out[:many]
