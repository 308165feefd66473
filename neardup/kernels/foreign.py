"""Foreign content (svg and math): a stack of the open foreign elements, in place of a tree."""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels import markup as mk

# The stack is one int64 with 4 bits per entry, the innermost entry lowest. Nesting deeper than 15 is not followed.
_SVG, _MATH, _POINT_SVG, _POINT_TITLE, _POINT_MATH = 1, 2, 3, 4, 5
_STACK_FULL = 0x0FFFFFFFFFFFFFFF >> 4

_TEXT_HTML = np.frombuffer(b"text/html", np.uint8)
_XHTML = np.frombuffer(b"application/xhtml+xml", np.uint8)


@lean_kernel
def is_foreign(stack):
    """Whether the innermost entry is svg or math, as opposed to an integration point, where HTML continues."""
    top = stack & 15
    return top in (_SVG, _MATH)


@lean_kernel
def pop_to_html(stack):
    """The stack without the foreign elements on top."""
    while is_foreign(stack):
        stack >>= 4
    return stack


@lean_kernel
def _pop_to(stack, kind):
    """The stack without the innermost entry of this kind and the entries above it; unchanged if there is none."""
    rest = stack
    while rest != 0:
        top = rest & 15
        rest >>= 4
        if top == kind:
            return rest
    return stack


@lean_kernel
def _html_encoding(buf, start, end):
    """Whether an annotation-xml holds HTML: encoding text/html or application/xhtml+xml."""
    length = end - start
    if start < 0 or (length != 9 and length != 21):
        return False
    expected = _TEXT_HTML if length == 9 else _XHTML
    for i in range(length):
        c = buf[start + i]
        if c >= 65 and c <= 90:
            c |= 32
        if c != expected[i]:
            return False
    return True


@lean_kernel
def push_foreign(buf, kind, stack, facts):
    """The stack after a start tag of svg or math, or after any start tag in foreign content."""
    entry = 0
    top = stack & 15
    if kind == mk.SVG:
        entry = _SVG
    elif kind == mk.MATH:
        entry = _MATH
    elif top == _SVG and kind == mk.HTML_POINT:
        entry = _POINT_SVG
    elif top == _SVG and kind == mk.TITLE:
        entry = _POINT_TITLE
    elif top == _MATH and (
        kind == mk.MATH_TEXT
        or (kind == mk.ANNOTATION and _html_encoding(buf, facts[mk.FIRST_START], facts[mk.FIRST_END]))
    ):
        entry = _POINT_MATH
    if entry == 0 or facts[mk.SELF_CLOSING] == 1 or stack > _STACK_FULL:
        return stack
    return stack << 4 | entry


@lean_kernel
def pop_foreign(kind, stack):
    """The stack after an end tag."""
    if kind == mk.SVG:
        return _pop_to(stack, _SVG)
    if kind == mk.MATH:
        return _pop_to(stack, _MATH)
    if kind == mk.HTML_POINT:
        return _pop_to(stack, _POINT_SVG)
    if kind == mk.TITLE:
        return _pop_to(stack, _POINT_TITLE)
    if kind == mk.MATH_TEXT or kind == mk.ANNOTATION:
        return _pop_to(stack, _POINT_MATH)
    return stack
