"""URLs that come as bytes: a header of WARC, a key on Kafka, the name of a file.

They are read as UTF-8. Bytes that are not UTF-8 come as the surrogates U+DC80 to U+DCFF (`surrogateescape`, PEP 383)
and are percent-encoded one by one, as servers receive them: `/caf` and the byte E9 is `/caf%E9`. Replacing such bytes
by U+FFFD would give two pages one URL.
"""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def percent_encoded(text: str) -> str:
    """Percent-encodes each byte of a text in UTF-8: for a surrogate the byte for which it stands.

    A lone surrogate that stands for no byte is encoded as its three bytes, so that different texts stay different.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = b"".join(char.encode("utf-8", "surrogateescape" if _is_byte(char) else "surrogatepass") for char in text)
    return "".join(f"%{byte:02X}" for byte in data)


def _is_byte(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"


def without_surrogates(url: str) -> str:
    """Percent-encodes the lone surrogates of a URL, as its normal form does, and changes nothing else.

    So the URL can be encoded as UTF-8 everywhere.
    """
    return url if url.isascii() else _SURROGATE.sub(lambda match: percent_encoded(match[0]), url)
