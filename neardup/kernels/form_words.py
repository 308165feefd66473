"""Words that make a form of the figures beside them: months, units of time, nouns of counters, `ago`.

The words are part of the scheme: another list needs a new version of it. They are folded as tokens are, and have at
most 16 bytes.
"""

import numpy as np

from neardup.kernels import lean_kernel
from neardup.kernels.bits import word_at

U64 = np.uint64
#: What a word makes of the figure beside it, as bits. MONTH: a date. MAY: a date with a year alone, since the word has
#: other meanings. UNIT: a relative time, if AGO stands behind it, or BEFORE (in French Y and A) before the figure.
#: SECONDS: a duration. COUNTED: a counter, if the word is behind the figure; COUNTER: on either side. HALF_DAY: a
#: clock. DAY: a date, if nothing stands between figure and word.
MONTH, MAY, UNIT, AGO, BEFORE, Y, A, SECONDS, COUNTED, COUNTER, HALF_DAY, DAY = (1 << bit for bit in range(12))
WORD_BYTES_MAX = 16
_SLOTS = 1024
_MULTIPLIER = 0x9E3779B97F4A7C15

# English, German, French, Spanish, Italian, Portuguese, Dutch.
_WORDS = {
    MONTH: """
        january february april june july august september october november december
        jan feb apr jun jul aug sep sept oct nov dec
        januar jänner februar märz mai juni juli oktober dezember mär okt dez
        janvier février avril juin juillet août septembre octobre novembre décembre janv févr avr juil déc
        enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre ene dic
        gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
        janeiro fevereiro março maio junho julho setembro outubro novembro dezembro fev abr
        januari februari maart mei augustus mrt
    """,
    MAY: "may march mar mars",
    UNIT: """
        second seconds sec secs minute minutes min mins hour hours hr hrs day days week weeks month months year years
        sekunde sekunden minuten stunde stunden std tag tage tagen woche wochen monat monate monaten jahr jahre jahren
        seconde secondes heure heures jour jours semaine semaines mois an ans année années
        segundo segundos minuto minutos hora horas día días dia dias semana semanas mes meses año años
        secondo secondi minuti ora ore giorno giorni settimana settimane mese mesi anno anni
        mês ano anos seconden minuut uur dag dagen weken maand maanden jaar
        s m h d w mo
    """,
    SECONDS: """
        s ms sec secs second seconds sekunde sekunden seconde secondes segundo segundos secondo secondi seconden
    """,
    # "1 user", but not "user 1", which names a user
    COUNTED: "user guest member visitor visit view hit query reply comment post download read result like follower",
    COUNTER: """
        users guests members visitors visits views hits queries replies comments posts downloads online reads times
        results likes followers subscribers
    """,
    AGO: "ago fa geleden",
    BEFORE: "vor hace há",
    Y: "y",
    A: "a",
    HALF_DAY: "am pm",
    DAY: "年 月 日",
}


def _halves(word: str) -> tuple[int, int]:
    data = word.encode().ljust(WORD_BYTES_MAX, b"\0")
    assert len(data) == WORD_BYTES_MAX, word
    return int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")


def _table() -> tuple[np.ndarray, np.ndarray]:
    """Open addressing by the hash of `_slot`: both halves of each word, uint64[slots, 2], and its bits."""
    kinds: dict[str, int] = {}
    for kind, words in _WORDS.items():
        for word in words.split():
            kinds[word] = kinds.get(word, 0) | kind
    halves, bits = np.zeros((_SLOTS, 2), np.uint64), np.zeros(_SLOTS, np.int16)
    for word, kind in kinds.items():
        low, high = _halves(word)
        slot = ((low ^ high * 3) * _MULTIPLIER & 0xFFFFFFFFFFFFFFFF) >> 54
        while bits[slot]:
            slot = (slot + 1) % _SLOTS
        halves[slot], bits[slot] = (low, high), kind
    return halves, bits


_HALVES, _BITS = _table()


@lean_kernel
def eight_bytes(text, start, end):
    """text[start:end] as a little-endian word, of its first eight bytes; whatever follows counts as zeros.

    start < end.
    """
    length = min(end - start, 8)
    if start + 8 <= text.size:
        unread = U64(64 - 8 * length)
        return word_at(text, start) << unread >> unread
    word = U64(0)
    for i in range(length):
        word |= U64(text[start + i]) << U64(8 * i)
    return word


@lean_kernel
def kind_of_word(text, start, end):
    """The bits of the word text[start:end], which is folded; 0 for a word that makes no form."""
    length = end - start
    if length < 1 or length > WORD_BYTES_MAX:
        return np.int64(0)
    low = eight_bytes(text, start, end)
    high = eight_bytes(text, start + 8, end) if length > 8 else U64(0)
    slot = ((low ^ (high * U64(3))) * U64(_MULTIPLIER)) >> U64(54)
    while _BITS[slot] != 0:
        if _HALVES[slot, 0] == low and _HALVES[slot, 1] == high:
            return np.int64(_BITS[slot])
        slot = (slot + U64(1)) & U64(_SLOTS - 1)
    return np.int64(0)
