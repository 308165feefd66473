"""URLs as bytes: normal form, end of the path, parameters that do not identify a page, owner.

The route in a fragment (`neardup.urls`) continues the path: `/shop#!/red` has the segments `shop#!` and `red`.
"""

import numpy as np

from neardup.kernels import lean_kernel

U64 = np.uint64
U8 = np.uint8
#: Classes of bytes in a URL: allowed in a label of a host; in a path or query; unreserved (needs no encoding); hex
#: digit.
_LABEL, _SAFE, _UNRESERVED, _HEX = 1, 2, 4, 8


def _classes():
    out = np.zeros(256, np.uint8)
    letters = b"abcdefghijklmnopqrstuvwxyz"
    digits = b"0123456789"
    for classes, members in (
        (_LABEL, letters + digits + b"_-"),
        (_SAFE, letters + letters.upper() + digits + b"-._~!$&'()*+,;=:@[]"),
        (_UNRESERVED, letters + letters.upper() + digits + b"-._~"),
        (_HEX, digits + b"ABCDEF"),
    ):
        for byte in members:
            out[byte] |= classes
    return out


_CLASSES = _classes()
_SLASH, _DOT, _PERCENT, _QUESTION, _COLON, _SEMICOLON, _AMPERSAND = 0x2F, 0x2E, 0x25, 0x3F, 0x3A, 0x3B, 0x26
_AT, _TILDE, _BRACKET, _HYPHEN, _HASH = 0x40, 0x7E, 0x5B, 0x2D, 0x23
#: An id has so many letters and digits at least, and so many changes between letters and digits.
_ID_SIGNS, _ID_TURNS = 8, 3
_HTTP = np.frombuffer(b"http", np.uint8).copy()
#: First labels of hosts that name a view of a site, not an owner: `neardup.urls.VIEWS`.
_VIEWS = np.frombuffer(b"www.m.mobile.amp.print.", np.uint8).copy()
#: First folders of paths whose next folder names a user: `neardup.urls.USER_FOLDERS`.
_USER_FOLDERS = np.frombuffer(b"user/users/u/people/member/members/profile/profiles/", np.uint8).copy()


@lean_kernel
def _dots_only(text, at, end):
    """Whether the segment that begins at text[at] is `.` or `..`."""
    n = 0
    while at < end and n < 3 and text[at] == _DOT:
        at += 1
        n += 1
    return (n == 1 or n == 2) and (at == end or text[at] == _SLASH or text[at] == _QUESTION)


@lean_kernel
def hex_digit(c):
    """The value of such a digit."""
    return c - U8(48) if c < U8(58) else c - U8(55)


@lean_kernel
def normal_host(text, start, end):
    """(start, end) of the host of an http or https URL in normal form without a port; (0, 0) for any other text.

    `neardup.urls.normalise_url` changes nothing in such a URL, and checks this first. A URL with a route in its
    fragment is none of them: it takes the slow way, as in Python.
    """
    none = (np.int64(0), np.int64(0))
    if end - start < 9:
        return none
    for i in range(4):
        if text[start + i] != _HTTP[i]:
            return none
    at = start + 4
    if text[at] == U8(0x73):  # s
        at += 1
    if text[at] != _COLON or text[at + 1] != _SLASH or text[at + 2] != _SLASH:
        return none
    at += 3
    first = at
    label = at
    while at < end and text[at] != _SLASH:
        if text[at] == _DOT:
            if at == label:
                return none
            label = at + 1
        elif not _CLASSES[text[at]] & _LABEL:
            return none
        at += 1
    if at in (end, label):
        return none
    host_end = at
    query = False
    while at < end:
        c = text[at]
        at += 1
        if _CLASSES[c] & _SAFE:
            continue
        if c == _SLASH:
            if not query and _dots_only(text, at, end):
                return none
        elif c == _QUESTION:
            query = True
        elif c == _PERCENT:
            if at + 2 > end or not (_CLASSES[text[at]] & _CLASSES[text[at + 1]] & _HEX):
                return none
            byte = (hex_digit(text[at]) << U8(4)) | hex_digit(text[at + 1])
            if _CLASSES[byte] & _UNRESERVED:
                return none
            at += 2
        else:
            return none
    return np.int64(first), np.int64(host_end)


