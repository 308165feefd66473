"""The pages of a takedown, named by hashes: the log keeps a takedown for years, and must not reveal the pages.

A URL is named by its usual hash (`neardup.urls.url_hash`), so one read finds its row. A site is named by a
hash of its registrable domain, a prefix by a hash of its bytes and their number. The hashes are not salted with the
scheme's seed, because a generation with another seed must be able to repeat the takedown. So a reader of the log who
guesses a URL can check the guess, but cannot read a URL from the log.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from neardup.errors import BadInput, BadPage
from neardup.urls import host_named, normalise_url, site_of, url_hash

HASH_BYTES = 16


class Named(StrEnum):
    """What a takedown names: a URL, a site or a prefix. Persisted: values never change."""

    URL = "url"
    SITE = "site"
    PREFIX = "prefix"


@dataclass(frozen=True, slots=True)
class Takedown:
    """A takedown of pages. hash: 16 bytes. length: bytes of a prefix, else 0."""

    what: Named
    hash: bytes
    length: int = 0

    def names(self, url: str, site: str) -> bool:
        """Whether the takedown applies to a page. url: normalised; site: its registrable domain."""
        if self.what is Named.URL:
            return url_hash(url) == self.hash
        if self.what is Named.SITE:
            return _hash(site, b"neardup-site") == self.hash
        start = url.encode("utf-8", "surrogatepass")[: self.length]
        return len(start) == self.length and _hash(start, b"neardup-prefix") == self.hash


def of_url(url: str) -> Takedown:
    """Makes the takedown of one URL. Raises BadInput for an invalid URL."""
    return Takedown(Named.URL, url_hash(_normal(url)))


def of_site(site: str) -> Takedown:
    """Makes the takedown of a site. Raises BadInput if it is not a registrable domain."""
    try:
        host, alone = host_named(site)
    except BadPage as error:
        raise BadInput(f"--site {site}: {error}") from error
    if not alone:  # the rest would be left out, and the takedown name more pages
        raise BadInput(
            f"--site {site}: a site is a registrable domain, such as {site_of(host)}; for a part of it name a prefix "
            "of its URLs"
        )
    if site_of(host) != host:
        raise BadInput(f"--site {site}: its site is {site_of(host)}; for a part of it name a prefix of its URLs")
    return Takedown(Named.SITE, _hash(host, b"neardup-site"))


def of_prefix(prefix: str) -> Takedown:
    """Makes the takedown of a prefix.

    Raises BadInput unless it contains a host and the slash after it, and if normalising would remove its fragment: the
    shorter prefix names more pages.
    """
    normal = _normal(prefix)
    _, mark, fragment = prefix.strip().partition("#")
    if mark and "#" not in normal:
        if fragment not in ("/", "!", "!/"):  # all routes of an application
            raise BadInput(f"--prefix {prefix}: no URL has this fragment; without it, the prefix is {normal}")
        normal += mark + fragment
    if prefix.count("/") < 3:
        raise BadInput(f"--prefix {prefix}: a prefix holds at least scheme, host and a slash: {normal}")
    start = normal.encode("utf-8", "surrogatepass")
    return Takedown(Named.PREFIX, _hash(start, b"neardup-prefix"), len(start))


def _normal(url: str) -> str:
    try:
        return normalise_url(url)
    except BadPage as error:
        raise BadInput(str(error)) from error


def _hash(text: str | bytes, person: bytes) -> bytes:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=HASH_BYTES, person=person).digest()
