"""`python -m tests.measure.bench.curve_gate`: the accuracy gate's classes under other choices of posted keys.

The curve counts what keys bring together; what the rule then makes of it, on pages made to be mistaken, is counted
here.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from neardup.scheme import Scheme
from tests.measure.bench.curve import DEFAULT, WIDER, Choice
from tests.measure.gate import measure
from tests.measure.gate.measure import Tally
from tests.measure.gate.test_gate import GATES

CHOICES = (DEFAULT, WIDER, Choice(2, 7, 0), Choice(2, 6, 0), Choice(3, 7, 0))


def tallies(choice: Choice, pages: int, seed: int = 1) -> dict[str, Tally]:
    """What the default rule makes of each class of the gate, if pages post this choice of keys."""
    own = measure.Scheme
    measure.Scheme = partial(Scheme, wide_minvalues=choice.width)  # type: ignore[misc, assignment]
    try:
        return {
            gate.generate.__name__: measure.measure(gate.generate(pages, seed), **choice.posted()) for gate in GATES
        }
    finally:
        measure.Scheme = own  # type: ignore[misc]


def table(found: dict[Choice, dict[str, Tally]]) -> str:
    """Markdown: repeats found / items merged with another per 1,000, a line a class, a column a choice."""
    heads = [f"{c.supershingles} of {c.width}, {c.blocks} blocks ({len(c.columns()) + 1} keys)" for c in found]
    lines = [f"| class | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for name in next(iter(found.values())):
        cells = [f"{by[name].found_share:.3f} / {by[name].wrong_per_1000:.1f}" for by in found.values()]
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench.curve_gate", description=__doc__)
    parser.add_argument("--pages", type=int, default=1000, help="of each class")
    parser.add_argument("--choices", type=int, default=len(CHOICES))
    asked = parser.parse_args(arguments)
    found = {}
    for choice in CHOICES[: asked.choices]:
        found[choice] = tallies(choice, asked.pages)
        print(choice, file=sys.stderr, flush=True)
    print(table(found))


if __name__ == "__main__":
    main()
