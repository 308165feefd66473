"""Reads numbers of the decider for single sites: JSON, or a file of JSON or TOML.

["example.com"]                # a registrable domain
never_merge = true             # nothing but exact copies

["shop.example"]
tape_min = 0.9                 # a closer match than others
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
from msgspec import Meta, Struct

from neardup.decider import SiteOverride
from neardup.errors import BadInput
from neardup.typed_json import typed
from neardup.urls import site_of
from streams.errors import bad_input

#: Enough for some 100,000 sites; each verdict looks up two of them.
FILE_BYTES_MAX = 10_000_000


class _Numbers(Struct, forbid_unknown_fields=True):
    """The numbers of a site."""

    never_merge: bool = False
    tape_min: Annotated[float, Meta(ge=0, le=1)] | None = None


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
    try:
        numbers = typed(required, _Numbers)
    except ValueError as error:
        known = ", ".join(_Numbers.__struct_fields__)
        hint = f'; there is {known}, and TOML needs quotes: ["example.com"]'
        raise BadInput(f"site {site}: {error}{hint}") from error
    return site, SiteOverride(numbers.never_merge, numbers.tape_min)


def _tables(path: Path) -> Any:
    """The tables of a file. Raises BadInput."""
    with bad_input(str(path)), path.open("rb") as file:
        text = file.read(FILE_BYTES_MAX + 1)
    if len(text) > FILE_BYTES_MAX:
        raise BadInput(f"{path}: more than {FILE_BYTES_MAX:,} bytes")
    try:  # not by `tolerant_json`: a number that is NaN is a mistake here, and not a missing value
        return orjson.loads(text) if text.lstrip().startswith(b"{") else tomllib.loads(text.decode())
    except ValueError as error:  # JSONDecodeError, TOMLDecodeError, bad UTF-8
        raise BadInput(f"{path}: neither JSON nor TOML: {error}") from error
