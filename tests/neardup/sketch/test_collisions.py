"""Pages built to collide without the seed, by differences that cancel in XXH64 (see neardup/sketch/README.md).

Each word of XXH64 enters as rotate(word * P2, 31) * P1, which needs no secret: some differences of one word cancel
against those of a later one under every seed, or under every second.
"""

import pytest
import xxhash

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from tests.neardup.hostile import JIT_OFF

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow")]

SEEDS = range(1, 5 if JIT_OFF else 61)
M64 = (1 << 64) - 1
P1, P2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
#: Two words of 16 bytes each that XXH64 takes for one under every second seed: two words of 8 bytes that differ so that
#: the one difference moves to the top bits and the other cancels it.
WORDS = ("ũqfcᚰedamm3yz", "50r23pɉeda핍2o")


def altered(body: bytes, at: int) -> list[bytes]:
    """Four bodies, of which one has the hash of this one under each seed: differences at `at` and 32 bytes behind it.

    The first word's product with P2 grows by 2**32, which the rotation by 31 makes bit 63, unless it carries; the word
    32 bytes on, in the same lane, takes that back.
    """

    def word(place: int) -> int:
        return int.from_bytes(body[place : place + 8], "little")

    inverse = pow(P2, -1, 1 << 64)
    found = []
    for first in (1 << 32, -1 << 32):
        for second in (1 << 63, (1 << 63) + ((P1 if first > 0 else -P1) & M64)):
            a, b = word(at) + first * inverse, word(at + 32) + second * inverse
            out = bytearray(body)
            out[at : at + 8], out[at + 32 : at + 40] = (x.to_bytes(8, "little") for x in (a & M64, b & M64))
            found.append(bytes(out))
    return found


def digests(pages: list[tuple[bytes, str]], seed: int) -> list[bytes]:
    made = [Page("http://h.example/", body, content_type) for body, content_type in pages]
    return [Sketch(record).digest for record in sketch_pages(made, Scheme(seed=seed))]


def test_the_attack_works_on_xxh64():
    """What the tests below defend against is real: else they prove nothing."""
    body = bytes(range(200))
    hit = [
        any(xxhash.xxh64_intdigest(b, s) == xxhash.xxh64_intdigest(body, s) for b in altered(body, 8)) for s in SEEDS
    ]
    assert sum(hit) > len(SEEDS) / 3
    same = [len({xxhash.xxh64_intdigest(word.encode(), s) for word in WORDS}) == 1 for s in range(200)]
    assert sum(same) > 30


def test_an_altered_opaque_body_is_another_one():
    body = b"%PDF-1.7" + bytes(range(256)) * 2
    bodies = [(each, "application/pdf") for each in (body, *altered(body, 16))]
    for seed in SEEDS:
        assert len(set(digests(bodies, seed))) == len(bodies)


def test_another_long_word_makes_another_page():
    pages = [(f"a page with the word {word} in it".encode(), "text/plain; charset=utf-8") for word in WORDS]
    for seed in SEEDS:
        assert len(set(digests(pages, seed))) == 2


def test_another_long_title_is_another_one():
    pages = [Page("http://h.example/", f"<title>{word}</title>".encode(), "text/html; charset=utf-8") for word in WORDS]
    for seed in SEEDS:
        assert len({Sketch(record).titling for record in sketch_pages(pages, Scheme(seed=seed))}) == 2
