"""Tags, as the tokenizer of the HTML standard reads them: kinds of names, attributes, ends of raw text and comments.

No scan reads a byte twice, so hostile input (unclosed comments, quotes, CDATA) takes linear time.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import below, odd_up_to, trailing_zeros, word_at
from neardup.kernels.entities import byte_at
from neardup.kernels.windows import find_byte, tag_masks

U64 = np.uint64
_ZERO = U64(0)
_ONE = U64(1)
_ALL = U64(0xFFFFFFFFFFFFFFFF)
_NOT_FIRST = U64(0xFFFFFFFFFFFFFFFE)
_CASE = U64(0x2020202020202020)
_SLOT_SHIFT = U64(54)  # the top 10 bits number the slots
TAG_SLOTS = 1024
_S63 = U64(63)
NAME_BYTES_MAX = 16

#: Kinds of tag names. OTHER is every name without special treatment: an inline element, which leaves no mark in the
#: text.
(
    OTHER,
    FORMAT,
    ANCHOR,
    BREAK,  # leaves a space
    BLOCK,  # leaves a block boundary
    IMAGE,
    FRAME,
    META,
    LINK,
    BASE,
    HTML,
    SCRIPT,
    STYLE,
    TEMPLATE,
    UNSHOWN,  # raw text that a browser does not show
    IFRAME,  # leaves a space; the kinds from here on are block boundaries
    TITLE,
    TEXTAREA,
    RAW,
    PLAINTEXT,
    SVG,
    MATH,
    HEADING,
    SUBHEADING,
    HTML_POINT,  # block boundaries in foreign content only
    ANNOTATION,
    MATH_TEXT,
) = range(27)
#: Added to a kind: the start tag of such a name ends foreign content (svg, math).
BREAKOUT = 32

#: Indices of the results of `attributes` in the array of facts.
FIRST_START, FIRST_END, SECOND_START, SECOND_END, SELF_CLOSING = 8, 9, 10, 11, 12

# Names of attributes as little-endian words of their first 8 bytes.
NO_NAME = U64(0)
HREF = U64(int.from_bytes(b"href", "little"))
SRC = U64(int.from_bytes(b"src", "little"))
REL = U64(int.from_bytes(b"rel", "little"))
LANG = U64(int.from_bytes(b"lang", "little"))
CONTENT = U64(int.from_bytes(b"content", "little"))
HTTP_EQUIV = U64(int.from_bytes(b"http-equ", "little"))
ENCODING = U64(int.from_bytes(b"encoding", "little"))
SHADOW = U64(int.from_bytes(b"shadowro", "little"))  # of shadowrootmode, and of shadowroot, its former name
_EQUIV_END, _SHADOW_END = U64(int.from_bytes(b"iv", "little")), U64(int.from_bytes(b"otmode", "little"))
_FIVE = U64(0xFFFFFFFFFF)
_CASE_OF_HREF = U64(0x2020202000)
#: Tags of more windows than this are left to `attributes`.
_WINDOWS_MAX = 8
_SPACE_HREF = U64(int.from_bytes(b" href", "little"))


@lean_kernel
def is_space(c):
    """Whether byte c is white space in the sense of the HTML standard."""
    return c == 32 or c == 10 or c == 9 or c == 13 or c == 12


@lean_kernel
def is_letter(c):
    """Whether byte c is an ASCII letter."""
    folded = c | 32
    return folded >= 97 and folded <= 122


@lean_kernel
def name_words(buf, at, length):
    """Bytes 0 to 7 and 8 to 15 of a name as two words, lower-cased, 0 beyond its length (at most 16).

    Setting bit 5 lower-cases letters. It may turn other bytes into `-` or digits, but never into letters.
    """
    first = (word_at(buf, at) | _CASE) & below(8 * min(length, 8))
    if length <= 8:
        return first, _ZERO
    return first, (word_at(buf, at + 8) | _CASE) & below(8 * (length - 8))


@lean_kernel
def tag_kind(first, second, tags):
    """Kind of a tag name, given by its words, from one probe of a perfect hash table.

    tags: uint64[2 + 3 * TAG_SLOTS]: two multipliers, then (first word, second word, kind) of each slot.
    """
    slot = np.int64((first * tags[0] + second * tags[1]) >> _SLOT_SHIFT)
    at = 2 + 3 * slot
    if tags[at] == first and tags[at + 1] == second:
        return np.int64(tags[at + 2])
    return np.int64(OTHER)


@lean_kernel
def short_tag_kind(buf, name, length, tags):
    """Kind of a tag name of 1 to 8 bytes, without the flag BREAKOUT."""
    first = (word_at(buf, name) | _CASE) & (_ALL >> U64(64 - 8 * length))
    at = U64(2) + U64(3) * (first * tags[0] >> _SLOT_SHIFT)
    known = (tags[at] == first) & (tags[at + _ONE] == _ZERO)
    return np.int64(tags[at + U64(2)] & (_ZERO - U64(known))) & (BREAKOUT - 1)


@lean_kernel
def find(buf, at, end, value):
    """Index of the first byte `value` in buf[at:end], `end` if there is none."""
    while at < end:
        mask = find_byte(buf, at, np.uint8(value)) & below(end - at)
        if mask != _ZERO:
            return at + trailing_zeros(mask)
        at += 64
    return end


@lean_kernel
def _is_name(buf, at, length, name, name_length):
    if length != name_length:
        return False
    first = (word_at(buf, at) | _CASE) & below(8 * min(length, 8))
    if first != name:
        return False
    if length <= 8:
        return True
    rest = below(8 * (length - 8))
    return ((word_at(buf, at + 8) | _CASE) ^ (_EQUIV_END if name == HTTP_EQUIV else _SHADOW_END)) & rest == _ZERO


@lean_kernel
def attributes(buf, at, end, first, first_length, second, second_length, facts):
    """Read a tag's attributes -> the position after its `>`, or -1 if the page ends first.

    at: the end of the tag's name. first, second (with their lengths): names of two attributes, whose value ranges go to
    facts[FIRST_START] .. facts[SECOND_END]; -1 where missing. Of repeated attributes the first one counts.
    facts[SELF_CLOSING] is 1 for `/>`.
    """
    facts[FIRST_START] = -1
    facts[SECOND_START] = -1
    facts[SELF_CLOSING] = 0
    while True:
        slash = 0
        while at < end and (is_space(buf[at]) or buf[at] == 47):
            slash = 1 if buf[at] == 47 else 0
            at += 1
        if at >= end:
            return np.int64(-1)
        if buf[at] == 62:
            facts[SELF_CLOSING] = slash
            return at + 1
        # One window usually holds the whole attribute. Its first byte belongs to the name, even if it is `=`.
        name = at
        name_end, _, double, single, equals, _ = tag_masks(buf, at)
        rest = below(end - at)
        name_length = trailing_zeros((name_end | equals) & rest & _NOT_FIRST)
        at += name_length
        if name_length == 64:
            at = min(at, end)
            while at < end and not (is_space(buf[at]) or buf[at] == 47 or buf[at] == 62 or buf[at] == 61):
                at += 1
            name_length = at - name
        while at < end and is_space(buf[at]):
            at += 1
        start, stop = at, at
        if byte_at(buf, at, end) == 61:
            at += 1
            while at < end and is_space(buf[at]):
                at += 1
            quote = byte_at(buf, at, end)
            if quote == 34 or quote == 39:
                start = at + 1
                quotes = (double if quote == 34 else single) & rest & ~below(start - name)
                stop = (
                    name + trailing_zeros(quotes) if quotes != _ZERO else find(buf, max(start, name + 64), end, quote)
                )
                at = stop + 1
            else:
                start = at
                while at < end and not (is_space(buf[at]) or buf[at] == 62):
                    at += 1
                stop = at
        if facts[FIRST_START] < 0 and _is_name(buf, name, name_length, first, first_length):
            facts[FIRST_START] = start
            facts[FIRST_END] = stop
        elif facts[SECOND_START] < 0 and _is_name(buf, name, name_length, second, second_length):
            facts[SECOND_START] = start
            facts[SECOND_END] = stop


@lean_kernel
def simple_tag_end(buf, at, end, link):
    """(position after the `>` that ends a tag, 1 if the tag has an href with a value), for most tags.

    at: the end of the tag's name. link: whether to look for an href. A returned position beyond `end` means that the
    tag is too complex, and the caller must use `attributes`.
    """
    last = buf[U64(at)]
    _, greater, double, single, equals, letters = tag_masks(buf, at)
    first = greater & (_ZERO - greater)
    before = first - _ONE  # all bits, if this window has no `>`
    double &= before
    single &= before
    # If each quote after a `=` opens a value and each other quote closes one, closing - opening sets the values' bits.
    opening = double & (equals << _ONE)
    quoted = (double ^ opening) - opening
    signs = equals & ~quoted & before
    odd = (quoted ^ (quoted << _ONE)) ^ double  # not 0: the quotes do not pair up like this
    odd |= quoted & first
    odd |= single & ~quoted
    odd |= signs & ~(letters << _ONE)
    odd |= (signs << _ONE) ^ opening
    if double | single == _ZERO:
        # The first `>` ends a tag without quotes, whatever its values are.
        odd = signs = _ZERO
    if first == _ZERO or odd != _ZERO or not (is_space(last) or last == 47):
        return _quoted_tag_end(buf, at, end)
    if link:
        return at + trailing_zeros(first) + 1, _has_href(buf, at, at, signs)
    return at + trailing_zeros(first) + 1, np.int64(0)


@lean_kernel
def _has_href(buf, name_end, at, signs):
    """1 if one of the `=` signs (a mask of the window at buf[at]) follows ` href`, else 0."""
    while signs != _ZERO:
        sign = at + trailing_zeros(signs)
        signs &= signs - _ONE
        if sign - 5 >= name_end and (word_at(buf, sign - 5) | _CASE_OF_HREF) & _FIVE == _SPACE_HREF:
            return np.int64(1)
    return np.int64(0)


@lean_kernel
def _quoted_tag_end(buf, name_end, end):
    """`simple_tag_end` for tags of several windows, and for tags with a `>` in quotes.

    Every `=` outside quotes must follow a letter and precede a `"`, and every opening quote must follow such a `=`.
    Then the first `>` outside quotes ends the tag. An href without a value is not reported.
    """
    quoted_last = sign_last = letter_last = _ZERO
    href = np.int64(0)
    at = name_end
    beyond = end + 1
    last = buf[at]
    if not (is_space(last) or last == 47):
        return beyond, href
    for _ in range(_WINDOWS_MAX):
        _, greater, double, single, equals, letters = tag_masks(buf, at)
        quoted = odd_up_to(double) ^ (_ZERO - quoted_last)
        outside = greater & ~quoted & below(end - at)
        first = outside & (_ZERO - outside)
        before = first - _ONE
        signs = equals & ~quoted & before
        odd = single & ~quoted & before
        odd |= signs & ~(letters << _ONE | letter_last)
        odd |= (signs << _ONE | sign_last) ^ (double & quoted & before)
        if odd != _ZERO:
            return beyond, href
        href |= _has_href(buf, name_end, at, signs)
        if first != _ZERO:
            return at + trailing_zeros(first) + 1, href
        quoted_last, sign_last, letter_last = quoted >> _S63, signs >> _S63, letters >> _S63
        at += 64
        if at >= end:
            break
    return beyond, href


@lean_kernel
def _closes(buf, at, end, first, second, length):
    """Whether buf[at:] starts with this tag name (given by its words) and a byte that ends a name."""
    if at + length >= end:
        return False
    a, b = name_words(buf, at, length)
    c = np.int64(buf[at + length])
    return a == first and b == second and (is_space(c) or c == 47 or c == 62)


@lean_kernel
def raw_end(buf, at, end, first, second, length):
    """Index of the `</name` that ends raw text, `end` if there is none."""
    while True:
        at = find(buf, at, end, 60)
        if at >= end:
            return end
        if byte_at(buf, at + 1, end) == 47 and _closes(buf, at + 2, end, first, second, length):
            return at
        at += 1


@lean_kernel
def script_end(buf, at, end, first):
    """Index of the `</script` that ends a script, `end` if none does.

    After `<!-- <script` one `</script` is skipped.
    """
    escaped = 0  # 1: after <!--, 2: after <script in it
    dashes = at  # where dashes of a closing --> may begin
    while at < end:
        c = buf[at]
        if escaped == 0:
            at = find(buf, at, end, 60)
            if at >= end:
                break
            c = buf[at]
        if c == 62:
            if at - 2 >= dashes and buf[at - 1] == 45 and buf[at - 2] == 45:
                escaped = 0
        elif c == 60:
            slash = byte_at(buf, at + 1, end) == 47
            if slash and _closes(buf, at + 2, end, first, _ZERO, 6):
                if escaped < 2:
                    return at
                escaped = 1
            elif escaped == 1 and _closes(buf, at + 1, end, first, _ZERO, 6):
                escaped = 2
            elif (
                escaped == 0
                and byte_at(buf, at + 1, end) == 33
                and byte_at(buf, at + 2, end) == 45
                and byte_at(buf, at + 3, end) == 45
            ):
                escaped = 1
                dashes = at + 2
                at += 3
        at += 1
    return end


@lean_kernel
def comment_end(buf, at, end):
    """Index after the end of a comment. at: the byte after its `<!--`."""
    start = at
    if byte_at(buf, at, end) == 62:
        return at + 1
    if byte_at(buf, at, end) == 45 and byte_at(buf, at + 1, end) == 62:
        return at + 2
    while True:
        at = find(buf, at, end, 62)
        if at >= end:
            return end
        bang = 1 if buf[at - 1] == 33 else 0
        if at - 2 - bang >= start and buf[at - 1 - bang] == 45 and buf[at - 2 - bang] == 45:
            return at + 1
        at += 1


@lean_kernel
def cdata_end(buf, at, end):
    """Index of the `]]>` that ends a CDATA section whose text begins at `at`, `end` if there is none."""
    start = at
    while True:
        at = find(buf, at, end, 62)
        if at >= end:
            return end
        if at - 2 >= start and buf[at - 1] == 93 and buf[at - 2] == 93:
            return at - 2
        at += 1