@lean_kernel
def find_hosts(text, ends, first, last):
    """Find the host of each URL: first[i], last[i] int64 out, relative to the URL's start; 0, 0: not in normal form.

    text uint8: the URLs, joined. ends int64[urls]: end of each URL.
    """
    start = np.int64(0)
    for i in range(len(ends)):
        a, b = normal_host(text, start, ends[i])
        first[i] = a - start if b > 0 else 0
        last[i] = b - start if b > 0 else 0
        start = ends[i]


@lean_kernel
def is_plain(text, start, end):
    """Whether resolving and normalising this URL certainly changes nothing. False: it may or may not."""
    if normal_host(text, start, end)[1] == 0 or text[end - 1] == _QUESTION:
        return False
    plain = True
    for i in range(start, end):
        plain &= text[i] != _SEMICOLON and text[i] != _AMPERSAND  # parameters, and references of HTML
    return plain


@lean_kernel
def _is_index(text, start, end):
    """Whether a segment starts with `index.`, `default.` or `home.`."""
    word = U64(0)
    for i in range(start, min(end, start + 8)):
        word |= U64(text[i]) << U64(8 * (i - start))
    low48, low40 = U64(0xFFFFFFFFFFFF), U64(0xFFFFFFFFFF)
    return word & low48 == U64(0x2E7865646E69) or word == U64(0x2E746C7561666564) or word & low40 == U64(0x2E656D6F68)


@lean_kernel
def _may_name_a_page(text, start, end):
    """Whether a segment of a path may name a page: it has a letter or an encoded byte, and is no index page."""
    if _is_index(text, start, end):
        return False
    for i in range(start, end):
        c = text[i] | U8(32)
        if (c >= U8(97) and c <= U8(122)) or text[i] == _PERCENT:
            return True
    return False


@lean_kernel
def write_end(text, start, end, out, at):
    """Write the last segment of a URL's path, "?" and the query to out[at:] -> (end of the segment, end of the query).

    If the last segment is a number or an index page, the segment before it is included.
    """
    path = start
    while path < end and text[path] != _QUESTION:
        path += 1
    query = min(path + 1, end)
    while path > start and text[path - 1] == _SLASH:
        path -= 1
    last = path
    while last > start and text[last - 1] != _SLASH:
        last -= 1
    if not _may_name_a_page(text, last, path):
        before = max(last - 1, start)
        first = before
        while first > start and text[first - 1] != _SLASH:
            first -= 1
        for i in range(first, before):
            out[at] = text[i]
            at += 1
        out[at] = _SLASH
        at += 1
    for i in range(last, path):
        out[at] = text[i]
        at += 1
    segment = at
    out[at] = _QUESTION
    at += 1
    for i in range(query, end):
        out[at] = text[i]
        at += 1
    return segment, at


#: Least letters and digits of a session id: the number of a record has fewer.
_SESSION_BYTES_MIN = 16
_EQUALS = 0x3D


@lean_kernel
def _divides(c):
    """Whether this byte separates parameters."""
    return c in (_QUESTION, _AMPERSAND, _SEMICOLON)


@lean_kernel
def _names_session(text, start, end):
    """Whether a parameter's name contains `sess` or ends with `sid`: PHPSESSID, jsessionid, osCsid, sid."""
    word = U64(0)
    for i in range(start, end):
        word = (word << U64(8)) | U64(text[i] | U8(32))
        if word & U64(0xFFFFFFFF) == U64(0x73657373):
            return True
    return word & U64(0xFFFFFF) == U64(0x736964)


@lean_kernel
def _names_campaign(text, start, end):
    """Whether a parameter's name is one of campaigns and click ids: utm_source, gclid, fbclid, msclkid."""
    if end - start < 5:
        return False
    first = last = U64(0)
    for i in range(4):
        first = (first << U64(8)) | U64(text[start + i] | U8(32))
        last = (last << U64(8)) | U64(text[end - 4 + i] | U8(32))
    bing = end - start == 7 and first == U64(0x6D73636C) and last == U64(0x6C6B6964)
    # `_` has the bit of lower case set, too.
    return first == U64(0x75746D7F) or last == U64(0x636C6964) or bing


