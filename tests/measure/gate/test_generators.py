"""The generators: seeded, of the requested size, with distinct URLs and items."""

from collections import Counter
from random import Random

import pytest

from neardup.text.one_page_html import text_of
from tests import whole
from tests.measure.gate.language import Language
from tests.measure.gate.test_gate import GATES, Gate, _name


@pytest.mark.parametrize("gate", whole.first([pytest.param(gate, id=_name(gate)) for gate in GATES], 8))
def test_streams(gate: Gate) -> None:
    assert gate.generate(40, 3) == gate.generate(40, 3)
    assert gate.generate(40, 3) != gate.generate(40, 4)
    samples = gate.generate(400, 3)
    assert len(samples) == 400
    assert len({sample.url for sample in samples}) == 400
    assert len({sample.kind for sample in samples}) == 1
    assert len({sample.item for sample in samples}) <= 385, "no repeats to find"

    owners: dict[str, str] = {}
    texts = [text_of(sample.html) for sample in samples]
    for sample, each in zip(samples, texts, strict=True):
        # No rule could tell items of one text apart.
        assert owners.setdefault(each, sample.item) == sample.item

    sizes = sorted(len(each.split()) for each in texts)
    assert sizes[0] >= 40
    assert sizes[len(sizes) // 2] >= 150
    assert sizes[-1] <= 1700


def test_words_follow_zipf() -> None:
    language = Language(1)
    counts = Counter(language.draw(Random(1), 100_000))
    assert len(set(language.words)) == 20_000
    first, tenth, hundredth = (counts[language.words[rank]] for rank in (0, 9, 99))
    assert first / tenth == pytest.approx((10 + 1.7) / 2.7, rel=0.2)
    assert tenth / hundredth == pytest.approx((100 + 1.7) / (10 + 1.7), rel=0.3)
