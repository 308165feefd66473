"""Lists, sets and rounds: the relations in DuckDB, and the passes over them, against dictionaries."""

import random
from collections import defaultdict

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.pairs.components import components
from neardup.partition import Parameters, groups, plan
from tests.oracle import partition as oracle

BIT = 1 << plan.DOC_BITS


class Tables:
    """The relations of a partition in memory."""

    def __init__(self, documents: dict[int, tuple[str, set[int]]], parameters: Parameters) -> None:
        """documents: number -> (site, signatures)."""
        self.db = duckdb.connect()
        self.db.execute(
            "create table documents (doc bigint, kind int, url varchar, site varchar, quality int, digest_high bigint, "
            "digest_low bigint, characters int, signatures int)"
        )
        self.db.execute("create table signatures (doc bigint, high bigint, low bigint)")
        for doc, (site, own) in documents.items():
            row = [doc, 0, f"https://{site}/{doc}", site, 0, doc, 0, 9, len(own)]
            self.db.execute("insert into documents values (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            for signature in own:
                self.db.execute("insert into signatures values (?, ?, ?)", [doc, signature, -signature])
        self.parameters = parameters

    def make(self, name: str, sql: str) -> None:
        self.db.execute(f"create table {name} as {sql}")

    def sets(self) -> dict[int, set[int]]:
        for name, sql in (
            ("latest", plan.LATEST),
            ("standing", plan.STANDING),
            ("uses", plan.USES),
            ("live", plan.live(self.parameters)),
            ("lists", plan.LISTS),
        ):
            self.make(name, sql)
        absorbed = groups.absorb(self.db.execute(plan.CONTAINED).fetchall(), self.parameters.absorbed)
        self.db.execute("create table absorbed (rep bigint, owner bigint)")
        self.db.executemany("insert into absorbed values (?, ?)", absorbed or [(-1, -1)])
        self.db.execute("delete from absorbed where rep = -1")
        self.make("sets", plan.SETS)
        found = defaultdict(set)
        for rep, item in self.db.execute("select rep, item from sets").fetchall():
            found[rep].add(item)
        return dict(found)

    def rounds(self, near, most: int) -> list[set[tuple[int, int]]]:
        out = []
        for number in range(most):
            self.make(f"left_{number}", plan.left(number))
            self.make(f"pairs_{number}", plan.pairs(number))
            pairs = self.db.execute(f"select a, b from pairs_{number}").fetchall()
            if not pairs:
                break
            out.append(set(pairs))
            assert len(pairs) == len(out[-1])
            self.db.execute(f"create table compared_{number} (a bigint, b bigint, near int)")
            self.db.executemany(
                f"insert into compared_{number} values (?, ?, ?)", [(a, b, int(near(a, b))) for a, b in pairs]
            )
            self.make(f"remaining_{number}", plan.remaining(number))
        return out


def keyed(documents):
    return {len(own) * BIT + doc: (site, own) for doc, (site, own) in documents.items()}


DOCUMENTS = st.lists(
    st.tuples(st.sampled_from(("a.example", "b.example")), st.sets(st.integers(1, 8), max_size=5)), max_size=12
).map(lambda rows: dict(enumerate(rows)))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(DOCUMENTS, st.integers(0, 3), st.integers(2, 5), st.integers(2, 4))
def test_sets_are_the_oracles(documents, absorbed, uses_max, site_uses_max):
    parameters = Parameters(absorbed=absorbed, uses_max=uses_max, site_uses_max=site_uses_max)
    wanted = oracle.sets(keyed(documents), uses_max, site_uses_max, absorbed)
    assert Tables(documents, parameters).sets() == wanted


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(DOCUMENTS, st.integers(0, 2**32))
def test_rounds_are_the_oracles(documents, seed):
    def near(a, b):
        return random.Random(hash((seed, a, b))).random() < 0.4

    tables = Tables(documents, Parameters())
    wanted = [pairs for pairs in oracle.compared(tables.sets(), near) if pairs]
    found = tables.rounds(near, 20)
    assert [pairs for pairs in found if pairs] == wanted


def test_lists_with_one_representative_are_merged_and_absorbed_from_the_greatest_down():
    # 9 holds 5 by signature 1, and 5 holds 3 by signature 2; 4 holds 2
    documents = {
        9: ("a.example", {1, 11, 12, 13}),
        5: ("a.example", {1, 2, 14}),
        3: ("a.example", {2}),
        4: ("b.example", {4, 15}),
        2: ("b.example", {4}),
    }
    keys = {doc: len(own) * BIT + doc for doc, (_, own) in documents.items()}

    def named(found):
        back = {key: doc for doc, key in keys.items()}
        return {back[rep]: {back[item] for item in items} for rep, items in found.items()}

    assert named(Tables(documents, Parameters(absorbed=0)).sets()) == {9: {5}, 5: {3}, 4: {2}}
    assert named(Tables(documents, Parameters()).sets()) == {9: {5, 3}, 4: {2}}


@pytest.mark.parametrize(("depth", "owners"), [(1, {8: 9, 6: 7}), (2, {8: 9, 7: 9}), (3, {8: 9, 7: 9, 6: 9})])
def test_absorption_reaches_as_deep_as_asked(depth, owners):
    chain = [(9, 8), (8, 7), (7, 6)]
    assert dict(groups.absorb(chain, depth)) == owners


def test_a_template_of_one_site_makes_no_list():
    many = {doc: ("a.example", {1}) for doc in range(6)}
    spread = {doc: (f"s{doc % 3}.example", {1}) for doc in range(6)}
    guard = Parameters(site_uses_max=5)
    assert Tables(many, guard).sets() == {}
    assert len(Tables(spread, guard).sets()) == 1
    assert Tables(spread, Parameters(uses_max=5)).sets() == {}


def test_documents_are_the_last_fetch_of_each_url_that_is_not_gone():
    tables = Tables({1: ("a.example", {1}), 2: ("a.example", {1}), 3: ("a.example", {1})}, Parameters())
    tables.db.execute("update documents set url = 'https://a.example/' where doc < 3")
    tables.db.execute("insert into documents values (4, 1, 'https://a.example/3', '', 0, 0, 0, 0, 0)")
    tables.make("latest", plan.LATEST)
    assert tables.db.execute("select doc from latest").fetchall() == [(2,)]


def test_one_text_is_one_document():
    tables = Tables({1: ("a.example", {1}), 2: ("a.example", {1}), 3: ("b.example", {1})}, Parameters())
    tables.db.execute("update documents set digest_high = 7")
    assert tables.sets() == {}
    assert sorted(tables.db.execute(plan.REPEATS).fetchall()) == [(2, 1), (3, 1)]


def test_stars_are_no_chains_and_transitive_sets_are():
    accepted = [(9, 5), (7, 5), (5, 3)]
    assert groups.stars(accepted) == {5: 9}
    assert components(accepted) == {5: 9, 7: 9, 3: 9}


@given(st.sets(st.tuples(st.integers(0, 15), st.integers(0, 15)).filter(lambda pair: pair[0] > pair[1])))
def test_every_member_of_a_star_was_compared_with_its_representative(pairs):
    accepted = sorted(pairs, reverse=True)
    stars, sets = groups.stars(accepted), components(accepted)
    assert all((rep, member) in pairs for member, rep in stars.items())
    assert not set(stars) & set(stars.values())
    for a, b in pairs:
        assert sets.get(a, a) == sets.get(b, b)
    assert all(rep > member for member, rep in sets.items())
