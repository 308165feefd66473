"""Huffman 2007: the modified normalised compression distance by gzip (after Cilibrasi and Vitanyi 2005)."""

import zlib

#: gzip finds what repeats within 32 kB: of two texts of up to so many bytes each part meets the other's.
PIECE_BYTES = 16 << 10
#: gzip's own level; written out, as it shapes the distance.
_LEVEL = 6
_GZIP = 31  # zlib's name for a window of 32 kB with gzip's header


def mcd(a: bytes, b: bytes) -> float:
    """max(abs(c(AB) - c(AA)), abs(c(AB) - c(BB))) / max(c(AA), c(BB)), c: bytes after gzip; 0 for identical bodies.

    About 0 to 1. gzip makes it slightly asymmetric, and tiny bodies that differ can have 0. Bodies of more than
    `PIECE_BYTES` are cut into as many equal pieces as the longer one needs, and laid together piece by piece, a1 b1 a2
    b2 ..., in AA and BB too (ours): side by side they would be farther apart than gzip can see, and any two long bodies
    would be alike.
    """
    if a == b:
        return 0.0
    pieces = max(1, -(-max(len(a), len(b)) // PIECE_BYTES))
    both, one, other = _bytes_of(a, b, pieces), _bytes_of(a, a, pieces), _bytes_of(b, b, pieces)
    return max(abs(both - one), abs(both - other)) / max(one, other)


def _bytes_of(a: bytes, b: bytes, pieces: int) -> int:
    """Bytes of both, laid together in so many pieces each, after gzip."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    size = 0
    for number in range(pieces):
        for body in (a, b):
            start, end = (len(body) * at // pieces for at in (number, number + 1))
            size += len(packer.compress(body[start:end]))
    return size + len(packer.flush())
