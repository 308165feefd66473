"""What is computed from a URL: its normal form, hash, host, site and owner; and URLs of documents that have an id.

**Bytes** of a URL that are not UTF-8: see `neardup.url_bytes`.

**Fragments.** A fragment that names a route is a part of the URL, because it selects another page of the same
document: it begins with `!` (the AJAX crawling scheme, which search engines defined in 2009) or with `/` (the hash
mode of the routers of Vue, Angular, React and others), and something follows. All other fragments are removed, so that
the anchors of one page stay one URL: `#section`, `#L10`, `#:~:text=`, an empty one. `#/`, `#!` and `#!/` are the start
of an application, which is the page itself. The part of a route after a further `#` is an anchor within the route,
unless a slash precedes it and something follows, as in `#/room/#name`; `:~:` and what follows are directives for the
browser (WICG, Scroll to Text Fragment). A route that makes a URL too long is cut off, since the page itself can be
read: pages whose routes differ only beyond that count as one. So do pages of routers with other fragments
(`#orders/12`), which cannot be told from anchors.
"""

import hashlib
import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from encodings.idna import nameprep
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, unquote_to_bytes

from neardup.errors import BadInput, BadPage
from neardup.limits import URL_BYTES_MAX
from neardup.url_bytes import percent_encoded

#: Start of the URL of a document whose id is not a URL. Its host is a digest of the id, because two such documents are
#: not known to be of one site: the rules must not treat them as siblings of one template.
ID_SCHEME = "id://"

#: First labels of hosts that name a view of a site: the same pages for telephones or for printers.
VIEWS = ("www", "m", "mobile", "amp", "print")
#: Documents that the error about an id of several documents names.
_NAMED_MAX = 10
#: First folders of paths whose next folder names a user: what lies below it is that user's.
USER_FOLDERS = ("user", "users", "u", "people", "member", "members", "profile", "profiles")
_DEFAULT_PORTS = {"http": "80", "https": "443", "ftp": "21", "ws": "80", "wss": "443"}

# Characters that RFC 3986 admits in a path or query, without "%". Brackets are admitted, too, as in browsers: encoded
# and raw brackets are different reserved characters, so neither form may be converted to the other.
_SAFE = r"A-Za-z0-9\-._~!$&'()*+,;=:@/\[\]"
# A percent-encoding in normal form: upper-case, and not of an unreserved character.
_ENCODED = r"%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
# Most URLs of a crawl are in normal form; this pattern recognises them in about a microsecond. Possessive quantifiers
# (`++`) keep it linear on hostile input.
_NORMAL = re.compile(
    r"https?://[a-z0-9_-]++(?:\.[a-z0-9_-]++)*+"
    rf"/(?!\.{{1,2}}(?:[/?]|\Z))(?:[{_SAFE.replace('/', '')}]|{_ENCODED}|/(?!\.{{1,2}}(?:[/?]|\Z)))*+"
    rf"(?:\?(?:[{_SAFE}?]|{_ENCODED})*+)?\Z"
)
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*+)://([^/?]*+)([^?]*+)(\?.*+)?\Z", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# A fragment that is a route; without the anchor within it. Some programs encode its first character.
_ROUTE = re.compile(r"[!/](?:[^#]|(?<=/)#(?!#|\Z))*+", re.DOTALL)
_FIRST = {"%21": "!", "%2f": "/"}
_DIRECTIVE = re.compile(":(?:~|%7[Ee]):")
_PART_OF_ENCODED = re.compile(r"%[0-9A-F]?\Z")
_PERCENT = re.compile(rf"%[0-9A-Fa-f]{{2}}|%|[^{_SAFE}?%]++")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HOST = re.compile(r"[a-z0-9_-]++(?:\.[a-z0-9_-]++)*+\.?\Z")
_IDNA_DOTS = re.compile("[\u3002\uff0e\uff61]")
# Sharp s, final sigma and the two joiners: IDNA 2003 replaced them; in IDNA 2008 faß.de and fass.de differ.
_KEPT_BY_IDNA_2008 = re.compile("([\u00df\u03c2\u200c\u200d])")
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.|\Z)){4}\Z")


def url_hash(url: str | bytes) -> bytes:
    """Hashes a normalised URL to 16 bytes: its name in records, and the key of its row.

    The hash is cryptographic and does not depend on the scheme's seed. So a URL that a page only names (rel=canonical)
    can be looked up by its text alone, and an attacker cannot construct a second URL with the same hash.
    """
    text = url if isinstance(url, bytes) else url.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16, person=b"neardup-url").digest()


