"""Defines the signals of Huffman 2007 by name, and the sets of signals that the paper measured."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from neardup.signals.idf import Idf, tfidf_distance
from neardup.signals.model import in_steps
from neardup.signals.result_pages import Body, Result
from neardup.sketch.one_page_simhash import agreeing_bits


def same_domain(a: Result, b: Result) -> float:
    """Returns 1 if the registrable domains of the URLs are equal, else 0.

    `file:///` has an empty one, equal to itself.
    """
    return float(a.domain == b.domain)


def same_title(a: Body, b: Body) -> float:
    """Returns 1 if the titles are exactly equal, white space collapsed, else 0. Two missing titles are equal."""
    return float(a.title == b.title)


def simhash_distance(a: Body, b: Body) -> float:
    """Computes the share of the 384 bits in which the simhashes differ."""
    return 1 - agreeing_bits(a.simhash, b.simhash) / (64 * len(a.simhash))


def content_distance(a: Body, b: Body) -> float:
    """Computes the share of the bits in which the simhashes of the main contents differ (ours)."""
    return 1 - agreeing_bits(a.content_simhash, b.content_simhash) / (64 * len(a.content_simhash))


def url_distance(a: Result, b: Result) -> float:
    """Computes the share of the words of both URLs that only one has (ours)."""
    every = a.url_terms | b.url_terms
    return len(a.url_terms ^ b.url_terms) / len(every) if every else 0.0


def body_length_distance(a: int, b: int) -> float:
    """Returns 0 if both are empty, else abs(a - b) / max(a, b). a, b: bytes."""
    return abs(a - b) / max(a, b) if a or b else 0.0


class Signal(NamedTuple):
    """A signal.

    name: name of the signal in models.
    group: group of the signal (F, R, FS, RS), or empty.
    of: function that computes the value of two results, about 0 to 1.
    """

    name: str
    group: str
    of: Callable[[Result, Result, Idf], float]


def _over(rendered: bool) -> Iterable[Signal]:
    """Defines the signals over fetched or rendered bodies."""
    end, group = ("_rendered", "R") if rendered else ("_fetched", "F")

    def over(measure: Callable[[Body, Body, Idf], float]) -> Callable[[Result, Result, Idf], float]:
        return lambda a, b, idf: measure(a.seen, b.seen, idf) if rendered else measure(a.fetched, b.fetched, idf)

    def ranked(one: Body, other: Body, idf: Idf) -> float:
        return tfidf_distance(idf.top(one.terms), idf.top(other.terms))

    def snippets(a: Result, b: Result, idf: Idf) -> float:
        return mcd(a.rendered_snippet, b.rendered_snippet) if rendered else mcd(a.fetched_snippet, b.fetched_snippet)

    yield Signal("same_title" + end, group, over(lambda a, b, idf: same_title(a, b)))
    yield Signal("body_length" + end, "", over(lambda a, b, idf: body_length_distance(len(a.utf8), len(b.utf8))))
    yield Signal("simhash" + end, group, over(lambda a, b, idf: simhash_distance(a, b)))
    yield Signal("tfidf" + end, group, over(ranked))
    yield Signal("mcd" + end, group, over(lambda a, b, idf: mcd(a.utf8, b.utf8)))
    yield Signal("snippet_mcd" + end, group + "S", snippets)


#: All signals by name, those over fetched bodies first. The last two are what the paper names as further work.
SIGNALS: Mapping[str, Signal] = {
    signal.name: signal
    for signal in (
        Signal("same_domain", "F", lambda a, b, idf: same_domain(a, b)),
        *_over(rendered=False),
        *_over(rendered=True),
        Signal("main_content", "", lambda a, b, idf: content_distance(a.fetched, b.fetched)),
        Signal("url", "", lambda a, b, idf: url_distance(a, b)),
    )
}


def group(*names: str) -> tuple[str, ...]:
    """Returns the signals of some groups."""
    return tuple(signal.name for signal in SIGNALS.values() if signal.group in names)


#: The sets that the paper measured, by the paper's names.
SETS: Mapping[str, tuple[str, ...]] = {
    "simhash": ("simhash_fetched",),
    "tf-idf": ("tfidf_fetched",),
    "F": group("F"),
    "F+R": group("F", "R"),
    "F+R+RS": group("F", "R", "RS"),
    "simhash+FS": ("simhash_fetched", *group("FS")),
    "tf-idf+FS": ("tfidf_fetched", *group("FS")),
    "F+FS": group("F", "FS"),
    "F+R+FS": group("F", "R", "FS"),
    "F+R+FS+RS": group("F", "R", "FS", "RS"),
}
#: The paper's final model, with the MCD of bodies.
FINAL = "F+R+RS"
#: The variant of the paper's section 5.3: no MCD of bodies, that of snippets stays, no body length.
VARIANT = "F+R+RS without body MCD"
_BODY_MCD = ("mcd_fetched", "mcd_rendered")
#: The sets that are measured: the paper's, its variant, body length for body MCD (ours), and its further work.
MEASURED: Mapping[str, tuple[str, ...]] = {
    **SETS,
    VARIANT: tuple(name for name in SETS[FINAL] if name not in _BODY_MCD),
    "F+R+RS, body length for body MCD": tuple(
        name.replace("mcd_", "body_length_") if name in _BODY_MCD else name for name in SETS[FINAL]
    ),
    "F + main content": (*SETS["F"], "main_content"),
    "F + URL": (*SETS["F"], "url"),
}


def signals_of(a: Result, b: Result, idf: Idf, names: Iterable[str] = tuple(SIGNALS)) -> dict[str, float]:
    """Computes the named signals of a pair, in steps (`model.STEPS`). Raises KeyError for an unknown name."""
    return {name: in_steps(SIGNALS[name].of(a, b, idf)) for name in names}


# ---- the modified normalised compression distance by gzip (Huffman 2007, after Cilibrasi and Vitanyi 2005) -----------

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
