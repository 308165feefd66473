"""The parameters that determine the bytes of a sketch. Sketches of two schemes are never compared."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from neardup import installed
from neardup.digested_json import read, written
from neardup.errors import BadInput
from neardup.limits import BODY_BYTES_MAX, URL_BYTES_MAX

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Seed of commands that store no sketches, so that two runs over the same files agree. "neardup" in ASCII.
FIXED_SEED = 0x6E656172647570
#: Version of the way in which this program reads a page: which text is shown, and how tokens are folded.
#: 2: text of shadow roots, of CDATA and of feeds counts; the forms of Unicode of one text give the same tokens;
#: a charset that the bytes contradict is none; URLs keep routes, and bytes that are not UTF-8.
#: 3: sketches tell figures in forms (clocks, dates, counters) from values, and tapes leave relative times out; the
#: digest of a shell covers its bytes.
#: 4: the start of the main content takes the place of the eighth small supershingle.
VERSION = 4
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Scheme:
    """Parameters of a sketch. Frozen; named by `digest`.

    The numbers without a description are those of the papers (Henzinger 2006, section 2) or of the default rule.

    Args:
        seed: secret number of a deployment, 0 to 2^64 - 1. Without the seed it is hard to build a page that collides
            with another page.
        version: version of the scheme, see `VERSION`. This program compares and replays sketches of an earlier version,
            and sketches no page with it.
        body_bytes_max: bytes of a body that are sketched. A longer body, also as UTF-8, is marked truncated.
        tokens_max: number of tokens of a page that are sketched. A page with more tokens is marked truncated.
        article_tape_bytes_max: bytes of the tape of a page's article; 0: sketches have no such tape.
        own_url_words_max: number of words that tapes leave out because the page prints its own URL with them.
        public_suffixes, charsets, charset_detection: versions of installed data, see `neardup.installed`.

    Raises:
        BadInput: if the seed is not a 64-bit number.

    Example:
        >>> Scheme(seed=7).digest == Scheme(seed=7).digest != Scheme(seed=8).digest
        True
    """

    # A parameter that is added after the first release uses `neardup.digested_json.later`, so that no digest changes.
    seed: int
    version: int = VERSION
    shingle_tokens: int = 8  # k
    minvalues: int = 84  # m
    supershingles: int = 6  # m': each of 14 minvalues
    simhash_bits: int = 384  # b
    # index keys: each of wide_minvalues minvalues, from minvalue 0 on; since version 4 the last one is not computed
    wide_supershingles: int = 8
    wide_minvalues: int = 2
    logtf_bits: int = 192  # index keys: 6 blocks of 32 bits
    tape_bytes_max: int = 500
    content_tape_bytes_max: int = 250
    tape_occurrences_max: int = 8
    head_tokens: int = 16
    head_key_tokens: int = 8
    title_names_max: int = 24
    own_url_words_max: int = 16
    bloom_bits_min: int = 512
    bloom_bits_max: int = 8192
    body_bytes_max: int = BODY_BYTES_MAX
    tokens_max: int = 1_000_000
    url_bytes_max: int = URL_BYTES_MAX
    title_bytes_max: int = 512
    public_suffixes: str = field(default_factory=installed.public_suffixes)
    charsets: str = field(default_factory=installed.charsets)
    charset_detection: str = field(default_factory=installed.charset_detection)
    article_tape_bytes_max: int = 128

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or not 0 <= self.seed <= _MASK:
            raise BadInput(f"the seed {self.seed!r} is not a number from 0 to 2^64 - 1")

    @classmethod
    def new(cls) -> Scheme:
        """Return the default scheme with a new random seed."""
        return cls(seed=secrets.randbits(64))

    @cached_property
    def digest(self) -> str:
        """The name of the scheme: 32 hex digits, which depend on the seed and do not reveal the seed."""
        text = json.dumps(written(self), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16, person=b"neardup-scheme").hexdigest()

    def to_json(self) -> str:
        return json.dumps(written(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str, where: str = "the scheme") -> Scheme:
        """Read a scheme.

        Args:
            text: the JSON of `to_json`.
            where: origin of the text, which errors name.

        Raises:
            OtherVersion: if this program does not know a parameter of the text.
            ValueError: if the JSON or a field is invalid.
        """
        values = read(cls, json.loads(text), where)
        try:
            return cls(**values)
        except BadInput as error:
            raise ValueError(str(error)) from error

    def constants(self, what: str, count: int) -> npt.NDArray[np.uint64]:
        """Return pseudo-random words for one use, uint64[count].

        The words are a function of seed and use, so they are the same on every machine.

        Args:
            what: name of the use.
            count: number of words.
        """
        return constants(self.seed, what, count)


@lru_cache(maxsize=64)
def constants(seed: int, what: str, count: int) -> npt.NDArray[np.uint64]:
    """Return what `Scheme.constants` returns for a scheme with the seed `seed`."""
    import numpy as np  # slow to import, and not needed for the other methods

    start = int.from_bytes(hashlib.blake2b(what.encode(), digest_size=8).digest(), "little") ^ (seed & _MASK)
    # SplitMix64
    words = np.uint64(start) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    words.flags.writeable = False
    return words