@lean_kernel
def _past_sessions(text, at, end):
    """The position after the parameters of sessions and campaigns that begin at text[at]; `at` if there are none."""
    while at < end and _divides(text[at]):
        equals = at + 1
        while equals < end and text[equals] != _EQUALS and not _divides(text[equals]):
            equals += 1
        stop = equals + 1
        named = equals < end and text[equals] == _EQUALS
        good = named and _names_session(text, at + 1, equals)
        digits = 0
        while stop < end and not _divides(text[stop]) and text[stop] != _HASH:
            c = text[stop] | U8(32)
            digit = text[stop] >= U8(48) and text[stop] <= U8(57)
            good &= digit or (c >= U8(97) and c <= U8(122))
            digits += digit
            stop += 1
        good &= digits > 0 and stop - equals > _SESSION_BYTES_MIN
        if not good and not (named and _names_campaign(text, at + 1, equals)):
            return at
        at = stop
    return at


@lean_kernel
def same_but_sessions(text, a, a_end, b, b_end):
    """Whether the URLs text[a:a_end], text[b:b_end] are equal without parameters of sessions and campaigns."""
    while True:
        a = _past_sessions(text, a, a_end)
        b = _past_sessions(text, b, b_end)
        if a >= a_end or b >= b_end:
            return a >= a_end and b >= b_end
        if text[a] != text[b] and not (_divides(text[a]) and _divides(text[b])):
            return False
        a += 1
        b += 1


@lean_kernel
def is_hex(c):
    """Whether this byte is a digit of an encoding in normal form."""
    return _CLASSES[c] & _HEX != 0


@lean_kernel
def write_path(text, start, end, out):
    """Write the words of the path of the URL text[start:end] to out, separated by spaces -> int64, bytes written.

    Encoded bytes are decoded and ASCII letters lower-cased. All other ASCII characters separate words. A URL that is
    not in normal form has no words. out uint8[>= end - start].
    """
    at = start
    slashes = 0
    while at < end and slashes < 3:
        slashes += text[at] == _SLASH
        at += 1
    size = np.int64(0)
    while at < end and text[at] != _QUESTION:
        c = text[at]
        at += 1
        if c == _PERCENT and at + 2 <= end and is_hex(text[at]) and is_hex(text[at + 1]):
            c = (hex_digit(text[at]) << U8(4)) | hex_digit(text[at + 1])
            at += 2
        lower = c | U8(32)
        letter = lower >= U8(97) and lower <= U8(122)
        digit = c >= U8(48) and c <= U8(57)
        out[size] = lower if letter else (c if digit or c >= U8(0x80) else U8(0x20))
        size += 1
    return size


@lean_kernel
def _path_at(text, start, end):
    """Start of the path of the URL text[start:end]: after its third slash."""
    slashes = 0
    while start < end and slashes < 3:
        slashes += text[start] == _SLASH
        start += 1
    return start


@lean_kernel
def _in_path(text, at, end):
    return at < end and text[at] != _QUESTION


@lean_kernel
def deeper(text, a, a_end, b, b_end):
    """Segments of the path of the URL text[a:a_end] minus those of text[b:b_end] -> int64."""
    more = np.int64(0)
    a, b = _path_at(text, a, a_end), _path_at(text, b, b_end)
    while _in_path(text, a, a_end):
        more += text[a] == _SLASH
        a += 1
    while _in_path(text, b, b_end):
        more -= text[b] == _SLASH
        b += 1
    return more


@lean_kernel
def _one_of(names, sign, text, first, stop):
    """Bytes of the name that text[first:stop] begins with, its sign included; 0 if it begins with none of `names`.

    names: uint8 array, each name followed by the sign.
    """
    at = 0
    while at < len(names):
        same, length = True, 0
        while names[at + length] != sign:
            same &= first + length < stop and text[first + length] == names[at + length]
            length += 1
        if same and first + length < stop and text[first + length] == sign:
            return length + 1
        at += length + 1
    return 0


@lean_kernel
def _segment_end(text, at, end):
    """The end of the segment of a path that begins at text[at]."""
    while at < end and text[at] != _SLASH and text[at] != _QUESTION and text[at] != _HASH:
        at += 1
    return at


