"""mix: the 64-bit finaliser that all hashes of the sketch use.

mix(x) is the output step of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64-bit words. Each bit of the result
depends on all bits of x. Arithmetic wraps.
"""

import numpy as np

from neardup.kernels import kernel

U64 = np.uint64
_GAMMA = U64(0x9E3779B97F4A7C15)
_M1 = U64(0xBF58476D1CE4E5B9)
_M2 = U64(0x94D049BB133111EB)
_S30, _S27, _S31 = U64(30), U64(27), U64(31)


@kernel
def mix(x):
    """splitmix64 of one uint64 -> uint64."""
    z = U64(x) + _GAMMA
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)
