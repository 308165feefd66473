"""Derives pairs from signatures, as relations: the same SQL runs in DuckDB and in Spark (README.md, steps 3, 4 and 6).

Input tables, from the signing stage:

    documents   doc, kind (0 page, 1 gone), url, site, quality, digest_high, digest_low, characters, signatures
    signatures  doc, high, low

doc is a number of 50 bits: source << 32 | ordinal in the source. A *key* is quality << 59 | signatures << 50 | doc. The
greatest key of a set is its representative. All values except url and site are whole numbers, so every engine returns
the same rows.
"""

from neardup.partition.parameters import Parameters

DOC_BITS = 50
SOURCE_BITS, PLACE_BITS = 18, 32
_DOCS = 1 << DOC_BITS
_SIGNATURES = 1 << 9  # above the most signatures of a document
#: Greatest page quality; a key has 63 bits.
QUALITY_MAX = 15

#: The last fetch of each URL, without URLs that are gone by then.
LATEST = """
select d.doc, d.site, d.quality, d.digest_high, d.digest_low, d.characters, d.signatures
from documents d join (select max(doc) as doc from documents group by url) last on d.doc = last.doc
where d.kind = 0
"""

#: The first document of each distinct text. It represents the documents that repeat the text (REPEATS).
STANDING = f"""
select l.doc, l.site, (cast(l.quality as bigint) * {_SIGNATURES} + l.signatures) * {_DOCS} + l.doc as item, l.signatures
from latest l join (
    select min(doc) as doc from latest where characters > 0 group by digest_high, digest_low
) first on l.doc = first.doc
"""

REPEATS = """
select l.doc, first.doc as standing
from latest l join (
    select min(doc) as doc, digest_high, digest_low from latest where characters > 0 group by digest_high, digest_low
) first on l.digest_high = first.digest_high and l.digest_low = first.digest_low
where l.doc <> first.doc
"""

#: Signatures and the texts that use them; a text uses a signature once.
USES = """
select distinct s.high, s.low, d.item, d.site
from signatures s join standing d on s.doc = d.doc
"""


def live(parameters: Parameters) -> str:
    """Selects the signatures that make lists: used twice or more, and not dropped by the guard against templates and
    spam.
    """
    return f"""
select high, low, max(item) as rep, sum(uses) as uses
from (select high, low, site, count(*) as uses, max(item) as item from uses group by high, low, site) by_site
group by high, low
having sum(uses) > 1 and sum(uses) <= {parameters.uses_max}
   and not (sum(uses) > {parameters.site_uses_max} and 2 * max(uses) > sum(uses))
"""


def dropped(parameters: Parameters) -> str:
    """Counts the signatures that the guard dropped, and their uses."""
    return f"""
select count(*) as signatures, coalesce(sum(uses), 0) as uses
from (
    select sum(uses) as uses, max(uses) as most
    from (select high, low, site, count(*) as uses from uses group by high, low, site) by_site
    group by high, low
) counted
where uses > {parameters.uses_max} or (uses > {parameters.site_uses_max} and 2 * most > uses)
"""


#: Members of each list except its representative; lists with the same representative are merged.
LISTS = """
select distinct l.rep, u.item
from uses u join live l on u.high = l.high and u.low = l.low
where u.item <> l.rep
"""

#: Representatives that are members of other lists, the greatest first.
CONTAINED = """
select l.rep, l.item
from lists l join (select distinct rep from lists) r on l.item = r.rep
order by l.rep desc, l.item desc
"""

#: The perhaps-similar sets. Reads the table absorbed: rep, owner.
SETS = """
select coalesce(a.owner, l.rep) as rep, l.item
from lists l left join absorbed a on l.rep = a.rep
union
select a.owner as rep, a.rep as item from absorbed a
"""


def left(round_number: int) -> str:
    """Selects the documents still to be compared in each perhaps-similar set: set, representative, document.

    The first round compares them with the set's representative. After a round, the near-duplicates of a representative
    leave the set with it, and the greatest of the rest takes its place.
    """
    if round_number == 0:
        return "select rep as family, rep, item from sets where item <> rep"
    before = round_number - 1
    return f"""
select l.family, greatest.rep, l.item
from remaining_{before} l join (
    select family, max(item) as rep from remaining_{before} group by family
) greatest on l.family = greatest.family
where l.item <> greatest.rep
"""


def remaining(round_number: int) -> str:
    """Selects the documents that stay in each set after a round."""
    compared = " union all ".join(f"select a, b, near from compared_{earlier}" for earlier in range(round_number + 1))
    return f"""
select l.family, l.item
from left_{round_number} l join ({compared}) c on c.a = l.rep and c.b = l.item
where c.near = 0
"""


def pairs(round_number: int) -> str:
    """Selects the pairs to compare in a round, except those of earlier rounds. a is the greater key."""
    new = f"select distinct rep as a, item as b from left_{round_number}"
    for earlier in range(round_number):
        new = f"select n.a, n.b from ({new}) n left join pairs_{earlier} e on n.a = e.a and n.b = e.b where e.a is null"
    return new


#: Number of documents that a round leaves in sets of two or more.
LEFT = """
select coalesce(sum(n), 0) from (
    select count(*) as n from remaining_{before} group by family having count(*) > 1
) families
"""

#: The pair that is the evidence for each similar document: the one with its star's representative, else with the
#: greatest key. item, other: keys.
EVIDENCE = """
select item, other, score, containment from (
    select p.item, p.other, p.score, p.containment,
           row_number() over (
               partition by p.item order by case when p.other = g.star then 0 else 1 end, p.other desc
           ) as place
    from (
        select b as item, a as other, score, containment from compared where near = 1
        union all
        select a as item, b as other, score, containment from compared where near = 1
    ) p join grouped g on p.item = g.item
) placed
where place = 1
"""

#: The result of each document. first: the first document with its text. star, family: its representatives in stars
#: and in transitive sets. against: the other document of its evidence, -1 without evidence.
ROWS = f"""
select d.doc, d.url, d.site, d.characters, d.signatures, d.first, coalesce(g.star % {_DOCS}, d.first) as star,
       coalesce(g.family % {_DOCS}, d.first) as family, coalesce(e.other % {_DOCS}, -1) as against,
       coalesce(e.score, 0.0) as score, coalesce(e.containment, 0.0) as containment
from (
    select l.doc, o.url, l.site, l.characters, l.signatures, coalesce(r.standing, l.doc) as first
    from latest l join documents o on l.doc = o.doc left join repeats r on l.doc = r.doc
) d
left join grouped g on d.first = g.item % {_DOCS}
left join evidence e on e.item = g.item
"""

#: Sets of two or more documents, one row per document, ordered by set; {column} is star or family.
SETS_OF = """
select r.{column} as chosen, r.doc, r.url, r.first, r.against, r.score, r.containment
from outcome r join (select {column} as chosen from outcome group by {column} having count(*) > 1) many
on r.{column} = many.chosen
order by r.{column}, r.doc
"""
