"""What each online rule decides about a pair, step by step in plain Python: the slow twin of `neardup.rules.rulings`.

A pair is a `Pair`, numbers are a `Decider`. A ruling is (kind, by, rank, score, demand); None passes to the next step.
"""

from dataclasses import replace
from urllib.parse import unquote, urlsplit


def refused(by, score, demand):
    return None, by, (0, 0.0), score, demand


# ---- the papers' rules ----------------------------------------------------------------------------------------------


def one_number(name, score, demand):
    if score < demand:
        return refused(name, score, demand)
    return "near_duplicate", name, (0, float(score)), score, demand


def combined(pair, decider):
    if pair.b_similarity < decider.b_min:
        return refused("combined: B", pair.b_similarity, decider.b_min)
    if pair.c_similarity < decider.combined_c_min:
        return refused("combined: C", pair.c_similarity, decider.combined_c_min)
    return one_number("combined", pair.c_similarity, decider.combined_c_min)


def by_numbers(rule, pair, decider):
    if rule == "shingling":
        return one_number(rule, pair.b_similarity, decider.b_min)
    if rule == "simhash64":
        return one_number(rule, pair.simhash64_agree, decider.simhash64_min)
    if rule == "combined" or (rule == "site-split" and pair.same_hen_site):
        return combined(pair, decider)
    return one_number("simhash", pair.c_similarity, decider.c_min)


# ---- tapes ----------------------------------------------------------------------------------------------------------


def plain_demand(pair, decider):
    return decider.tape_min if pair.same_site else decider.two_sites_tape_min


def demanded(pair, decider, doubtful):
    if doubtful:
        return decider.strict_tape_min, "unproved veto"
    if min(pair.tokens_a, pair.tokens_b) < decider.short_tokens:
        return decider.short_tape_min, "short tape"
    return plain_demand(pair, decider), "tape"


def thin(pair, decider):
    fewest = min(pair.tokens_a, pair.tokens_b)
    return refused("thin", fewest, decider.thin_tokens) if fewest < decider.thin_tokens else None


def by_tape(pair, decider, doubtful):
    demand, by = demanded(pair, decider, doubtful)
    if pair.tape_score >= demand:
        return "near_duplicate", "tape", (2, pair.tape_score), pair.tape_score, demand
    if pair.tape_score >= plain_demand(pair, decider) or doubtful:
        return refused(by, pair.tape_score, demand)
    return None


def by_content(pair, decider):
    score, needed = pair.content_score, decider.content_tape_min
    if score < needed:
        return None
    if min(pair.content_tokens_a, pair.content_tokens_b) < decider.short_tokens:
        return refused("content: too short", score, needed)
    return "same_content", "content", (1, score), score, needed


def unlike(pair, decider):
    return refused("tape", pair.tape_score, demanded(pair, decider, False)[0])


def tapes_rule(pair, decider):
    doubtful = pair.title_veto == 2 or pair.head_veto == 2
    demand = demanded(pair, decider, doubtful)[0]
    return (
        thin(pair, decider)
        or (refused("title veto", pair.tape_score, demand) if pair.title_veto == 1 else None)
        or (refused("head veto", pair.tape_score, demand) if pair.head_veto == 1 else None)
        or by_tape(pair, decider, doubtful)
        or by_content(pair, decider)
        or unlike(pair, decider)
    )


# ---- the default rule -----------------------------------------------------------------------------------------------


def is_noise(pair, decider):
    few = pair.loose_words <= decider.noise_gaps_max * decider.stamp_words_max
    return pair.gaps <= decider.noise_gaps_max and few


def is_stamp(pair, decider, words_max):
    if decider.rule_version == 1 or pair.same_values == -1:
        return is_short(pair, decider, words_max)
    if not decider.stamp_words_max or not pair.same_values or pair.gap_digits > 2 * decider.stamp_words_max:
        return False
    return pair.same_rest or is_short(pair, decider, words_max)


