"""Terms: URLs that are one token each (Henzinger 2006, section 2): sources of images and frames, targets of refreshes.

If the URL is on the page's own host, the term is the file name (the last segment of the path). On another host, it is
the whole URL without its fragment. A <base> on another host is kept in the last BASE_BYTES_MAX bytes of `text`.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import below, leading_zeros, trailing_zeros, word_at
from neardup.kernels.entities import byte_at, put_point, reference
from neardup.kernels.windows import copy_text, url_masks

TERM_START, TERM_END = 1, 2
BASE_BYTES_MAX = 2048
#: Resolving against a foreign <base> repeats it in every term. This many bytes per page may be added that way.
BASE_BUDGET_BYTES = 32768
# Indices in the array of facts (`neardup.kernels.facts`) that belong to this module.
BASE_SPENT, BASE_LENGTH, BASE_CUTS = 16, 17, 18

U64 = np.uint64
_ZERO, _ONE = U64(0), U64(1)
_HTTP, _HTTPS = (U64(int.from_bytes(scheme, "little")) for scheme in (b"http://", b"https://"))
_SEVEN_BYTES = U64(0xFFFFFFFFFFFFFF)

_RELATIVE, _ROOTED, _HOSTED, _ABSOLUTE, _OPAQUE = range(5)


@lean_kernel
def _decode(buf, start, end, entities, text, o):
    """Write an attribute's value with resolved references to text[o:] -> its end. Tabs and line ends are kept."""
    while start < end:
        c = np.int64(buf[start])
        if c == 38:
            length, point, second = reference(buf, start, end, True, entities)
            if length > 0:
                start += length
                if point == 9 or point == 10 or point == 13:
                    text[o] = point
                    o += 1
                else:
                    o = put_point(text, o, point)
                if second > 0:
                    o = put_point(text, o, second)
                continue
        start += 1
        text[o] = 32 if c < 32 and c != 9 and c != 10 and c != 13 else c
        o += 1
    return o


@lean_kernel
def _clean(text, begin, start, end):
    """Move the URL text[start:end] to `begin` -> its new end.

    Tabs, line ends, outer spaces and the fragment are removed. Backslashes before the query become slashes, as in
    browsers.
    """
    o = begin
    query = False
    for i in range(start, end):
        c = np.int64(text[i])
        if c == 9 or c == 10 or c == 13 or (o == begin and c == 32):
            continue
        if c == 35:
            return o
        if c == 63:
            query = True
        text[o] = 47 if c == 92 and not query else c
        o += 1
    while o > begin and text[o - 1] == 32:
        o -= 1
    return o


@lean_kernel
def _shape(text, start, end):
    """(shape, start of the authority, start of the path) of a URL reference."""
    if byte_at(text, start, end) == 47:
        if byte_at(text, start + 1, end) != 47:
            return _ROOTED, start, start
        shape, at = _HOSTED, start + 2
    else:
        at = start
        while at < end:
            c = np.int64(text[at])
            letter = (c | 32) >= 97 and (c | 32) <= 122
            if not (letter or (at > start and ((c >= 48 and c <= 57) or c == 43 or c == 45 or c == 46))):
                break
            at += 1
        if at == start or byte_at(text, at, end) != 58:
            return _RELATIVE, start, start
        if byte_at(text, at + 1, end) != 47 or byte_at(text, at + 2, end) != 47:
            return _OPAQUE, start, start
        shape, at = _ABSOLUTE, at + 3
    path = at
    while path < end and text[path] != 47 and text[path] != 63:
        path += 1
    return shape, at, path


@lean_kernel
def _same_host(buf, at, end, host, host_start, host_end):
    """Whether buf[at:end], without user and port, is the host."""
    if end - at != host_end - host_start:
        return False
    for i in range(end - at):
        c = buf[at + i]
        if c >= 65 and c <= 90:
            c |= 32
        if c != host[host_start + i]:
            return False
    return True


@lean_kernel
def _is_host(text, start, end, host, host_start, host_end):
    """Whether the authority text[start:end] is the host; user and port are ignored."""
    for i in range(start, end):
        if text[i] == 64:
            start = i + 1
    digits = end
    while digits > start and text[digits - 1] >= 48 and text[digits - 1] <= 57:
        digits -= 1
    if digits > start and text[digits - 1] == 58:
        end = digits - 1
    return _same_host(text, start, end, host, host_start, host_end)


