"""The bytes of a verdict's line, against orjson: they are published, and deleted by byte in stored frames."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from neardup.verdict import VERDICT_VERSION, Coordinates, Kind, Representative, Verdict

#: Numbers of a verdict lie far below 10**16.
NUMBERS = st.one_of(st.integers(-(1 << 63), (1 << 64) - 1), st.floats(-1e15, 1e15), st.booleans())
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
EVIDENCE = st.dictionaries(TEXT, st.one_of(NUMBERS, TEXT, st.lists(NUMBERS), st.dictionaries(TEXT, NUMBERS)))
PLACES = st.builds(Coordinates, source=TEXT, partition=st.integers(0, 9), offset=st.integers(0, 1 << 40))
PAGES = st.builds(Representative, page_id=st.integers(0, 1 << 62), url=TEXT, fetched_at=NUMBERS, coordinates=PLACES)
OPTIONAL = {
    "reason": TEXT,
    "standing": EVIDENCE.filter(bool),
    "representative": PAGES,
    "cluster": st.integers(0, 1 << 62),
    "cluster_size": st.integers(0, 9),
    "canonical": TEXT,
    "revision": st.integers(0, 9),
    "content_of": PAGES,
    "replaces": st.integers(0, 9),
    "evidence": EVIDENCE,
    "title": TEXT,
    "site": TEXT,
    "lang": TEXT,
    "thin": st.booleans(),
    "opaque": st.booleans(),
    "shell": st.booleans(),
    "truncated": st.booleans(),
    "candidates_cut": st.booleans(),
    "rel_canonical": TEXT,
    "score": st.floats(0, 1),
    "log": TEXT,
    "generation": TEXT,
}


def plain(value):
    """Objects as dictionaries of their fields."""
    if isinstance(value, Coordinates | Representative):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


@given(
    st.fixed_dictionaries(
        {
            "verdict": st.sampled_from(Kind),
            "page_id": st.integers(0, 1 << 62),
            "n": st.integers(0, 3),
            "url": TEXT,
            "fetched_at": st.integers(-5, 1 << 50),
            "coordinates": PLACES,
            "scheme": TEXT,
            "decider": TEXT,
        },
        optional=OPTIONAL,
    )
)
def test_to_json_writes_the_fields_in_order_without_empty_ones(fields):
    assert tuple(OPTIONAL) == Verdict.__struct_fields__[8:], "each field with a default is tried"
    kept = {name: value for name, value in fields.items() if value is not False and value != {}}
    ordered = {"version": VERDICT_VERSION} | {name: kept[name] for name in Verdict.__struct_fields__ if name in kept}
    assert Verdict(**fields).to_json() == orjson.dumps(plain(ordered))
