"""Reads numbers of the decider for single sites: JSON, or a file of JSON or TOML.

["example.com"]                # a registrable domain
never_merge = true             # nothing but exact copies

["shop.example"]
tape_min = 0.9                 # a closer match than others
"""

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from neardup.decider import SiteOverride
from neardup.errors import BadInput
from neardup.urls import site_of
from streams.errors import bad_input

_WISHES = ("never_merge", "tape_min")
#: Enough for some 100,000 sites; each verdict looks up two of them.
FILE_BYTES_MAX = 10_000_000


def sites_of(raw: Any) -> dict[str, SiteOverride]:
    """The numbers by site, from a table, from JSON text, or from a file.

    Raises BadInput for an invalid file or site; ValueError, TypeError for an argument that is neither table nor text.
    """
    if isinstance(raw, str) and raw.lstrip().startswith("{"):
        raw = orjson.loads(raw)
    elif isinstance(raw, str | Path):
        raw = _tables(Path(raw))
    if not isinstance(raw, Mapping):
        raise TypeError
    return dict(_site(name, required) for name, required in raw.items())


def _site(name: str, required: Any) -> tuple[str, SiteOverride]:
    site = name.lower()
    if site_of(site) != site:
        raise BadInput(f"site {name[:100]!r} is no registrable domain, as example.com or example.co.uk are")
    if not isinstance(required, Mapping) or not set(required) <= set(_WISHES):
        raise BadInput(f'site {site}: there is {", ".join(_WISHES)}; TOML wants quotes: ["example.com"]')
    never, least = required.get("never_merge", False), required.get("tape_min")
    if not isinstance(never, bool):
        raise BadInput(f"site {site}: never_merge is true or false")
    if least is None:
        return site, SiteOverride(never)
    if isinstance(least, bool) or not isinstance(least, int | float) or not (math.isfinite(least) and 0 <= least <= 1):
        raise BadInput(f"site {site}: tape_min is a number from 0 to 1")
    return site, SiteOverride(never, float(least))


def _tables(path: Path) -> Any:
    """The tables of a file. Raises BadInput."""
    with bad_input(str(path)), path.open("rb") as file:
        text = file.read(FILE_BYTES_MAX + 1)
    if len(text) > FILE_BYTES_MAX:
        raise BadInput(f"{path}: more than {FILE_BYTES_MAX:,} bytes")
    try:
        return orjson.loads(text) if text.lstrip().startswith(b"{") else tomllib.loads(text.decode())
    except ValueError as error:  # JSONDecodeError, TOMLDecodeError, bad UTF-8
        raise BadInput(f"{path}: neither JSON nor TOML: {error}") from error