@lean_kernel
def _is_data(text, start, end):
    """Whether the URL is a `data:` URL."""
    return (
        end - start >= 5
        and text[start] | 32 == 100
        and text[start + 1] | 32 == 97
        and text[start + 2] | 32 == 116
        and text[start + 3] | 32 == 97
        and text[start + 4] == 58
    )


@lean_kernel
def _keep_file_name(text, begin, end):
    """Move the last segment of the path of text[begin:end], without the query, to text[begin] -> its new end."""
    stop = begin
    while stop < end and text[stop] != 63:
        stop += 1
    start = stop
    while start > begin and text[start - 1] != 47:
        start -= 1
    length = stop - start
    if (length == 1 and text[start] == 46) or (length == 2 and text[start] == 46 and text[start + 1] == 46):
        return begin
    for i in range(length):
        text[begin + i] = text[start + i]
    return begin + length


@lean_kernel
def _remove_dots(text, path, end):
    """Resolve `.` and `..` in the path text[path:end], which may have a query -> the new end (RFC 3986, section 5.2.4).

    Each segment is written once and removed at most once, so time is linear.
    """
    if byte_at(text, path, end) != 47:
        return end
    read, write = path, path
    while read < end and text[read] == 47:
        stop = read + 1
        while stop < end and text[stop] != 47 and text[stop] != 63:
            stop += 1
        length = stop - read - 1
        last = stop >= end or text[stop] == 63
        if length == 1 and text[read + 1] == 46:
            if last:
                text[write] = 47
                write += 1
        elif length == 2 and text[read + 1] == 46 and text[read + 2] == 46:
            while write > path:
                write -= 1
                if text[write] == 47:
                    break
            if last:
                text[write] = 47
                write += 1
        else:
            for i in range(read, stop):
                text[write] = text[i]
                write += 1
        read = stop
    while read < end:
        text[write] = text[read]
        write += 1
        read += 1
    return write


@lean_kernel
def set_base(buf, start, end, entities, host, host_start, host_end, text, facts):
    """Store a <base href> that is on another host: it puts relative URLs on that host. Others are ignored."""
    facts[BASE_LENGTH] = 0
    if end - start > BASE_BYTES_MAX // 2:
        return
    begin = np.int64(text.size - BASE_BYTES_MAX)
    stop = _decode(buf, start, end, entities, text, begin)
    stop = _clean(text, begin, begin, stop)
    shape, authority, path = _shape(text, begin, stop)
    if shape != _HOSTED and shape != _ABSOLUTE:
        return
    if path == authority or _is_host(text, authority, path, host, host_start, host_end):
        return
    stop = _remove_dots(text, path, stop)
    query = path
    while query < stop and text[query] != 63:
        query += 1
    folder = query
    while folder > path and text[folder - 1] != 47:
        folder -= 1
    facts[BASE_LENGTH] = stop - begin
    # The ends of scheme, authority, folder and path: 12 bits each.
    scheme = authority - 2 - begin
    facts[BASE_CUTS] = scheme | (path - begin) << 12 | (folder - begin) << 24 | (query - begin) << 36


@lean_kernel
def _resolve(text, begin, end, shape, facts):
    """Insert the part of the foreign base that a reference needs before text[begin:end] -> the new end."""
    cuts = facts[BASE_CUTS]
    if shape == _HOSTED:
        length = cuts & 4095
    elif shape == _ROOTED:
        length = (cuts >> 12) & 4095
    elif text[begin] == 63:
        length = (cuts >> 36) & 4095
    else:
        length = (cuts >> 24) & 4095
    if facts[BASE_SPENT] + length + 1 > BASE_BUDGET_BYTES:
        return end
    facts[BASE_SPENT] += length + 1
    # A base without a path ("http://host") needs a slash before the reference.
    join = 1 if shape == _RELATIVE and text[begin] != 63 and length == (cuts >> 12) & 4095 else 0
    for i in range(end - 1, begin - 1, -1):
        text[i + length + join] = text[i]
    base = np.int64(text.size - BASE_BYTES_MAX)
    for i in range(length):
        text[begin + i] = text[base + i]
    if join:
        text[begin + length] = 47
    return end + length + join