def normalise_url(url: str, url_bytes_max: int = URL_BYTES_MAX) -> str:
    """Normalises a URL. URLs are the same if their normal forms are equal: ASCII, idempotent, and without a fragment
    unless it is a route (see the module).

    Syntax-based normalisation (RFC 3986, section 6.2.2): case of scheme, host and percent-encodings, unnecessary
    percent-encodings, dot segments; also the default port, an empty path, an internationalised host. Characters that
    are invalid in a URL are percent-encoded as UTF-8, as is a percent sign that encodes nothing. Surrogates that stand
    for bytes are encoded as these bytes, other lone surrogates as their three bytes.

    Raises BadPage unless it is an absolute URL with a host (`file:///path` needs none), without control characters,
    with a valid host and port, of at most `url_bytes_max` bytes, a number of the scheme.
    """
    if len(url) <= url_bytes_max and _NORMAL.match(url):
        return url
    url, _, fragment = url.strip(" \t\r\n\f").partition("#")
    if len(url) > url_bytes_max:
        raise BadPage(f"URL of more than {url_bytes_max} bytes: {url[:80]!r}...")
    if _CONTROL.search(url):
        raise BadPage(f"URL with a control character: {url[:200]!r}")
    parts = _PARTS.match(url)
    if not parts:
        raise BadPage(f"not an absolute URL: {url[:200]!r}")
    scheme, authority, path, query = parts.groups()
    scheme = scheme.lower()
    try:
        authority = _authority(scheme, authority)
        path = _without_dot_segments(_encode(path)) or "/"
        normal = f"{scheme}://{authority}{path}{_encode(query or '')}"
    except ValueError as error:  # UnicodeError of a lone surrogate in the host among them
        raise BadPage(f"not a URL: {error}: {url[:200]!r}") from error
    if len(normal) > url_bytes_max:
        raise BadPage(f"URL of more than {url_bytes_max} bytes: {normal[:80]!r}...")
    return normal + _route(fragment, url_bytes_max - len(normal))


def host_of(url: str) -> str:
    """Returns the host of a normalised URL: lower-case ASCII, IPv6 addresses in brackets, "" for `file:///path`."""
    authority = url[url.index("://") + 3 :].partition("/")[0].rpartition("@")[2]
    if authority.startswith("["):
        return authority.partition("]")[0] + "]"
    return authority.partition(":")[0]


def owner_of(url: str) -> str:
    """Returns the owner of the pages below a normalised URL, as far as the URL names it: the host, and the user in the
    path.

    On a site whose users have hosts (`ann.example.com`) or folders (`/@ann/`, `/~ann/`, `/users/ann/`: USER_FOLDERS)
    each user is an owner. The public suffix list contains few such sites. A first label that names a view of a site
    (VIEWS: `www.`, `m.`, `print.`) is removed, because its pages have the same owner.
    """
    path = url[url.index("://") + 3 :].partition("#")[0].partition("?")[0].partition("/")[2]
    host = host_of(url)
    first, _, rest = path.partition("/")
    name, slash, _ = rest.partition("/")
    if first[:1] in ("@", "~"):
        user = first
    elif first in USER_FOLDERS and name and slash:
        user = f"{first}/{name}"
    else:
        user = ""
    label, dot, rest = host.partition(".")
    return f"{rest if dot and label in VIEWS else host}/{user}"


def hen_site(host: str) -> str:
    """Returns the site as Henzinger 2006, section 1, defines it: a host of at most one dot, or else without its first
    label.

    An IP address is its own site (ours). host: result of `host_of`.
    """
    host = host.removesuffix(".")
    if host.count(".") <= 1 or _is_ip(host):
        return host
    return host.partition(".")[2]


@lru_cache(maxsize=1 << 16)
def site_of(host: str) -> str:
    """Returns the registrable domain by the bundled public suffix list; an IP address or a host without one is its own
    site.

    host: result of `host_of`. Domains under privately run suffixes (`someone.github.io`) are sites of their own.
    """
    host = host.removesuffix(".")
    if _is_ip(host):
        return host
    return _suffixes().privatesuffix(host) or host


@lru_cache(maxsize=1)
def _suffixes() -> Any:
    # Loading takes some 50 ms: only processes that ask pay.
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def _is_ip(host: str) -> bool:
    return host.startswith("[") or bool(_IPV4.match(host))


