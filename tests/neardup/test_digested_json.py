"""Digests of deciders and schemes outlive new fields: indexes that were made before are opened as before."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from neardup.decider import RULE_NAMES, Decider, SiteOverride
from neardup.digested_json import later
from neardup.errors import OtherVersion
from neardup.scheme import Scheme

#: What was released. Entries are added, and never changed: the file's deciders and schemes are on people's disks.
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "written.json").read_text())
DECIDER, SCHEME = Decider(scheme="0" * 32), Scheme(seed=20250117)


@pytest.mark.parametrize("golden", GOLDEN["deciders"], ids=lambda golden: golden["digest"][:8])
def test_a_released_decider_is_read_and_named_as_ever(golden: Mapping[str, str]) -> None:
    held = Decider.from_json(golden["written"])
    assert (held.to_json(), held.digest) == (golden["written"], golden["digest"])


@pytest.mark.parametrize("golden", GOLDEN["schemes"], ids=lambda golden: golden["digest"][:8])
def test_a_released_scheme_is_read_and_named_as_ever(golden: Mapping[str, str]) -> None:
    held = Scheme.from_json(golden["written"])
    assert (held.to_json(), held.digest) == (golden["written"], golden["digest"])


def test_current_default_is_among_known_digests() -> None:
    sites = {"a.example": SiteOverride(never_merge=True), "b.example": SiteOverride(tape_min=0.9)}
    digests = [golden["digest"] for golden in GOLDEN["deciders"] + GOLDEN["schemes"]]
    assert {DECIDER.digest, replace(DECIDER, sites=sites).digest, SCHEME.digest} <= set(digests)


# a version of neardup to come


@dataclass(frozen=True)
class LaterWish(SiteOverride):
    quota: int = later(0, neutral=0)


@dataclass(frozen=True)
class LaterDecider(Decider):
    echo_min: int = later(3, neutral=0)
    echo_share: float = later(0.5, neutral=0.5)


@dataclass(frozen=True)
class LaterScheme(Scheme):
    echo_bits: int = later(64, neutral=0)


def test_a_new_number_changes_no_digest() -> None:
    for golden in GOLDEN["deciders"]:
        held = LaterDecider.from_json(golden["written"])
        assert (held.echo_min, held.echo_share) == (0, 0.5), "as the program was without them, and not the default"
        assert (held.to_json(), held.digest) == (golden["written"], golden["digest"])
    for golden in GOLDEN["schemes"]:
        scheme = LaterScheme.from_json(golden["written"])
        assert scheme.echo_bits == 0
        assert (scheme.to_json(), scheme.digest) == (golden["written"], golden["digest"])


def test_a_site_may_want_something_new_too() -> None:
    plain, same = replace(DECIDER, sites={"a.org": SiteOverride()}), replace(DECIDER, sites={"a.org": LaterWish()})
    assert plain.digest == same.digest
    wished = replace(DECIDER, sites={"a.org": LaterWish(quota=1)})
    assert wished.digest != plain.digest
    with pytest.raises(OtherVersion, match="quota"):
        Decider.from_json(wished.to_json())


def test_another_value_of_a_new_number_is_another_decider() -> None:
    deciders = [LaterDecider("0" * 32, echo_min=count, echo_share=share) for count in (0, 3) for share in (0.5, 0.6)]
    assert len({decider.digest for decider in deciders}) == 4
    assert deciders[0].digest == DECIDER.digest
    assert [LaterDecider.from_json(decider.to_json()) for decider in deciders] == deciders
    assert LaterScheme(seed=20250117).digest != SCHEME.digest


def test_the_test_sees_a_number_that_came_without_a_neutral_value() -> None:
    @dataclass(frozen=True)
    class Careless(Decider):
        echo_min: int = field(default=0)

    assert Careless("0" * 32).digest != DECIDER.digest
    with pytest.raises(ValueError, match="echo_min missing"):
        Careless.from_json(DECIDER.to_json())


def test_every_number_tells_deciders_apart() -> None:
    for each in fields(Decider):
        value: Any = {"scheme": "1" * 32, "rule": "tape", "sites": {"a.org": SiteOverride()}, "model": "{}"}.get(
            each.name
        )
        if value is None:
            now = getattr(DECIDER, each.name)
            value = now / 2 if isinstance(now, float) else now - 1 if now else now + 1
        other = replace(DECIDER, **{each.name: value})
        assert other.digest != DECIDER.digest, each.name


# what cannot be read


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"echo_min": 3, "echo": 4}, "does not know echo, echo_min"),
        ({"rule_version": 3}, "does not know version 3 of the rules"),
        ({"rule": "echo"}, "does not know rule 'echo'"),
        ({"sites": {"a.org": {"never_merge": False, "tape_min": None, "quota": 3}}}, "does not know quota"),
    ],
)
def test_json_of_a_newer_program_is_named(change: dict[str, Any], expected: str) -> None:
    text = json.dumps(json.loads(DECIDER.to_json()) | change)
    with pytest.raises(OtherVersion, match=f"state/decider.json: written by a newer version of neardup .*{expected}"):
        Decider.from_json(text, "state/decider.json")
    with pytest.raises(OtherVersion, match=r"scheme\.json: written by a newer version of neardup .* echo\b"):
        Scheme.from_json(json.dumps(json.loads(SCHEME.to_json()) | {"echo": 1}), "scheme.json")


@pytest.mark.parametrize("spoilt", ["", "{", "[]", "3", "{}"])
def test_json_of_another_kind_is_named(spoilt: str) -> None:
    for kind in (Decider, Scheme):
        with pytest.raises(ValueError):
            kind.from_json(spoilt)
    values = json.loads(DECIDER.to_json())
    for change in ({"sites": 3}, {"sites": {"a.org": 3}}, {"rule_version": "x"}, {"rule": None}):
        with pytest.raises((ValueError, OtherVersion)):
            Decider.from_json(json.dumps(values | change))


def test_every_rule_can_be_read() -> None:
    for rule in RULE_NAMES:
        assert Decider.from_json(replace(DECIDER, rule=rule).to_json()).rule == rule


@pytest.mark.parametrize(("name", "value"), [("tape_min", 90), ("tape_min", float("nan")), ("candidates_max", -1)])
def test_a_number_beyond_its_limits_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^{name} of the decider is {value}, not a number from \d+ to \d+$"):
        replace(DECIDER, **{name: value})
