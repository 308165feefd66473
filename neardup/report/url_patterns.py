"""URL patterns that yield repeats: parameters, path segments and dates whose pages repeat pages without them.

A repeat counts for a pattern if its URL has the pattern and its original, on the same site, has not, or has it with
another value: `/a?sort=price` that repeats `/a`, or `/a?sort=name`. So a folder whose pages repeat each other counts
nothing. Each URL counts for all of its patterns.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from neardup.errors import BadInput
from neardup.standing import DUPLICATES, SHOWN
from neardup.typed_json import decode

#: Patterns of a URL: later segments and parameters are ignored. Longer names are rather values, such as ids.
PER_URL_MAX, NAME_CHARS_MAX = 8, 60
#: Patterns of a site, once there are twice as many, and characters of their examples: a row has 60 kB at most.
PATTERNS_KEPT, EXAMPLE_CHARS_MAX = 30, 400
#: Fewer repeats are chance.
REPEATS_MIN = 3
_DATE = re.compile(r"/((?:19|20)\d\d[/-](?:0?[1-9]|1[0-2])(?:[/-]\d{1,2})?)(?![\d-])")
_DATE_REGEX = r"/(19|20)[0-9][0-9][/-](0?[1-9]|1[0-2])([/-][0-9]{1,2})?([^0-9-]|$)"

#: Pattern -> [pages, repeats, URL of the latest repeat, its original].
Counts = dict[str, list[Any]]


class UrlPattern(NamedTuple):
    """kind: parameter, path_parameter, segment or date. regex: finds the pattern in a URL."""

    kind: str
    name: str
    regex: str


def patterns_of(url: str) -> dict[str, str]:
    """Return the patterns of a URL with their values: `?sort=` -> `price`, `;sid=` -> `1`, `/print` -> ``, `/date` -> a
    date in the path. The route in a fragment (`neardup.urls`) continues the path, and may have parameters.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an IPv6 address without its bracket
        return {}
    found: dict[str, str] = {}
    route, _, of_route = parts.fragment.partition("?")
    path = parts.path + "".join(route.partition("/")[1:])
    if date := _DATE.search(path):
        found["/YYYY/MM"] = date[1]
    for segment in path.split("/")[:PER_URL_MAX]:
        word, *parameters = segment.split(";")
        if word and len(word) <= NAME_CHARS_MAX and "." not in word and not word[:4].isdecimal():
            found.setdefault(f"/{word}", "")
        _add(found, ";", parameters)
    for query in (parts.query, of_route):
        _add(found, "?", query.split("&", PER_URL_MAX)[:PER_URL_MAX])
    return found


def _add(found: dict[str, str], mark: str, parameters: Sequence[str]) -> None:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name and len(name) <= NAME_CHARS_MAX and len(found) < 3 * PER_URL_MAX:
            found.setdefault(f"{mark}{name}=", value)


def described(pattern: str) -> UrlPattern:
    """Return kind, name and regular expression of a pattern of `patterns_of`."""
    if pattern == "/YYYY/MM":
        return UrlPattern("date", "date", _DATE_REGEX)
    if pattern[0] == "/":
        return UrlPattern("segment", pattern[1:], f"{re.escape(pattern)}([/;?#]|$)")
    name = pattern[1:-1]
    if pattern[0] == ";":
        return UrlPattern("path_parameter", name, f";{re.escape(name)}([=;/?#]|$)")
    return UrlPattern("parameter", name, f"[?&]{re.escape(name)}([=&#]|$)")


