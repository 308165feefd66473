"""What the default rule makes of names and siblings, from its description, with its usual numbers: why two pages are
about different things. A pair and its siblings are plain mappings of the fields' names to numbers.
"""


def noise(pair):
    """At most two places, as one stamp above and one below; a word or two, and digits."""
    return pair["gaps"] < 3 and pair["loose_words"] < 9 and pair["gap_digits"] < 25


def crowded(pair, siblings):
    """Whether so many pages of the site go by the pair's common name that it tells nothing."""
    if not pair["same_naming"]:
        return False
    pages = siblings["others"] + siblings["alike"]
    if pair["same_title"] and siblings["retitled"] > pages / 2:
        return False
    return siblings["alike"] > 15 or (siblings["others"] > 0 and not pair["same_tail"])


def one_address(pair, siblings):
    """Whether the URLs allow that the two are one page."""
    pages = siblings["others"] + siblings["alike"]
    reasons = [
        pair["same_address"],
        pair["same_canonical"],
        pair["same_but_sessions"],
        pair["same_place"] and siblings["moved"] > pages / 2,
        pair["same_place"] and not pair["same_tail"] and siblings["others"] < 2,
        pair["same_tail"] and siblings["alike"] < 64,
    ]
    return any(reasons)


def but_urls(pair):
    """Whether pages that print their own URLs are the same but for these and a stamp at the end, tapes being whole."""
    stamp = pair["gaps"] == 1 and pair["end_differs"] and pair["gap_digits"] < 25
    return pair["own_urls"] and pair["tape_level"] == 0 and not pair["loose_words"] and (not pair["gaps"] or stamp)


def stamp(pair):
    """Whether what differs is seen, and has no more words than figures, and four at most."""
    return (
        pair["gaps"] > 0 and not pair["loose_words"] and pair["gap_words"] <= min(4, pair["gap_digits"]) and noise(pair)
    )


def elsewhere(pair):
    """Whether pages of one name lie at two places, and are not the same but for a stamp."""
    here = ("same_tail", "same_place", "same_address", "same_canonical", "same_but_sessions")
    apart = pair["same_naming"] and pair["named"] and not any(pair[name] for name in here)
    return apart and pair["tape_score"] < 0.95 and not but_urls(pair) and not stamp(pair)


def record(pair):
    """Whether figures differ all over two pages of one name."""
    return pair["gaps"] >= 6 and pair["gap_digits"] >= pair["gaps"] >= pair["loose_words"] and pair["same_naming"]


def refused_elsewhere(pair, siblings):
    """The step that keeps a pair of two sites apart for its names; empty if none does."""
    if pair["title_veto"] == 1 and pair["tape_score"] < 0.93:
        return "title veto"
    inner = min(pair["content_tokens_a"], pair["content_tokens_b"]) >= 20 and pair["content_score"] < 0.74
    if pair["heading_veto"] == 1 and (pair["same_words"] or (inner and not pair["same_tail"])):
        return "heading veto"
    if not pair["same_tail"] and record(pair):
        return "figures"
    if not pair["same_tail"] and crowded(pair, siblings) and not but_urls(pair):
        return "siblings"
    return ""


def refused(pair, siblings):
    """The step that keeps a pair apart for its names; empty if none does."""
    if not pair["same_site"]:
        return refused_elsewhere(pair, siblings)
    one = pair["same_address"] or pair["same_canonical"]
    view = one and pair["same_heading"] and max(pair["tape_score"], pair["content_score"]) >= 0.95
    if pair["title_veto"] == 1 and not view:
        return "title veto"
    if pair["same_words"] and not (pair["same_title"] and pair["same_letters"]) and not pair["same_tail"]:
        return "retitled"
    if pair["heading_veto"] == 1 or (pair["heading_veto"] and not pair["same_tail"]):
        return "heading veto"
    if record(pair) and not pair["same_place"]:
        return "figures"
    inner = min(pair["content_tokens_a"], pair["content_tokens_b"]) >= 20 and pair["content_score"] < 0.3
    away = not any(pair[name] for name in ("same_tail", "same_place", "same_address", "same_canonical"))
    if inner and away and pair["same_naming"] and pair["tape_score"] < 0.95:
        return "contents"
    home = but_urls(pair) or stamp(pair) or (one_address(pair, siblings) and noise(pair))
    if pair["path_veto"] == 1 and not one and not pair["own_urls"]:
        return "path"
    if crowded(pair, siblings) and not home:
        return "siblings"
    return "elsewhere" if elsewhere(pair) else ""
