"""What the default rule makes of names and siblings, from its description, with its usual numbers: why two pages are
about different things. A pair and its siblings are plain mappings of the fields' names to numbers.
"""


def noise(pair):
    """At most two places, as one stamp above and one below; a word or two, and any figures."""
    return pair["gaps"] < 3 and pair["loose_words"] < 9


def crowded(pair, siblings):
    """Whether so many pages of the site go by the pair's common name that it tells nothing."""
    if not pair["same_naming"]:
        return False
    pages = siblings["others"] + siblings["alike"]
    if pair["same_title"] and siblings["retitled"] > pages / 2:
        return False
    if not pair["named"] and pages < 4 and pair["tape_score"] >= 0.85:
        return False
    return siblings["alike"] > 3 or (siblings["others"] > 0 and not pair["same_tail"])


def one_address(pair, siblings):
    """Whether the URLs allow that the two are one page."""
    pages = siblings["others"] + siblings["alike"]
    reasons = [
        pair["same_but_sessions"],
        pair["same_place"] and siblings["moved"] > pages / 2,
        pair["same_tail"],
    ]
    return any(reasons)


def but_urls(pair):
    """Whether pages that print their own URLs are the same but for these and a stamp at the end, tapes being whole."""
    stamp = pair["gaps"] == 1 and pair["end_differs"]
    return pair["own_urls"] and pair["tape_level"] == 0 and not pair["loose_words"] and (not pair["gaps"] or stamp)


def stamp(pair, most=4):
    """Whether what differs is in forms: nothing else, or no more words than figures, and four at most."""
    if pair["same_values"] >= 0:
        if not pair["same_values"] or pair["gap_digits"] > 8:
            return False
        if pair["same_rest"]:
            return True
    inner = pair["content_score"] == 1 and min(pair["content_tokens_a"], pair["content_tokens_b"]) >= 20
    few = pair["gap_digits"] < 3 * pair["gaps"] if pair["gaps"] != 1 else pair["gap_digits"] < 2
    if few and not pair["same_tail"] and not inner:
        return False
    words = min(most, pair["gap_digits"])
    return pair["gaps"] > 0 and not pair["loose_words"] and pair["gap_words"] <= words and noise(pair)


def placed(pair):
    """The step that keeps pages apart for their paths; empty if none does."""
    if any(pair[name] for name in ("own_urls", "same_address", "same_canonical", "same_but_sessions")):
        return ""
    if pair["records"] == 1 and pair["named"] and pair["same_naming"] and pair["same_title"]:
        return "" if stamp(pair, 2) else "record"
    if pair["tape_score"] >= 0.978:
        return ""
    wordless = pair["path_veto"] in (2, 3) and not pair["named"] and not pair["same_tail"]
    titled = pair["path_veto"] == 2 and not (pair["same_words"] or pair["same_tail"]) and pair["tape_score"] < 0.95
    titled = titled and pair["named"]
    values = pair["path_veto"] == 1
    return "path" if wordless or ((values or titled) and not stamp(pair)) else ""


def elsewhere(pair):
    """Whether pages of one name lie at two places, and are not the same but for a stamp."""
    here = ("same_tail", "same_place", "same_address", "same_canonical", "same_but_sessions")
    apart = pair["same_naming"] and pair["named"] and not any(pair[name] for name in here)
    return apart and pair["tape_score"] < 0.95 and not but_urls(pair) and not stamp(pair)


def syndicated(pair):
    """Whether two hosts have one article: a stretch of 100 tokens, half of each, one headline, and neither is twice
    as long.
    """
    common, lengths = pair["article_run"], sorted((pair["article_a"], pair["article_b"]))
    tokens = sorted((pair["article_tokens_a"], pair["article_tokens_b"]))
    text = common * 2 ** pair["article_level"] >= 100 and 2 * common >= lengths[1]
    text = text and 2 * tokens[0] >= tokens[1]
    headline = pair["common_names"] >= 3 and 2 * pair["common_names"] >= pair["fewest_names"]
    return text and headline and pair["heading_veto"] != 1


def claim_one_page(pair):
    """Whether two pages of one owner name one canonical URL, and 74% of the shorter tape is in the other one."""
    tapes = pair["tape_a"], pair["tape_b"]
    common = pair["tape_score"] * sum(tapes) / (1 + pair["tape_score"])
    said = pair["same_owner"] and pair["same_canonical"] and min(pair["tokens_a"], pair["tokens_b"]) >= 50
    return said and common >= 0.74 * min(tapes)


def refused_elsewhere(pair, siblings):
    """The step that keeps a pair of two sites apart for its names; empty if none does."""
    if pair["title_veto"] == 1 and pair["tape_score"] < 0.93:
        return "title veto"
    inner = min(pair["content_tokens_a"], pair["content_tokens_b"]) >= 20 and pair["content_score"] < 0.74
    if pair["heading_veto"] == 1 and (pair["same_words"] or (inner and not pair["same_tail"])):
        return "heading veto"
    if not pair["same_tail"] and crowded(pair, siblings) and not but_urls(pair):
        return "siblings"
    return ""


def other_view(pair):
    """Whether pages of one site with other titles are views or releases of one page."""
    one = pair["same_address"] or pair["same_canonical"]
    released = pair["same_tail"] and pair["path_veto"] == 0 and pair["records"] == 0
    return (one or released) and pair["same_heading"] and max(pair["tape_score"], pair["content_score"]) >= 0.95


def homely(pair, siblings):
    """Whether pages of one site and one name are one page for all its others."""
    if pair["same_address"] or pair["same_canonical"] or but_urls(pair) or stamp(pair):
        return True
    return one_address(pair, siblings) and noise(pair)


def refused(pair, siblings):
    """The step that keeps a pair apart for its names; empty if none does."""
    if not pair["same_site"]:
        return refused_elsewhere(pair, siblings)
    if claim_one_page(pair):
        return ""
    if syndicated(pair):
        crowd = crowded(pair, siblings) and not (pair["titles_apart"] == 1 and not other_view(pair))
        return "siblings" if crowd and not homely(pair, siblings) else ""
    view = other_view(pair)
    if pair["titles_apart"] == 1 and not view:
        return "title veto"
    written = pair["same_words"] and not (pair["same_title"] and pair["same_letters"])
    if (pair["titles_apart"] == 2 or written) and not pair["same_tail"] and not view:
        return "retitled"
    if pair["heading_veto"] == 1 or (pair["heading_veto"] and not pair["same_tail"]):
        return "heading veto"
    if path := placed(pair):
        return path
    if crowded(pair, siblings) and not homely(pair, siblings):
        return "siblings"
    return "elsewhere" if elsewhere(pair) else ""