def _authority(scheme: str, authority: str) -> str:
    user, at, place = authority.rpartition("@")
    if place.startswith("["):
        address, bracket, port = place.partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise ValueError("an unclosed bracket")
        host, port = _ipv6(address[1:]), port[1:]
    else:
        host, _, port = place.partition(":")
        host = _host(host)
    if scheme == "file" and host == "localhost":
        host = ""  # RFC 8089
    if not host and scheme != "file":
        raise ValueError("no host")
    if port:
        if not (port.isascii() and port.isdigit()) or int(port) > 65535:
            raise ValueError("not a port")
        port = str(int(port))
        if port == _DEFAULT_PORTS.get(scheme):
            port = ""
    return (_encode(user) + at if user else "") + host + (":" + port if port else "")


def _host(host: str) -> str:
    """Normalises a host: lower-case ASCII, internationalised labels as A-labels.

    Raises ValueError for an invalid DNS name.
    """
    host = host.lower() if host.isascii() else host
    if not host or _HOST.match(host):
        return host
    if "%" in host:
        host = unquote_to_bytes(host).decode()
    host = ".".join(_a_label(label) for label in _IDNA_DOTS.sub(".", host).split("."))
    # Mapped characters can turn out as delimiters (U+2100 becomes a/c): look at what came out.
    if not _HOST.match(host):
        raise ValueError("not a host")
    return host


def _a_label(label: str) -> str:
    if label.isascii():
        return label.lower()
    # Python's nameprep works on Unicode 3.2 for ever: the same host has the same form under every interpreter. Later
    # characters pass unmapped, hence the plain lower-casing first.
    parts = _KEPT_BY_IDNA_2008.split(label.lower())
    mapped = "".join(part if i % 2 else nameprep(part) for i, part in enumerate(parts))
    return mapped if mapped.isascii() else "xn--" + mapped.encode("punycode").decode()


def _ipv6(text: str) -> str:
    """Formats an address by RFC 5952, in brackets. Python versions differ on addresses that embed IPv4."""
    if "%" in text:
        raise ValueError("an IPv6 address with a zone")
    packed = ipaddress.IPv6Address(text).packed
    groups = [int.from_bytes(packed[i : i + 2], "big") for i in range(0, 16, 2)]
    runs = re.finditer(r"0{2,}", "".join("1" if group else "0" for group in groups))
    longest = max(runs, key=lambda run: (run.end() - run.start(), -run.start()), default=None)
    words = [f"{group:x}" for group in groups]
    if longest is None:
        return "[" + ":".join(words) + "]"
    return "[" + ":".join(words[: longest.start()]) + "::" + ":".join(words[longest.end() :]) + "]"


def _encode(text: str) -> str:
    return _PERCENT.sub(_encode_match, text)


def _encode_match(match: re.Match[str]) -> str:
    found = match[0]
    if len(found) == 3 and found[0] == "%":
        char = chr(int(found[1:], 16))
        return char if char in _UNRESERVED else found.upper()
    return percent_encoded(found)


def _route(fragment: str, bytes_max: int) -> str:
    """Returns "#" and the first bytes of the fragment in normal form if it is a route; else ""."""
    found = _route_in(_DIRECTIVE.split(fragment, 1)[0])
    if not found:
        return ""
    # Encoding makes a byte of three at most: what lies behind these is cut off in any case.
    route = "#" + found[0][0] + _encode(found[0][1 : 3 * bytes_max + 4])
    if len(route) > bytes_max:
        route = _PART_OF_ENCODED.sub("", route[:bytes_max])
    return route if route.strip("#!/") else ""


def _route_in(fragment: str) -> re.Match[str] | None:
    return _ROUTE.match(_FIRST.get(fragment[:3].lower(), fragment[:3]) + fragment[3:])


def has_anchor(url: str) -> bool:
    """Whether a URL names a part of a page: its fragment, or the end of it, is no route and not in the normal form."""
    _, _, fragment = url.partition("#")
    if not fragment:
        return False
    route = _route_in(fragment)
    return route is None or route.end() < len(route.string)


def _without_dot_segments(path: str) -> str:
    """Removes dot segments of an absolute or empty path in one pass (RFC 3986, section 5.2.4)."""
    if "/." not in path:
        return path
    segments = path.split("/")
    out: list[str] = []
    for segment in segments:
        if segment == "..":
            if len(out) > 1:
                out.pop()
        elif segment != ".":
            out.append(segment)
    if segments[-1] in (".", ".."):
        out.append("")
    return "/".join(out)


def url_of_id(given: str, file: str = "", row: int | None = None) -> str:
    """Returns an id that is a URL unchanged; for any other id, the URL of its document, as `document_url`."""
    return given if "://" in given else document_url(given, file, row)


