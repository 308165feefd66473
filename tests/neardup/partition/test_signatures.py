"""Signatures and sentences, against a literal restatement with hashlib."""

import random
import re

import numpy as np
import pytest

from neardup.kernels import signing
from neardup.partition import Parameters, sentences, signatures
from neardup.partition.signatures import signatures_of
from neardup.partition.texts import passages, weight, width
from tests.neardup.hostile import JIT_OFF, needs_jit
from tests.oracle import partition as oracle

pytestmark = pytest.mark.filterwarnings("ignore:overflow")

WORDS = ["wool", "felt", "yarn", "loom", "warp", "weft", "spindle", "dye", "carding", "fleece", "shears", "bobbin"]


def text_of(count: int, seed: int = 0) -> str:
    """A text of so many different sentences."""
    rng = random.Random(seed)
    return "\n".join(f"{number} {' '.join(rng.choices(WORDS, k=rng.randint(3, 9)))}." for number in range(count))


def numbers(made: np.ndarray) -> list[int]:
    return [int(high) << 64 | int(low) for high, low in made]


@pytest.mark.kernel
@pytest.mark.parametrize("count", [0, 3, 4, 5, 20] if JIT_OFF else [0, 3, 4, 5, 12, 28, 60, 150])
def test_signatures_are_the_oracles(count):
    parameters = Parameters(passage_words=0)
    text = text_of(count, count)
    found = [sentence for sentence, _ in sentences(text, parameters)]
    assert numbers(signatures(text, parameters)) == oracle.signatures(found)


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("rotations", "subsets", "smallest"), [(1, 1, 1), (1, 7, 4), (2, 7, 4), (16, 1, 3), (3, 31, 2)]
)
def test_other_numbers_are_the_oracles(rotations, subsets, smallest):
    parameters = Parameters(rotations=rotations, subsets=subsets, smallest=smallest, passage_words=0)
    text = text_of(40, 7)
    found = [sentence for sentence, _ in sentences(text, parameters)]
    made = numbers(signatures(text, parameters))
    assert made == oracle.signatures(found, rotations, subsets, smallest)
    assert made


@needs_jit
def test_a_document_has_up_to_112_signatures_and_their_order_of_sentences_does_not_count():
    text = text_of(200, 3)
    made = numbers(signatures(text, Parameters()))
    assert len(made) == 112
    assert numbers(signatures("\n".join(reversed(text.split("\n"))), Parameters())) == made


@needs_jit
def test_a_changed_sentence_leaves_most_signatures():
    lines = text_of(100, 5).split("\n")
    before = numbers(signatures("\n".join(lines), Parameters()))
    lines[50] = "something else was written here altogether."
    kept = set(before) & set(numbers(signatures("\n".join(lines), Parameters())))
    assert 50 < len(kept) < 112


@pytest.mark.kernel
def test_a_sum_of_zero_gives_a_zero():
    prints = np.array([[(1 << 64) - 1, 0], [0, 0]], np.uint64)
    out = np.empty((1, 2), np.uint64)
    assert signing.sign(prints, np.array([5, 5]), 1, 1, 2, out) == 1
    assert out.tolist() == [[0, 0]]
    signing.sign(prints, np.array([6, 5]), 1, 1, 2, out)
    assert out.tolist() == [[(1 << 64) - 1, 0]]


def test_too_few_sentences_give_no_signature():
    assert len(signatures(text_of(3), Parameters())) == 0
    assert len(signatures_of([], Parameters())) == 0
    assert len(signatures("", Parameters())) == 0


def found_in(text: str, bytes_: int = 16) -> list[str]:
    return [sentence for sentence, _ in sentences(text, Parameters(sentence_bytes=bytes_))]


def test_sentences_end_at_punctuation_and_blocks():
    text = "The first sentence is this one. The second one, of version 3.5.1, follows: here!\na block is a sentence"
    assert found_in(text) == ["The first sentence is this one", "a block is a sentence"]
    more = ["The first sentence is this one", "The second one", "of version 3.5.1", "a block is a sentence"]
    assert found_in(text, 13) == more
    assert found_in(text + "\nthe second one, The second one", 13) == [*more, "the second one"]


@pytest.mark.parametrize(
    "text",
    [
        "我们在这里写一个句子,|这是第二个很长的句子。|第三个也是很长的句子!",
        "我们在这里写一个句子，|这是第二个很长的句子；|第三个也是很长的句子！",
        "これは最初の文章です。|短い。こちらは二番目の文章です",
        "이것은 첫 번째 문장입니다. |이것은 두 번째 문장입니다",
        "هذه هي الجملة الأولى هنا، |وهذه هي الجملة الثانية؛ |قصير",
        "यह पहला वाक्य यहाँ है। |दूसरा",
        "Это первое предложение, |второе",
    ],
)
def test_sentences_of_other_scripts(text):
    """| is where one ends; short ones do not count."""
    pieces = [piece.strip(" ,!。，；！.،؛।") for piece in text.split("|")]
    pieces = [piece.removeprefix("短い。") for piece in pieces]
    assert found_in(text.replace("|", "")) == [piece for piece in pieces if width(piece) > 16]


def test_full_width_characters_count_two():
    assert width("羊毛abcé") == 2 * 2 + 4
    assert width("ｗｏｏｌ。") == 10
    assert found_in("这里有八个字而已\n这里有九个字的句子") == ["这里有九个字的句子"]


def test_weights_grow_with_the_logarithm_of_the_length():
    assert weight(1) == 1 << 20
    assert abs(weight(1000) / (1 << 20) - (1 + np.log(1000))) < 1e-6


def test_an_edit_changes_only_the_passages_around_it():
    rng = random.Random(5)
    text = " ".join(f"{rng.choice(WORDS)}{rng.randint(0, 99)}" for _ in range(600))
    before = passages(text, Parameters())
    after = passages(text.replace(text.split()[300], "other words here", 1), Parameters())
    assert 40 < len(before) < 200
    assert len(dict(before).keys() ^ dict(after).keys()) <= 6


def test_passages_do_not_depend_on_punctuation():
    text = "a line of words, with a comma; and more words after it. " * 3 + "the last (one) is here!"
    plain = "".join(" " if each in ",;.()!" else each for each in text)
    words = [[" ".join(piece.split()) for piece, _ in passages(plain, Parameters())]]
    words.append([" ".join(re.findall(r"\w+", piece)) for piece, _ in passages(text, Parameters())])
    assert words[0] == words[1]


@pytest.mark.parametrize(
    "text", ["wool " * 4000, "羊毛" * 4000, "羊毛織物" * 3000, "x" * 10_000, "_ " * 5000, "\ud800 " * 3000]
)
def test_passages_of_monotonous_text_are_bounded(text):
    assert len(passages(text, Parameters())) <= 2000
    assert len(signatures(text, Parameters())) <= 112


def test_texts_with_few_sentences_have_signatures_of_passages():
    plain = text_of(120, 3).replace(".", "").replace("\n", " ")
    assert len(signatures(plain, Parameters(passage_words=0))) == 0
    assert len(signatures(plain, Parameters())) > 80
    many = text_of(200, 3)
    assert numbers(signatures(many, Parameters())) == numbers(signatures(many, Parameters(passage_words=0)))
