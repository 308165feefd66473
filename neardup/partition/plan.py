"""From signatures to pairs, as relations: the same SQL runs in DuckDB and in Spark (README.md, steps 3, 4 and 6).

Tables that must be there, as `document_columns` and the signing step give them:

    documents   doc, kind (0 page, 1 gone), url, site, digest_high, digest_low, characters, signatures
    signatures  doc, high, low

doc is a number of 54 bits: source << 32 | place in the source. A *key* is signatures << 54 | doc: the greatest key of
a set is its representative. All values are whole numbers but url and site, so every engine gives the same rows.
"""

from neardup.partition.parameters import Parameters

DOC_BITS = 54
SOURCE_BITS, PLACE_BITS = 22, 32
_DOCS = 1 << DOC_BITS

#: The documents that count: of each URL its last fetch, unless it is gone by then.
LATEST = """
select d.doc, d.site, d.digest_high, d.digest_low, d.characters, d.signatures
from documents d join (select max(doc) as doc from documents group by url) last on d.doc = last.doc
where d.kind = 0
"""

#: Of each text the first document, which stands for all that have it; the others repeat it.
STANDING = f"""
select l.doc, l.site, cast(l.signatures as bigint) * {_DOCS} + l.doc as item, l.signatures
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

#: Which texts use which signature; of one text each counts once.
USES = """
select distinct s.high, s.low, d.item, d.site
from signatures s join standing d on s.doc = d.doc
"""


def live(parameters: Parameters) -> str:
    """The signatures that lists are made of: used twice or more, and not by template or spam."""
    return f"""
select high, low, max(item) as rep, sum(uses) as uses
from (select high, low, site, count(*) as uses, max(item) as item from uses group by high, low, site) by_site
group by high, low
having sum(uses) > 1 and sum(uses) <= {parameters.uses_max}
   and not (sum(uses) > {parameters.site_uses_max} and 2 * max(uses) > sum(uses))
"""


def dropped(parameters: Parameters) -> str:
    """How many signatures the guard dropped, and uses of them."""
    return f"""
select count(*) as signatures, coalesce(sum(uses), 0) as uses
from (
    select sum(uses) as uses, max(uses) as most
    from (select high, low, site, count(*) as uses from uses group by high, low, site) by_site
    group by high, low
) counted
where uses > {parameters.uses_max} or (uses > {parameters.site_uses_max} and 2 * most > uses)
"""


#: Lists with one representative merged: who is in its list beside it.
LISTS = """
select distinct l.rep, u.item
from uses u join live l on u.high = l.high and u.low = l.low
where u.item <> l.rep
"""

#: Representatives in the lists of others, the greatest first.
CONTAINED = """
select l.rep, l.item
from lists l join (select distinct rep from lists) r on l.item = r.rep
order by l.rep desc, l.item desc
"""

#: The perhaps-similar sets. absorbed: rep, owner of the lists that were absorbed.
SETS = """
select coalesce(a.owner, l.rep) as rep, l.item
from lists l left join absorbed a on l.rep = a.rep
union
select a.owner as rep, a.rep as item from absorbed a
"""


def left(round_number: int) -> str:
    """Who is still to be compared in each perhaps-similar set, and with whom: set, rep, item.

    In the first round with the set's representative; after that, those that were similar to it have left the set with
    it, and the greatest of the others stands for them.
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
    """Who is left of each set after a round."""
    compared = " union all ".join(f"select a, b, near from compared_{earlier}" for earlier in range(round_number + 1))
    return f"""
select l.family, l.item
from left_{round_number} l join ({compared}) c on c.a = l.rep and c.b = l.item
where c.near = 0
"""


def pairs(round_number: int) -> str:
    """The pairs to be compared in a round: those of no earlier one. a is the greater key."""
    new = f"select distinct rep as a, item as b from left_{round_number}"
    for earlier in range(round_number):
        new = f"select n.a, n.b from ({new}) n left join pairs_{earlier} e on n.a = e.a and n.b = e.b where e.a is null"
    return new


#: Documents that a round left in sets of two or more.
LEFT = """
select coalesce(sum(n), 0) from (
    select count(*) as n from remaining_{before} group by family having count(*) > 1
) families
"""

#: Of each document that was found similar to another the pair that speaks for it: with the one that stands for its
#: star, else with the greatest. item, other: keys.
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

#: What became of each document. first: the one that stands for its text. star, family: those that stand for it in
#: stars and in transitive sets. against: the other one of the pair that speaks for it, -1 without one.
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

#: Sets of two or more, a row a document, set by set; {column} is star or family.
SETS_OF = """
select r.{column} as chosen, r.doc, r.url, r.first, r.against, r.score, r.containment
from outcome r join (select {column} as chosen from outcome group by {column} having count(*) > 1) many
on r.{column} = many.chosen
order by r.{column}, r.doc
"""