def url_of_document_id(given: str) -> str:
    """Returns `url_of_id`; for a URL with an anchor that of a document, because documents of a corpus may be parts of
    one page."""
    return document_url(given) if has_anchor(given) else url_of_id(given)


def document_url(given: str, file: str = "", row: int | None = None) -> str:
    """Makes the URL of the document that an id names, also where the id is the URL of a part of a page.

    `id://DIGEST/ID` names one document wherever the id occurs; `id://FILE.DIGEST/ID` the one of a file, where another
    file has documents of its own under the same ids.

    Args:
        given: the id.
        file: name of the file to which the id belongs, of letters and digits; empty for an id that belongs to none.
        row: number of the document's row, where several rows of the file have the id.
    """
    scope = file if row is None else f"{file}-{row}"
    dot = "." if scope else ""
    return f"{ID_SCHEME}{scope}{dot}{_id_digest(scope, given)}/{quote(given, errors='surrogatepass')}"


def ids_named(given: str, files: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return the documents that an id may name: for each, the id with its file, and the URL.

    An id of a file is also named FILE#ID, where FILE is the path or the name of the file.

    Args:
        given: a URL, an id, or FILE#ID.
        files: names under which `url_of_id` knows the ids of a file, by the path of the file.
    """
    found = [(given, given)] if "://" in given else []
    if "://" in given and not has_anchor(given):
        return found
    found.append((given, document_url(given)))
    found += [(f"{path}#{given}", document_url(given, file)) for path, names in files.items() for file in names]
    for at in (match.start() for match in re.finditer("#", given)):
        file, own = given[:at], given[at + 1 :]
        paths = [path for path in files if path == file or path.endswith("/" + file.removeprefix("./"))]
        found += [(f"{path}#{own}", document_url(own, name)) for path in paths for name in files[path]]
    return found


def one_named(given: str, named: Mapping[str, str], known: Callable[[str], bool]) -> str | None:
    """Returns the URL of the one document that is known; None without any. Raises BadInput for several.

    A document with this id precedes the page of which the id names a part.

    named: the documents that could be meant, by URL, with a name of each.
    """
    found = [url for url in named if known(url)]
    if "://" in given:
        found = [url for url in found if is_document(url)] or found
    if len(found) <= 1:
        return found[0] if found else None
    names = [named[url] for url in found]
    if len(set(names)) < len(names):  # rows of one file
        names = [f"{named[url]} ({url})" for url in found]
    names.sort()
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    raise BadInput(f"{given} names {len(names)} documents; name one of them: {', '.join(names[:_NAMED_MAX])}{more}")


def id_of(url: str | None) -> str | None:
    """Returns the id of a URL that `url_of_id` made; None for other URLs, and if normalising removed a part of it."""
    if url is None or not url.startswith(ID_SCHEME):
        return None
    authority, _, quoted = url.removeprefix(ID_SCHEME).partition("/")
    scope, _, digest = authority.rpartition(".")
    given = unquote(quoted)
    return given if _id_digest(scope, given) == digest else None


def name_of(url: str) -> str:
    """Returns what people call a page: the id of a document that has one, else the URL."""
    return id_of(url) or url


def is_document(url: str) -> bool:
    """Whether a URL was made of an id by `url_of_id`."""
    return url.startswith(ID_SCHEME)


def site_named(url: str, site: str | None) -> str:
    """Returns the site of a page as people call it; "" for a document with an id, which is on no site.

    site: registrable domain of the URL's host. The host of a document's URL is a digest.
    """
    return "" if is_document(url) else site or ""


def site_of_verdict(verdict: Mapping[str, Any]) -> str:
    """Returns `site_named` of a verdict's page. verdict: JSON object of the verdict; without a URL, its site counts."""
    return site_named(str(verdict.get("url") or ""), verdict.get("site"))


def named_url(given: str, url_bytes_max: int = URL_BYTES_MAX) -> str:
    """Returns the normalised URL of a page that a person names by its URL or its id. Raises BadPage."""
    return normalise_url(url_of_id(given), url_bytes_max)


def host_named(given: str) -> tuple[str, bool]:
    """Returns the host, as `host_of`, of a site that a person names, and whether the text names it alone.

    given: host; a URL, a port or a path names more. Raises BadPage for a text without a host.
    """
    normal = normalise_url(given if "://" in given else f"http://{given}/")
    host = host_of(normal)
    # Normalising drops a usual port and most fragments.
    return host, normal == f"http://{host}/" and not set(":#") & set(given.rpartition("]")[2])


def _id_digest(scope: str, given: str) -> str:
    text = f"{scope}\0{given}" if scope else given
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
