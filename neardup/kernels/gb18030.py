"""GB18030 to UTF-8. Python's decoder searches 200 ranges for each four-byte character, which costs 14 ns per byte."""

import numpy as np

from neardup.kernels import kernel
from neardup.kernels.unicode_points import put_utf8, utf8_length

U8 = np.uint8
#: Number of four-byte sequences for the basic plane; number of the first one beyond it (lead byte 0x90).
QUADS = 39420
_BEYOND = 0x90 - 0x81
_REPLACEMENT = 0xFFFD


@kernel
def gb18030(body, pairs, quads, out):
    """UTF-8 of body to out -> int64 bytes written. uint8 both.

    pairs uint16[126 * 256]: code point by (lead - 0x81) and trail byte, 0 for none. quads uint16[QUADS]: code point by
    the number of a four-byte sequence. Each byte that belongs to no character becomes U+FFFD; a character that the end
    of the body cuts becomes one U+FFFD. Stops where `out` might not hold one more character.
    """
    at, end, o = np.int64(0), np.int64(len(body)), np.int64(0)
    most = np.int64(len(out)) - 4
    while at < end:
        if o > most:
            return o
        a = np.int64(body[at])
        if a < 0x80:
            out[o] = U8(a)
            o += 1
            at += 1
            continue
        point, length = np.int64(_REPLACEMENT), np.int64(1)
        b = np.int64(body[at + 1]) if at + 1 < end else np.int64(-1)
        four = b >= 0x30 and b <= 0x39
        if b < 0 or (four and at + 4 > end):
            length = end - at
        elif a > 0x80 and a < 0xFF:
            if four:
                c, d = np.int64(body[at + 2]), np.int64(body[at + 3])
                if c > 0x80 and c < 0xFF and d >= 0x30 and d <= 0x39:
                    lead = a - 0x81
                    beyond = lead >= _BEYOND
                    number = (((lead - _BEYOND if beyond else lead) * 10 + b - 0x30) * 126 + c - 0x81) * 10 + d - 0x30
                    if beyond and number < 0x100000:
                        point, length = 0x10000 + number, np.int64(4)
                    elif not beyond and number < QUADS:
                        point, length = np.int64(quads[number]), np.int64(4)
            elif pairs[(a - 0x81) * 256 + b] != 0:
                point, length = np.int64(pairs[(a - 0x81) * 256 + b]), np.int64(2)
        size = utf8_length(point)
        put_utf8(out, o, point, size)
        o += size
        at += length
    return o
