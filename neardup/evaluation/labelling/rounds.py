"""One round of labelling: who has said what of which drawn pair, what comes next, and how far labellers agree.

Every word goes to `append` as a line before it counts, so the file of labels is all there is: reading it again goes on
where the round stopped.

A pair that a labeller judged in an earlier round, drawn from another sample, is not asked for again. Its line is
written again with both samples, once the labeller has come as far as its place: the labelled pairs of a sample are its
beginning then, which stands for the whole wherever the labeller stops.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from neardup.errors import BadInput
from neardup.evaluation.pairs.corpus import Corpus
from neardup.evaluation.pairs.labels import REASONS, Judgement, Label, kappa, label_of, united
from neardup.evaluation.pairs.sampling import Drawn
from neardup.report.reasons import Reason

LABELLER_CHARS_MAX = 60


@dataclass(frozen=True)
class LabellerProgress:
    """Of one labeller: done of total pairs, how many of each judgement, the place of the last one, None for none."""

    labeller: str
    done: int
    total: int
    judgements: dict[str, int]
    last: int | None


class Labelling:
    """pairs: in the order in which they are shown. labels: said before, in their order, one a pair and labeller.

    append: takes a line of JSON, newline included, and returns when it is kept.
    """

    def __init__(
        self, pairs: Sequence[Drawn], corpus: Corpus, labels: Iterable[Label], append: Callable[[bytes], None]
    ) -> None:
        self.pairs = list(pairs)
        self.corpus = corpus
        self._append = append
        self._place = {self._urls(pair): place for place, pair in enumerate(self.pairs)}
        self._by_labeller: dict[str, dict[int, Label]] = {}  # insertion order = the order in which they were said
        for label in labels:
            place = self._place.get(label.pair)
            if place is not None:
                self._by_labeller.setdefault(label.labeller, {})[place] = label
        for labeller in self._by_labeller:
            self._reach(labeller, self.next_for(labeller))

    def _urls(self, pair: Drawn) -> tuple[str, str]:
        first, second = sorted((self.corpus.urls[pair.a], self.corpus.urls[pair.b]))
        return first, second

    @property
    def labellers(self) -> list[str]:
        return sorted(self._by_labeller)

    def next_for(self, labeller: str, after: int = -1) -> int | None:
        """The first pair without this labeller's label, if there is one beyond place `after`; None if all are done."""
        own = self._by_labeller.get(labeller, {})
        open_places = [place for place in range(len(self.pairs)) if place not in own]
        return next((place for place in open_places if place > after), open_places[0] if open_places else None)

    def label_by(self, labeller: str, place: int) -> Label | None:
        """What this labeller said of the pair."""
        return self._by_labeller.get(labeller, {}).get(place)

    def record(self, labeller: str, place: int, judgement: str, reasons: Sequence[str], at: int) -> None:
        """Takes a label. Raises BadInput for a bad name, place, judgement, or a reason that does not go with it."""
        labeller = checked_name(labeller)
        if not 0 <= place < len(self.pairs):
            raise BadInput(f"there is no pair {place + 1}; there are {len(self.pairs)}")
        try:
            what = Judgement(judgement)
        except ValueError:
            raise BadInput("choose correct, incorrect or undecided") from None
        if what is Judgement.WITHDRAWN:
            raise BadInput("a label is taken back by undo")
        fitting = REASONS[what]
        given = [reason for reason in fitting if reason in reasons]
        if len(given) != len(set(reasons)):
            raise BadInput(f"a reason that does not go with {what}: there is {', '.join(fitting)}")
        self._write(labeller, place, what, tuple(given), at)
        following = self.next_for(labeller, place)
        self._reach(labeller, None if following is None or following < place else following)

    def undo(self, labeller: str, at: int) -> int | None:
        """Takes the labeller's last label back and returns the pair's place; None if there is none."""
        own = self._by_labeller.get(labeller)
        if not own:
            return None
        place = next(reversed(own))
        self._write(labeller, place, Judgement.WITHDRAWN, (), at)
        return place

    def _write(self, labeller: str, place: int, what: Judgement, reasons: tuple[Reason, ...], at: int) -> None:
        pair = self.pairs[place]
        before = self.label_by(labeller, place)
        sample = united(before.sample if before else "", pair.sample)
        more = {"reasons": reasons, "labeller": labeller, "labelled_at": at, "sample": sample}
        label = label_of(self.corpus.urls[pair.a], self.corpus.urls[pair.b], what, **more)
        self._append(label.to_json())
        own = self._by_labeller.setdefault(labeller, {})
        own.pop(place, None)  # said again: it becomes the last
        if what is not Judgement.WITHDRAWN:
            own[place] = label
        if not own:
            del self._by_labeller[labeller]

    def _reach(self, labeller: str, place: int | None) -> None:
        """Writes that the pairs before `place` (None: all) that this labeller has judged are of this round's sample."""
        for at, label in self._by_labeller[labeller].items():
            sample = united(label.sample, self.pairs[at].sample)
            if sample != label.sample and (place is None or at < place):
                drawn = replace(label, sample=sample)
                self._append(drawn.to_json())
                self._by_labeller[labeller][at] = drawn  # where it was: it is no new word that undo would take back

    def progress(self, labeller: str) -> LabellerProgress:
        own = self._by_labeller.get(labeller, {})
        counts = Counter(str(label.label) for label in own.values())
        return LabellerProgress(labeller, len(own), len(self.pairs), dict(counts), next(reversed(own), None))

    def agreement(self) -> dict[tuple[str, str], tuple[int, float | None]]:
        """Cohen's kappa of every two labellers, see `neardup.evaluation.pairs.labels.kappa`."""
        return kappa([label for own in self._by_labeller.values() for label in own.values()])

    def disagreed(self) -> list[int]:
        """Places of the pairs of which labellers said different things."""
        out = []
        for place in range(len(self.pairs)):
            heard = {own[place].label for own in self._by_labeller.values() if place in own}
            if len(heard) > 1:
                out.append(place)
        return out


def checked_name(name: str) -> str:
    """A labeller's name, white space collapsed. Raises BadInput for none, a long one, or one that cannot be printed."""
    name = " ".join(name.split())
    if not name or len(name) > LABELLER_CHARS_MAX or not name.isprintable():
        raise BadInput(f"a labeller needs a name of 1 to {LABELLER_CHARS_MAX} printable characters")
    return name