def is_short(pair, decider, words_max):
    few = pair.gap_digits < (2 if pair.gaps == 1 else 3 * pair.gaps)
    inner = min(pair.content_tokens_a, pair.content_tokens_b) >= decider.thin_tokens
    if few and not pair.same_tail and not (pair.content_score == 1 and inner):
        return False
    words = min(words_max, pair.gap_digits)
    seen = decider.stamp_words_max > 0 and pair.gaps > 0
    return seen and pair.loose_words == 0 and pair.gap_words <= words and is_noise(pair, decider)


def same_but_own_urls(pair, decider):
    at_the_end = pair.gaps <= pair.end_differs and pair.loose_words == 0
    return pair.own_urls and pair.tape_level == 0 and at_the_end and is_noise(pair, decider)


def one_address(pair):
    return pair.same_address or pair.same_canonical


def claim_one_page(pair, decider):
    fewest = min(pair.tokens_a, pair.tokens_b)
    said = decider.rule_version >= 2 and pair.same_site and pair.same_owner and pair.same_canonical
    return said and fewest >= decider.short_tokens and contained(pair) >= decider.content_tape_min


def is_own_query(pair, decider):
    return decider.rule_version >= 2 and pair.own_query


def is_other_view(pair, decider):
    if claim_one_page(pair, decider) or is_own_query(pair, decider):
        return True
    alike = max(pair.tape_score, pair.content_score) >= decider.strict_tape_min
    released = pair.same_tail and not (pair.path_veto or pair.records)
    return alike and pair.same_site and (one_address(pair) or released) and pair.same_heading


def is_renamed(pair, decider):
    return pair.title_veto == 1 and not pair.same_site and 0 < decider.renamed_tape_min <= pair.tape_score


def title_holds(pair, decider):
    if pair.same_site:
        return pair.titles_apart == 1 and not is_other_view(pair, decider)
    return pair.title_veto == 1 and not is_renamed(pair, decider)


def veto(by, pair, decider):
    return refused(by, pair.tape_score, demanded(pair, decider, pair.title_veto == 2)[0])


def one_article(pair, decider):
    if not decider.syndicated_tokens_min or pair.heading_veto == 1 or not pair.article_run:
        return False
    if pair.same_site and decider.rule_version < 2:
        return False
    run, share = pair.article_run, decider.syndicated_share_min
    if pair.common_names < decider.syndicated_words_min or 2 * pair.common_names < pair.fewest_names:
        return False
    if run < share * pair.article_a or run < share * pair.article_b:
        return False
    if run * 2**pair.article_level < decider.syndicated_tokens_min:
        return False
    fewer, more = sorted((pair.article_tokens_a, pair.article_tokens_b))
    return fewer >= decider.length_share_min * more


def syndicated(pair, decider, siblings):
    if not one_article(pair, decider):
        return None
    share = pair.article_run / max(pair.article_a, pair.article_b)
    ruling = "same_content", "content: syndicated", (0, share), share, decider.syndicated_share_min
    if title_holds(pair, decider):
        return ruling
    whole = near(pair, decider)
    if accepts(whole or main_content(pair, decider, siblings)) or siblings_veto(pair, decider, siblings) is not None:
        return None
    return ruling


def names(pair, decider):
    if one_article(pair, decider):
        return None
    if title_holds(pair, decider):
        return veto("title veto", pair, decider)
    retitled = pair.titles_apart == 2 or (pair.same_words and not (pair.same_title and pair.same_letters))
    if pair.same_site and not pair.same_tail and retitled and not is_other_view(pair, decider):
        return veto("retitled", pair, decider)
    if pair.same_site:
        apart = pair.heading_veto == 1 or (pair.heading_veto == 2 and not pair.same_tail)
    else:
        fewest = min(pair.content_tokens_a, pair.content_tokens_b)
        contents = fewest >= decider.thin_tokens and pair.content_score < decider.content_tape_min
        apart = pair.heading_veto == 1 and (pair.same_words or (not pair.same_tail and contents))
    apart = apart and not claim_one_page(pair, decider) and not is_own_query(pair, decider)
    return veto("heading veto", pair, decider) if apart else None


