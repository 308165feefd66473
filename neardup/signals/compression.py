"""Computes the modified normalised compression distance by gzip (Huffman 2007, after Cilibrasi and Vitanyi 2005)."""

import zlib

#: gzip finds repeats within 32 kB, so two joined texts of at most this size are within its reach.
PIECE_BYTES = 16 << 10
#: gzip's default level, fixed here because the distance depends on it.
_LEVEL = 6
_GZIP = 31  # zlib's name for a window of 32 kB with gzip's header


def mcd(a: bytes, b: bytes) -> float:
    """Computes max(abs(c(AB) - c(AA)), abs(c(AB) - c(BB))) / max(c(AA), c(BB)), c: bytes after gzip; 0 for equal
    bodies.

    About 0 to 1. gzip makes it slightly asymmetric, and tiny different bodies can have 0. Bodies of more than
    `PIECE_BYTES`
    are cut into equal pieces, as many as the longer one needs, and interleaved: a1 b1 a2 b2 ..., in AA and BB too
    (ours). Joined whole, they would be farther apart than gzip's window, and any two long bodies would appear alike.
    """
    if a == b:
        return 0.0
    pieces = max(1, -(-max(len(a), len(b)) // PIECE_BYTES))
    joint, one, other = _bytes_of(a, b, pieces), _bytes_of(a, a, pieces), _bytes_of(b, b, pieces)
    return max(abs(joint - one), abs(joint - other)) / max(one, other)


def _bytes_of(a: bytes, b: bytes, pieces: int) -> int:
    """Counts the bytes after gzip of a and b, interleaved in `pieces` pieces each."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    size = 0
    for number in range(pieces):
        for body in (a, b):
            start, end = (len(body) * at // pieces for at in (number, number + 1))
            size += len(packer.compress(body[start:end]))
    return size + len(packer.flush())
