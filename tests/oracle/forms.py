"""Which words of a text stand in a form, in plain Python: the slow twin of `neardup.kernels.forms`.

A text is lower-case words and what stands between them: gaps[i] is between words i and i + 1. Words of months,
units and nouns are English here.
"""

import re


def _set(words):
    return frozenset(words.split())


MONTHS = _set(
    """january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec"""
)
UNSURE = {"may", "march", "mar"}
UNITS = _set(
    """second seconds sec minute minutes min mins hour hours day days week weeks month months year years h m s"""
)
TIMES = {"ms", "s", "sec", "second", "seconds"}
NOUNS = _set("users guests members visitors visits views hits queries replies comments posts downloads online reads")
ONE = _set("user guest member visitor visit view hit query reply comment post download read result")
YEAR = r"(?:19|20)\d\d"


def marks(words, gaps):
    """For each word: "form", "relative" or ""."""
    out = [""] * len(words)

    def near(i):
        return 0 <= i < len(gaps) and len(gaps[i]) <= 64 and sum(char > " " for char in gaps[i]) <= 2

    def word(i, after):
        """The word i if it is near its neighbour before (after=True) or behind, and has no digit."""
        good = near(i - 1) if after else near(i)
        return words[i] if good and not re.search(r"\d", words[i]) else ""

    def tight(i):
        """The text from word i on, as far as single signs join its words."""
        text = words[i]
        while i < len(gaps) and len(gaps[i]) == 1:
            text += gaps[i] + words[i + 1]
            i += 1
        return text

    def put(first, last, what="form"):
        out[first : last + 1] = [what] * (last + 1 - first)

    for i, here in enumerate(words):
        if out[i] or not re.search(r"\d", here):
            continue
        text = tight(i)
        if found := re.match(r"(?:\d\d?|\d\dt\d\d):[0-5]\d(?!\d)(:[0-5]\d(?!\d))?", text):
            put(i, i + (2 if found[1] else 1))
        elif numeric_date(text):
            put(i, i + 2)
        elif re.match(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])", text):
            for k in range(i, i + 5):
                if re.search(r"\d", words[k]):
                    out[k] = "form"
        elif re.fullmatch(r"\d+", here):
            number = re.match(r"\d+(?:[.,]\d+(?![0-9a-z])){0,3}", text)[0]
            last = i + len(re.findall(r"[.,]", number))
            in_words(words, i, last, word, put, near)
        elif re.fullmatch(r"[0-9a-f]{8,}", here):
            out[i] = "form"
        elif found := re.fullmatch(r"(\d+)([a-z]+)", here):
            if found[2] in UNITS and word(i + 1, True) == "ago":
                put(i, i + 1, "relative")
            elif found[2] in TIMES | {"am", "pm"}:
                out[i] = "form"
            elif found[2] in ("st", "nd", "rd", "th") and len(found[1]) <= 2:
                dated(words, i, word, put, near)
    return out


def numeric_date(text):
    def is_day(one, other):
        return 1 <= min(one, other) <= 12 and max(one, other) <= 31

    if found := re.match(rf"{YEAR}([-/.])(\d\d?)\1(\d\d?)(?:t\d\d)?(?![0-9a-z])", text):
        if "t" in found[0] and len(found[3]) != 2:
            return False
        return is_day(int(found[2]), int(found[3]))
    if found := re.match(rf"(\d\d?)([-/.])(\d\d?)\2({YEAR}|\d\d)(?![0-9a-z])", text):
        return is_day(int(found[1]), int(found[3])) and not (found[2] == "." and len(found[4]) == 2)
    return False


def in_words(words, i, last, word, put, near):
    unit = last + 1
    for _ in range(3):
        if word(unit, True) not in UNITS:
            break
        if word(unit + 1, True) == "ago":
            return put(i, unit + 1, "relative")
        if not (near(unit) and words[unit + 1].isdigit()):
            break
        unit += 2
    after, before = word(last + 1, True), word(i - 1, False)
    if after in TIMES | ONE | NOUNS | {"am", "pm"}:
        return put(i, last + 1)
    if before in NOUNS:
        return put(i - 1, last)
    return dated(words, i, word, put, near) if last == i else None


def dated(words, i, word, put, near):
    after, before = word(i + 1, True), word(i - 1, False)
    if re.fullmatch(YEAR, words[i]):
        return put(i - 1, i) if before in MONTHS else None
    if len(re.match(r"\d+", words[i])[0]) > 2:
        return None
    first, last, month = (i, i + 1, after) if after in MONTHS else (i - 1, i, before)
    if month not in MONTHS:
        return None
    if near(last) and re.fullmatch(YEAR, words[last + 1]):
        return put(first, last + 1)
    return put(first, last) if month not in UNSURE else None
