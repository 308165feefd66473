"""A made-up language: words whose frequencies follow Zipf's law, and the texts and names that are made of them."""

from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from random import Random

_ONSETS = (*"bcdfghjklmnprstvwz", "bl", "br", "ch", "dr", "fl", "gr", "pl", "pr", "qu", "sh", "sk", "st", "th", "tr")
_VOWELS = (*"aeiou", "ai", "ea", "ou")
_ENDS = ("", "", *"nrstlm", "nd", "ck", "st")


def _word(random: Random, syllables: int) -> str:
    return "".join(random.choice(_ONSETS) + random.choice(_VOWELS) for _ in range(syllables)) + random.choice(_ENDS)


@cache
def _words(seed: int, size: int) -> Sequence[str]:
    random = Random(seed)
    words: dict[str, None] = {}
    while len(words) < size:
        shortest = 1 if len(words) < 150 else 2 if len(words) < 4000 else 3
        words[_word(random, random.randint(shortest, shortest + 1))] = None
    return tuple(words)


@cache
def _weights(size: int) -> Sequence[float]:
    return tuple(accumulate(1 / (rank + 2.7) ** 1.05 for rank in range(size)))


class Language:
    """20,000 words, the frequent ones short; weight of the word of rank r: 1 / (r + 2.7) ** 1.05 (Mandelbrot)."""

    def __init__(self, seed: int, size: int = 20_000) -> None:
        self.words = _words(seed, size)
        self._common, self._rare = self.words[100:6000], self.words[2000:]
        self._weights = _weights(size)

    def draw(self, random: Random, count: int) -> list[str]:
        """`count` words as they occur in running text."""
        return random.choices(self.words, cum_weights=self._weights, k=count)

    def text(self, random: Random, count: int) -> str:
        """`count` words as sentences of 6 to 22 words."""
        words = self.draw(random, count)
        sentences, at = [], 0
        while at < count:
            sentence = words[at : at + random.randint(6, 22)]
            at += len(sentence)
            if len(sentence) > 9:
                sentence[len(sentence) // 2] += ","
            sentences.append(" ".join(sentence).capitalize() + ".")
        return " ".join(sentences)

    def paragraphs(self, random: Random, count: int) -> str:
        """HTML: `count` words in paragraphs of 30 to 120 words, some words marked up."""
        out = []
        while count > 0:
            size = min(count, random.randint(30, 120))
            count -= size
            text = self.text(random, size)
            if random.random() < 0.3:
                first, _, rest = text.partition(" ")
                text = f"<b>{first}</b> {rest}"
            out.append(f"<p>{text}</p>")
        return "\n".join(out)

    def label(self, random: Random, most: int = 3) -> str:
        """A link's or a field's label: 1 to `most` words from the 6,000 most frequent."""
        return " ".join(random.choices(self._common, k=random.randint(1, most))).capitalize()

    def topic(self, random: Random, least: int = 3, most: int = 8) -> str:
        """A headline's words: frequent and rare ones mixed, as headlines are."""
        count = random.randint(least, most)
        rare = random.choices(self._rare, k=count - count // 2)
        words = rare + self.draw(random, count // 2)
        random.shuffle(words)
        return " ".join(words).capitalize()

    def name(self, random: Random) -> str:
        """A proper name: not a word of the language (at least hardly ever)."""
        return _word(random, random.randint(2, 3)).capitalize()