@lean_kernel
def _owner(text, start, end):
    """(start, end) of the host without the label of a view, (start, end) of the user, of the URL text[start:end]."""
    at = start
    while at < end and text[at] != _COLON:
        at += 1
    at = min(at + 3, end)
    first = stop = at
    while at < end and text[at] != _SLASH and text[at] != _QUESTION:
        at += 1
        if text[at - 1] == _AT:
            first = at
    bracket = first < at and text[first] == _BRACKET
    stop = first
    while stop < at and (bracket or text[stop] != _COLON):
        bracket = bracket and text[stop] != _BRACKET + 2
        stop += 1
    first += _one_of(_VIEWS, _DOT, text, first, stop)
    user = at + 1
    if user >= end or text[at] != _SLASH:
        return first, stop, end, end
    if text[user] == _AT or text[user] == _TILDE:
        return first, stop, user, _segment_end(text, user, end)
    name = user + _one_of(_USER_FOLDERS, _SLASH, text, user, end)
    at = _segment_end(text, name, end)
    if name == user or at in (name, end) or text[at] != _SLASH:
        return first, stop, end, end
    return first, stop, user, at


@lean_kernel
def _equal(text, a, a_end, b, b_end):
    """Whether text[a:a_end] and text[b:b_end] are equal."""
    if a_end - a != b_end - b:
        return False
    for i in range(a_end - a):  # noqa: SIM110  (numba has no generator expressions)
        if text[a + i] != text[b + i]:
            return False
    return True


@lean_kernel
def same_owner(text, a, a_end, b, b_end):
    """Whether the URLs text[a:a_end], text[b:b_end] are of one owner: see `neardup.urls.owner_of`."""
    host_a, stop_a, user_a, last_a = _owner(text, a, a_end)
    host_b, stop_b, user_b, last_b = _owner(text, b, b_end)
    return _equal(text, host_a, stop_a, host_b, stop_b) and _equal(text, user_a, last_a, user_b, last_b)


@lean_kernel
def same_host(text, a, a_end, b, b_end):
    """Whether the hosts of the URLs text[a:a_end], text[b:b_end] are equal without the label of a view."""
    host_a, stop_a, _, _ = _owner(text, a, a_end)
    host_b, stop_b, _, _ = _owner(text, b, b_end)
    return _equal(text, host_a, stop_a, host_b, stop_b)


@lean_kernel
def _number_end(text, at, end):
    """End of the segment that begins at text[at] if it is a number or an id; else `at`.

    An id (a UUID, a hash, B00X5TQ1Z8) has at least _ID_SIGNS letters and digits, which alternate at least _ID_TURNS
    times. So v18, postgresql15 and 3.1 are none.
    """
    stop = at
    signs = turns = 0
    digits = True
    while stop < end and text[stop] != _SLASH and text[stop] != _QUESTION and text[stop] != _HASH:
        digit = text[stop] >= U8(48) and text[stop] <= U8(57)
        if digit or (text[stop] | U8(32) >= U8(97) and text[stop] | U8(32) <= U8(122)):
            turns += signs > 0 and digit != digits
            signs += 1
            digits = digit
        elif text[stop] != _HYPHEN:
            return at
        stop += 1
    number = digits and turns == 0 and signs == stop - at
    return stop if number or (signs >= _ID_SIGNS and turns >= _ID_TURNS) else at


@lean_kernel
def same_but_numbers(text, a, a_end, b, b_end):
    """1: the paths of two URLs differ, and only in segments that are numbers or ids: /pets/12, /pets/7.

    0 also for paths that end with a file name (with a dot), which names its page: /15/docs/app.html is a release of
    /16/docs/app.html. 2: the file stands in the folder of a number that differs, as /15/app.html.
    """
    a, b = _path_at(text, a, a_end), _path_at(text, b, b_end)
    differ = dotted = False
    begins = True
    folders = 0  # segments since the last number that differs
    while _in_path(text, a, a_end) and _in_path(text, b, b_end):
        if begins:
            stop, other = _number_end(text, a, a_end), _number_end(text, b, b_end)
            if stop > a and other > b:
                same = stop - a == other - b
                for i in range(min(stop - a, other - b)):
                    same &= text[a + i] == text[b + i]
                differ |= not same
                folders = folders if same else 0
                a, b = stop, other
                begins = False
                continue
            folders += 1
        if text[a] != text[b]:
            return 0
        begins = text[a] == _SLASH
        dotted = not begins and (dotted or text[a] == _DOT)
        a += 1
        b += 1
    if not differ or _in_path(text, a, a_end) or _in_path(text, b, b_end):
        return 0
    return 1 if not dotted else 2 if folders == 1 else 0
