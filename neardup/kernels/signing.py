"""Signatures of a document from the fingerprints of its sentences (Huang 2008; neardup/partition/README.md, step 2).

A fingerprint has 128 bits, high half first. Its rotation by r bytes moves the first r bytes to the end. For each
rotation, the fingerprints are divided into subsets by their remainder mod `subsets`. The `smallest` least fingerprints
of a subset vote with their weights: bit b of the signature is 1 if the fingerprints with bit b set outweigh the others.
"""

import numpy as np

from neardup.kernels import kernel

U64 = np.uint64
_ZERO, _ONE, _EIGHT, _FIFTY_SIX = U64(0), U64(1), U64(8), U64(56)
_BITS = 64


@kernel
def sign(prints, weights, rotations, subsets, smallest, out):
    """Write signatures to out, uint64[rotations * subsets, 2] -> their number. Subsets that are too small give none.

    prints uint64[n, 2], distinct; weights int64[n], below 2**56 / smallest. Ordered by rotation, then by remainder.
    """
    n = len(prints)
    high, low = prints[:, 0].copy(), prints[:, 1].copy()
    chosen_high = np.empty((subsets, smallest), np.uint64)
    chosen_low = np.empty((subsets, smallest), np.uint64)
    chosen = np.empty((subsets, smallest), np.int64)
    sizes = np.empty(subsets, np.int64)
    many = 0
    modulus = U64(subsets)
    half = (U64(0xFFFFFFFF) % modulus + _ONE) % modulus  # 2**32
    whole = half * half % modulus  # 2**64
    for _ in range(rotations):
        sizes[:] = 0
        for i in range(n):
            subset = np.int64((high[i] % modulus * whole + low[i] % modulus) % modulus)
            _keep_smallest(high[i], low[i], i, subset, smallest, chosen_high, chosen_low, chosen, sizes)
        for subset in range(subsets):
            if sizes[subset] == smallest:
                out[many, 0] = _vote(chosen_high[subset], weights, chosen[subset])
                out[many, 1] = _vote(chosen_low[subset], weights, chosen[subset])
                many += 1
        for i in range(n):
            first, second = high[i] >> _FIFTY_SIX, low[i] >> _FIFTY_SIX
            high[i] = (high[i] << _EIGHT) | second
            low[i] = (low[i] << _EIGHT) | first
    return np.int64(many)


@kernel
def _keep_smallest(high, low, number, subset, smallest, chosen_high, chosen_low, chosen, sizes):
    """Insert a fingerprint into the sorted list of the least ones of its subset; a full list drops its greatest."""
    at = sizes[subset]
    if at == smallest:
        at -= 1
        last_high, last_low = chosen_high[subset, at], chosen_low[subset, at]
        if high > last_high or (high == last_high and low >= last_low):
            return
    else:
        sizes[subset] += 1
    while at > 0:
        before_high, before_low = chosen_high[subset, at - 1], chosen_low[subset, at - 1]
        if before_high < high or (before_high == high and before_low <= low):
            break
        chosen_high[subset, at], chosen_low[subset, at] = before_high, before_low
        chosen[subset, at] = chosen[subset, at - 1]
        at -= 1
    chosen_high[subset, at], chosen_low[subset, at], chosen[subset, at] = high, low, number


@kernel
def _vote(words, weights, numbers):
    """Half a signature: bit b is set if the words with bit b outweigh the others."""
    total = np.int64(0)
    for number in numbers:
        total += weights[number]
    out = _ZERO
    for bit in range(_BITS):
        with_bit = np.int64(0)
        for i in range(len(words)):
            with_bit += weights[numbers[i]] * np.int64((words[i] >> U64(bit)) & _ONE)
        out |= U64(2 * with_bit > total) << U64(bit)
    return out