def path(pair, decider):
    if one_article(pair, decider):
        return None
    if not pair.same_site or pair.own_urls or one_address(pair) or pair.same_but_sessions:
        return None
    if pair.records == 1 and pair.named and pair.same_naming and pair.same_title:
        stamp = is_stamp(pair, decider, decider.stamp_words_max // 2)
        return None if stamp else veto("record", pair, decider)
    if not pair.path_veto or pair.tape_score >= decider.path_tape_max:
        return None
    stamp = is_stamp(pair, decider, decider.stamp_words_max)
    if pair.path_veto == 1:
        return None if stamp else veto("path", pair, decider)
    if not pair.named:
        return None if pair.same_tail else veto("path", pair, decider)
    apart = pair.path_veto == 2 and not (pair.same_words or pair.same_tail or stamp)
    return veto("path", pair, decider) if apart and pair.tape_score < decider.strict_tape_min else None


def siblings_veto(pair, decider, siblings):
    if not pair.same_naming or not crowded(pair, decider, siblings):
        return None
    if same_but_own_urls(pair, decider) or (pair.same_site and one_address(pair)):
        return None
    if not pair.same_site:
        return None if pair.same_tail else veto("siblings", pair, decider)
    paths_tell = 2 * siblings.moved > siblings.others + siblings.alike
    at_home = pair.same_but_sessions or pair.same_tail or (pair.same_place and paths_tell)
    noise = at_home and is_noise(pair, decider)
    return None if noise or is_stamp(pair, decider, decider.stamp_words_max) else veto("siblings", pair, decider)


def crowded(pair, decider, siblings):
    pages = siblings.others + siblings.alike
    if pair.same_title and 2 * siblings.retitled > pages:
        return False
    if pages < decider.alike_min and not pair.named and pair.tape_score >= decider.short_tape_min:
        return False
    return siblings.alike >= decider.alike_min or (not pair.same_tail and siblings.others > 0)


def elsewhere(pair, decider):
    if one_article(pair, decider):
        return None
    if not (pair.same_site and pair.same_naming and pair.named):
        return None
    if pair.same_tail or pair.same_place:
        long = min(pair.content_tokens_a, pair.content_tokens_b) >= decider.short_tokens
        if (
            decider.rule_version == 1
            or not (long and pair.same_title)
            or pair.content_score >= decider.content_tape_min
        ):
            return None
    if pair.tape_score >= decider.strict_tape_min or one_address(pair) or pair.same_but_sessions:
        return None
    if same_but_own_urls(pair, decider) or is_stamp(pair, decider, decider.stamp_words_max):
        return None
    return refused("elsewhere", pair.tape_score, decider.strict_tape_min)


def near(pair, decider):
    ruling = by_tape(pair, decider, pair.title_veto == 2)
    if accepts(ruling) and is_renamed(pair, decider):
        kind, _, rank, score, demand = ruling
        return kind, "renamed", rank, score, max(demand, decider.renamed_tape_min)
    if accepts(ruling) and is_own_query(pair, decider):
        kind, _, *numbers = ruling
        return kind, "own query", *numbers
    return ruling


def same_content(pair, decider, siblings):
    if claim_one_page(pair, decider):
        share = contained(pair)
        return "same_content", "canonical", (1, share), share, decider.content_tape_min
    return main_content(pair, decider, siblings)


def main_content(pair, decider, siblings):
    if pair.same_site and not (pair.same_naming or one_address(pair)):
        return None
    if pair.same_site and decider.rule_version >= 2 and contained(pair) < 0.85:
        pages = siblings.others + siblings.alike
        if pages > 1 or not pair.same_tail or pair.records == 1:
            return None
    return by_content(pair, decider)


def contained(pair):
    common = pair.tape_score * (pair.tape_a + pair.tape_b) / (1.0 + pair.tape_score)
    return min(1.0, common / max(1, min(pair.tape_a, pair.tape_b)))


def accepts(ruling):
    return ruling is not None and ruling[0] is not None


def added(pair, decider, siblings):
    if claim_one_page(pair, decider):
        return None
    whole = near(pair, decider)
    if whole is None:
        long = padded(pair.content_tokens_a, pair.content_tokens_b, decider)
        return veto("length", pair, decider) if long and accepts(main_content(pair, decider, siblings)) else None
    if not accepts(whole):
        return None
    if padded(pair.tokens_a, pair.tokens_b, decider):
        return veto("length", pair, decider)
    if pair.same_owner or decider.added_max >= 1 or share_added(pair) <= decider.added_max:
        return None
    score, demand = veto("added", pair, decider)[3:]
    if decider.rule_version == 1:
        return refused("added", score, demand)
    return "same_content", "adds", (1, score), score, demand


def padded(a, b, decider):
    return min(a, b) < decider.length_share_min * max(a, b)


def share_added(pair):
    common = pair.tape_score * (pair.tape_a + pair.tape_b) / (1.0 + pair.tape_score)
    longer = max(pair.tape_b / max(1, pair.tape_a), pair.tokens_b / max(1, pair.tokens_a))
    return longer - min(1.0, common / max(1, pair.tape_a))


def default_rule(pair, decider, siblings):
    return (
        thin(pair, decider)
        or syndicated(pair, decider, siblings)
        or names(pair, decider)
        or path(pair, decider)
        or siblings_veto(pair, decider, siblings)
        or elsewhere(pair, decider)
        or added(pair, decider, siblings)
        or near(pair, decider)
        or same_content(pair, decider, siblings)
        or unlike(pair, decider)
    )


# ---- any rule, and numbers of sites ---------------------------------------------------------------------------------


def decide(pair, decider, siblings):
    if decider.rule == "verified":
        return default_rule(pair, decider, siblings)
    return tapes_rule(pair, decider) if decider.rule == "tape" else by_numbers(decider.rule, pair, decider)


def decide_of_sites(sites, pair, decider, siblings):
    """sites: the names of both pages' sites."""
    overrides = [decider.sites[site] for site in sites if site in decider.sites]
    raised = max((override.tape_min or 0.0 for override in overrides), default=0.0)
    if any(override.never_merge for override in overrides):
        return refused("never_merge", *decide(pair, decider, siblings)[3:])
    plain = plain_demand(pair, decider)
    if raised <= plain:
        return decide(pair, decider, siblings)
    names = ("tape_min", "two_sites_tape_min", "short_tape_min", "strict_tape_min")
    ruling = decide(pair, replace(decider, **{name: max(getattr(decider, name), raised) for name in names}), siblings)
    if ruling[0] == "same_content" and plain <= pair.tape_score < raised:
        return refused("site", pair.tape_score, raised)
    return ruling


def nearness(pair, decider):
    if decider.rule in ("tape", "verified"):
        return pair.tape_score
    if decider.rule == "simhash64":
        return pair.simhash64_agree
    by_c = decider.rule == "simhash" or (decider.rule == "site-split" and not pair.same_hen_site)
    return pair.c_similarity if by_c else pair.b_similarity


def kept_apart(pair, ruling, decider):
    return decider.rule in ("tape", "verified") and ruling[0] is None and pair.tape_score >= plain_demand(pair, decider)


# ---- pages of equal words -------------------------------------------------------------------------------------------

#: Signs that only separate the words of a URL.
DIVIDING = frozenset(" -_.,;~")


def one_page(header, other, decider):
    """Whether two pages with equal words are one page. `operator*` and `operator+` of one site are not."""
    if decider.rule != "verified" or header.site != other.site or header.opaque:
        return True
    if header.titling == other.titling and header.title == other.title:
        return signs(header.url) == signs(other.url)
    return False


def signs(url):
    """The signs in the last segment of a URL's route, else of its path."""
    parts = urlsplit(url)
    segment = unquote(parts.fragment.partition("?")[0] or parts.path).rpartition("/")[2]
    return tuple(sign for sign in segment if not sign.isalnum() and sign not in DIVIDING)
