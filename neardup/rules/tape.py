"""An order-keeping sample of both texts decides, unless names of title and head say that they are about different
things. Equal digests are common to all rules and settled before. `verified` asks more of pages of one site.
"""

from neardup.decider import Decider
from neardup.index.namings import NO_SIBLINGS, Siblings
from neardup.rules import combined
from neardup.rules.base import Pair, Ruling
from neardup.verdict import Kind

#: Order of accepted candidates: pairs decided on tapes, then by `combined`, then by main content.
BY_TAPE, _BY_COMBINED, _BY_CONTENT = 3, 2, 1


def decide(pair: Pair, decider: Decider, crowd: int = 0, siblings: Siblings = NO_SIBLINGS) -> Ruling:
    fewest = min(pair.tokens_a, pair.tokens_b)
    if fewest < decider.thin_tokens:
        return Ruling(None, "thin")
    if pair.title_veto == 1:
        return Ruling(None, "title veto")
    if pair.head_veto == 1:
        return Ruling(None, "head veto")
    unproved = bool(pair.title_veto or pair.head_veto)
    if min(pair.tape_a, pair.tape_b) < decider.tape_bytes_min:
        return _by_combined(pair, decider, fewest)
    demanded, why = decider.tape_min, "tape"
    if fewest < decider.short_tokens:
        demanded, why = decider.short_tape_min, "short tape"
    if unproved or (decider.crowd_min and crowd >= decider.crowd_min):
        demanded, why = decider.strict_tape_min, "unproved veto" if unproved else "crowd"
    if pair.tape_score >= demanded:
        return Ruling(Kind.NEAR_DUPLICATE, "tape", (BY_TAPE, pair.tape_score))
    if pair.tape_score >= decider.tape_min or unproved:
        return Ruling(None, why)
    return _by_content(pair, decider)


def _by_combined(pair: Pair, decider: Decider, fewest: int) -> Ruling:
    ruling = combined.decide(pair, decider)
    if ruling.kind and fewest < decider.short_tokens and pair.c_similarity < decider.c_min:
        return Ruling(None, "combined: C of a short page")
    return ruling._replace(rank=(_BY_COMBINED, float(pair.c_similarity)))


def _by_content(pair: Pair, decider: Decider) -> Ruling:
    if pair.content_score < decider.content_tape_min:
        return Ruling(None, "tape")
    if min(pair.content_tokens_a, pair.content_tokens_b) < decider.content_tokens_min:
        return Ruling(None, "content: too short")
    smaller, page = min((pair.content_tokens_a, pair.tokens_a), (pair.content_tokens_b, pair.tokens_b))
    if smaller < decider.content_share_min * page:
        return Ruling(None, "content: too small a part")
    return Ruling(Kind.SAME_CONTENT, "content", (_BY_CONTENT, pair.content_score))