def counter_of(verdict: Mapping[str, Any], site: str) -> Callable[[Counts], Counts] | None:
    """Return a function that adds a verdict to the counts of a site, into which it writes.

    None unless the verdict is the first of its URL, unique or a duplicate, and the URL has a pattern.
    """
    if verdict["verdict"] not in (*SHOWN, *DUPLICATES):
        return None
    url = str(verdict["url"])
    patterns = patterns_of(url)
    duplicate = verdict["verdict"] in DUPLICATES
    original = str((verdict.get("representative") or {}).get("url") or "") if duplicate else ""
    others = patterns_of(original) if _on(site, original) else patterns
    example = [url[:EXAMPLE_CHARS_MAX], original[:EXAMPLE_CHARS_MAX]]
    repeated = {pattern for pattern, value in patterns.items() if others.get(pattern) != value}
    return (lambda counts: _counted(counts, patterns, repeated, example)) if patterns else None


def _counted(counts: Counts, patterns: Iterable[str], repeated: Collection[str], example: list[str]) -> Counts:
    out = counts
    for pattern in patterns:
        pages, repeats, *held = out.pop(pattern, (0, 0, "", ""))
        if pattern in repeated:
            repeats, held = repeats + 1, example
        out[pattern] = [pages + 1, repeats, *held]
    if len(out) > 2 * PATTERNS_KEPT:
        # Of equal counts the latest stay: a pattern comes again, the name of a page does not.
        latest_first = [*out][::-1]
        ordered = sorted(latest_first, key=lambda pattern: (-out[pattern][1], -out[pattern][0]))
        kept = set(ordered[:PATTERNS_KEPT])
        out = {pattern: each for pattern, each in out.items() if pattern in kept}
    return out


def _on(site: str, url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return bool(site) and (host == site or host.endswith(f".{site}"))


def yielding(site: str, parts: Sequence[Counts]) -> list[dict[str, Any]]:
    """Return the patterns of a site whose URLs are often repeats, those with the most repeats first.

    parts: counts to be added up.
    """
    total: Counts = {}
    for counts in parts:
        for pattern, (pages, repeats, *example) in counts.items():
            held = total.get(pattern) or [0, 0, "", ""]
            total[pattern] = [held[0] + pages, held[1] + repeats, *(example if example[0] else held[2:])]
    out = []
    for pattern, (pages, repeats, url, original) in total.items():
        if repeats >= REPEATS_MIN:
            facts = {"site": site, "pattern": pattern, **described(pattern)._asdict()}
            numbers = {"pages": pages, "repeats": repeats, "share": round(repeats / pages, 4)}
            out.append({**facts, **numbers, "url": url, "original": original})
    return sorted(out, key=lambda one: (-one["repeats"], one["pages"], one["pattern"]))


#: A filter skips URLs of patterns with at least this share of repeats, among at least so many pages.
SHARE_MIN, PAGES_MIN = 0.9, 20


class _Listed(msgspec.Struct):
    """A row of `yielding`, as far as a filter needs it."""

    site: str
    pattern: str
    pages: int
    share: float


class _File(msgspec.Struct):
    patterns: list[_Listed]


class RepeatingUrls:
    """The URLs that a crawler can skip, since they have a pattern whose pages nearly always repeat others."""

    def __init__(self, files: Iterable[bytes], *, share_min: float = SHARE_MIN, pages_min: int = PAGES_MIN) -> None:
        """Raises BadInput for a file that is not one of these.

        files: contents of `patterns.json` of the views. share_min: least share of repeats among the pages of a pattern.
        pages_min: least number of pages of a pattern.
        """
        self._sites: dict[str, set[str]] = {}
        for data in files:
            try:
                rows = decode(data, _File).patterns
            except ValueError as error:
                raise BadInput(f"not the patterns.json of the views: {error}") from error
            for row in rows:
                if row.share >= share_min and row.pages >= pages_min:
                    self._sites.setdefault(row.site, set()).add(row.pattern)

    def pattern_of(self, url: str) -> str:
        """Return the first such pattern of a URL, or ""."""
        try:
            labels = (urlsplit(url).hostname or "").split(".")
        except ValueError:
            return ""
        for first in range(len(labels)):
            if patterns := self._sites.get(".".join(labels[first:])):
                return next((pattern for pattern in patterns_of(url) if pattern in patterns), "")
        return ""
