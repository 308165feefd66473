"""Tracks one round of labelling: labels of each labeller, the next pair, and agreement.

Every label is appended to the file of labels before it counts, so reading the file again resumes the round.

A pair that a labeller judged in an earlier round, for another sample, is not shown again. Its line is written again
with both samples when the labeller passes its position. The labelled pairs of a sample are therefore always the first
ones, which represent the whole sample wherever the labeller stops.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from neardup.errors import BadInput
from neardup.evaluation.corpus import Corpus
from neardup.evaluation.labels import REASONS, Judgement, Label, full_agreement, kappa, label_of, united
from neardup.evaluation.sampling import Drawn
from neardup.report.reasons import Reason

LABELLER_CHARS_MAX = 60


@dataclass(frozen=True)
class LabellerProgress:
    """Progress of one labeller: done of total pairs, counts by judgement, index of the last pair (None without one)."""

    labeller: str
    done: int
    total: int
    judgements: dict[str, int]
    last: int | None


class Labelling:
    """A round of labelling.

    pairs: pairs in the order of display.
    labels: existing labels in order, one for each pair and labeller.
    append: function that writes a line of JSON, newline included, and returns when the line is durable.
    """

    def __init__(
        self, pairs: Sequence[Drawn], corpus: Corpus, labels: Iterable[Label], append: Callable[[bytes], None]
    ) -> None:
        self.pairs = list(pairs)
        self.corpus = corpus
        self._append = append
        self._place = {self._urls(pair): place for place, pair in enumerate(self.pairs)}
        self._by_labeller: dict[str, dict[int, Label]] = {}  # insertion order = labelling order
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
        """Returns the first pair after `after` without this labeller's label, else the first of all; None if all are
        done.
        """
        own = self._by_labeller.get(labeller, {})
        open_places = [place for place in range(len(self.pairs)) if place not in own]
        return next((place for place in open_places if place > after), open_places[0] if open_places else None)

    def label_by(self, labeller: str, place: int) -> Label | None:
        """Returns this labeller's label of the pair."""
        return self._by_labeller.get(labeller, {}).get(place)

    def record(self, labeller: str, place: int, judgement: str, reasons: Sequence[str], labelled_at: int) -> None:
        """Records a label.

        Raises BadInput for an invalid name, index or judgement, or a reason that does not fit it.
        """
        labeller = checked_name(labeller)
        if not 0 <= place < len(self.pairs):
            raise BadInput(f"no pair {place + 1}; the round has {len(self.pairs)}")
        try:
            what = Judgement(judgement)
        except ValueError:
            raise BadInput("choose correct, incorrect or undecided") from None
        if what is Judgement.WITHDRAWN:
            raise BadInput("use undo to withdraw a label")
        fitting = REASONS[what]
        given = [reason for reason in fitting if reason in reasons]
        if len(given) != len(set(reasons)):
            raise BadInput(f"invalid reason for {what}; the reasons are {', '.join(fitting)}")
        self._write(labeller, place, what, tuple(given), labelled_at)
        following = self.next_for(labeller, place)
        self._reach(labeller, None if following is None or following < place else following)

    def undo(self, labeller: str, labelled_at: int) -> int | None:
        """Withdraws the labeller's last label and returns the pair's index; None without a label."""
        own = self._by_labeller.get(labeller)
        if not own:
            return None
        place = next(reversed(own))
        self._write(labeller, place, Judgement.WITHDRAWN, (), labelled_at)
        return place

    def _write(self, labeller: str, place: int, what: Judgement, reasons: tuple[Reason, ...], labelled_at: int) -> None:
        pair = self.pairs[place]
        before = self.label_by(labeller, place)
        sample = united(before.sample if before else "", pair.sample)
        more = {"reasons": reasons, "labeller": labeller, "labelled_at": labelled_at, "sample": sample}
        label = label_of(self.corpus.urls[pair.a], self.corpus.urls[pair.b], what, **more)
        self._append(label.to_json())
        own = self._by_labeller.setdefault(labeller, {})
        own.pop(place, None)  # a repeated label moves to the end
        if what is not Judgement.WITHDRAWN:
            own[place] = label
        if not own:
            del self._by_labeller[labeller]

    def _reach(self, labeller: str, place: int | None) -> None:
        """Adds this round's sample to the labeller's earlier labels of pairs before index `place` (None: all)."""
        for at, label in self._by_labeller[labeller].items():
            sample = united(label.sample, self.pairs[at].sample)
            if sample != label.sample and (place is None or at < place):
                drawn = replace(label, sample=sample)
                self._append(drawn.to_json())
                self._by_labeller[labeller][at] = drawn  # keeps its position, so undo does not withdraw it

    def progress(self, labeller: str) -> LabellerProgress:
        own = self._by_labeller.get(labeller, {})
        counts = Counter(str(label.label) for label in own.values())
        return LabellerProgress(labeller, len(own), len(self.pairs), dict(counts), next(reversed(own), None))

    def agreement(self) -> dict[tuple[str, str], tuple[int, float | None]]:
        """Computes Cohen's kappa of every two labellers, see `neardup.evaluation.labels.kappa`."""
        return kappa([label for own in self._by_labeller.values() for label in own.values()])

    def full_agreement(self) -> dict[str, tuple[int, int]]:
        """Counts pairs on which all labellers agree, see `neardup.evaluation.labels.full_agreement`."""
        return full_agreement([label for own in self._by_labeller.values() for label in own.values()])

    def disagreed(self) -> list[int]:
        """Returns the indices of pairs on which labellers disagree."""
        given: dict[int, set[Judgement]] = {}
        for own in self._by_labeller.values():
            for place, label in own.items():
                given.setdefault(place, set()).add(label.label)
        return sorted(place for place, judgements in given.items() if len(judgements) > 1)


def checked_name(name: str) -> str:
    """Collapses white space in a labeller's name. Raises BadInput if it is empty, too long or not printable."""
    name = " ".join(name.split())
    if not name or len(name) > LABELLER_CHARS_MAX or not name.isprintable():
        raise BadInput(f"a labeller needs a name of 1 to {LABELLER_CHARS_MAX} printable characters")
    return name