@lean_kernel
def _refresh_target(text, start, end):
    """(start, end) of the URL in the content of a meta refresh; empty if there is none (HTML standard, 4.2.5.3)."""
    at = start
    while at < end and text[at] <= 32:
        at += 1
    digits = at
    while at < end and ((text[at] >= 48 and text[at] <= 57) or text[at] == 46):
        at += 1
    if at == digits or at >= end or not (text[at] <= 32 or text[at] == 59 or text[at] == 44):
        return end, end
    while at < end and text[at] <= 32:
        at += 1
    if at < end and (text[at] == 59 or text[at] == 44):
        at += 1
    while at < end and text[at] <= 32:
        at += 1
    if end - at >= 3 and text[at] | 32 == 117 and text[at + 1] | 32 == 114 and text[at + 2] | 32 == 108:
        sign = at + 3
        while sign < end and text[sign] <= 32:
            sign += 1
        if sign < end and text[sign] == 61:
            at = sign + 1
            while at < end and text[at] <= 32:
                at += 1
    quote = byte_at(text, at, end)
    if quote == 34 or quote == 39:
        at += 1
        stop = at
        while stop < end and text[stop] != quote:
            stop += 1
        end = stop
    return min(at, end), end


@lean_kernel
def _put_plain(buf, start, end, host, host_start, host_end, text, o):
    """`put_term` for ordinary URLs of at most 64 bytes, on a page without a foreign base; -1 for other URLs."""
    odd, slashes, dots, colons = url_masks(buf, start)
    length = end - start
    inside = below(length)
    slashes &= inside
    colons &= inside
    if odd & inside != _ZERO:
        return np.int64(-1)
    authority = np.int64(0)
    if slashes & U64(3) == U64(3):
        authority = np.int64(2)
    elif trailing_zeros(colons) < trailing_zeros(slashes):
        word = word_at(buf, start)
        authority = np.int64(7 if word & _SEVEN_BYTES == _HTTP else 8)
        if (authority == 8 and word != _HTTPS) or authority >= length:
            return np.int64(-1)
    name = np.int64(0)
    if authority > 0:
        path = min(trailing_zeros(slashes & ~below(authority)), length)
        if path == authority or colons & below(path) & ~below(authority) != _ZERO:
            return np.int64(-1)
        if _same_host(buf, start + authority, start + path, host, host_start, host_end):
            name = path  # the file name begins there or later
        elif (slashes << _ONE) & dots & inside & ~below(path) != _ZERO:
            return np.int64(-1)  # there may be dot segments
    if authority == 0 or name > 0:
        name = max(name, 64 - leading_zeros(slashes))
        if name == length:
            return o
        if dots >> U64(name) & _ONE and length - name <= 2:
            return np.int64(-1)
    text[o] = TERM_START
    copy_text(buf, start + name, text, o + 1)
    stop = o + 1 + length - name
    text[stop] = TERM_END
    return stop + 1


@lean_kernel
def put_term(buf, start, end, is_refresh, entities, host, host_start, host_end, text, o, limit, facts):
    """Write the term of the URL buf[start:end], between its marks, to text[o:] -> the position after it.

    is_refresh: buf[start:end] is the content of a meta refresh, which contains a URL. Nothing is written for an empty
    term, for a `data:` URL, and if text[o:limit] might be too short.
    """
    while start < end and buf[start] <= 32:
        start += 1
    if _is_data(buf, start, end) or o + 2 * (end - start) + BASE_BYTES_MAX + 8 > limit:
        return o
    if end > start and end - start <= 64 and not is_refresh and facts[BASE_LENGTH] == 0:
        to = _put_plain(buf, start, end, host, host_start, host_end, text, o)
        if to >= 0:
            return to
    begin = o + 1
    stop = _decode(buf, start, end, entities, text, begin)
    first = begin
    if is_refresh:
        first, stop = _refresh_target(text, begin, stop)
    stop = _clean(text, begin, first, stop)
    if stop == begin or _is_data(text, begin, stop):
        return o
    shape, authority, path = _shape(text, begin, stop)
    if facts[BASE_LENGTH] > 0 and shape <= _HOSTED:
        stop = _resolve(text, begin, stop, shape, facts)
        shape, authority, path = _shape(text, begin, stop)
    if shape in (_HOSTED, _ABSOLUTE):
        if _is_host(text, authority, path, host, host_start, host_end):
            for i in range(path, stop):
                text[begin + i - path] = text[i]
            stop = _keep_file_name(text, begin, begin + stop - path)
        else:
            stop = _remove_dots(text, path, stop)
    elif shape != _OPAQUE:
        stop = _keep_file_name(text, begin, stop)
    if stop == begin:
        return o
    text[o] = TERM_START
    text[stop] = TERM_END
    return stop + 1
