"""Plots a distribution of whole numbers, such as degrees, and estimates its exponent.

Discrete maximum likelihood (Clauset, Shalizi, Newman 2009, section 3): for degrees d >= d_min the exponent is the alpha
that maximises -n ln zeta(alpha, d_min) - alpha * sum ln d. d_min is the degree at which the fitted distribution is
nearest to the data by the Kolmogorov-Smirnov distance. The standard error is (alpha - 1) / sqrt(n).

A best exponent exists for any numbers, also if they follow no power law. So none is returned if the range of degrees is
too narrow: the pages of nine releases of a manual have degrees of 1 to 8, and the greatest ones fit a steep exponent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.evaluation.sections import Cell, Plot, figure
from neardup.report.plots import Axes, Series

#: Minimum number of nodes and distinct degrees from d_min on, and ratio of the greatest degree to d_min, for a fit.
NODES_MIN, DISTINCT_MIN, SPAN_MIN = 50, 8, 10
#: Greatest Kolmogorov-Smirnov distance from the best power law. A generated web of 8,000 pages has .04 (B graph) and
#: .06 (C graph), the javadoc of ten releases .10 and .16.
DISTANCE_MAX = 0.1
#: Least expected number of nodes at the greatest degree. In a crawl of 743 hosts, 699 had
#: one page and one had 635: exponent 3.7 fitted at a distance of .04, but predicts .000006 hosts of that size.
EXPECTED_MIN = 0.01
#: Candidates for d_min.
_STARTS_MAX = 60
_ALPHA_MAX = 12.0


@dataclass(frozen=True)
class PowerLaw:
    """P(degree = d) proportional to d ** -alpha for d >= d_min.

    nodes: number of nodes of degree >= d_min. distance: Kolmogorov-Smirnov distance, 0 to 1.
    """

    alpha: float
    error: float
    d_min: int
    nodes: int
    distance: float


def hurwitz_zeta(s: float, q: float) -> float:
    """Computes sum over k >= 0 of (k + q) ** -s, s > 1, q > 0, by Euler-Maclaurin after 12 terms, to 12 digits here."""
    head: float = sum((k + q) ** -s for k in range(12))
    x = q + 12
    tail: float = x ** (1 - s) / (s - 1) + x**-s / 2 + s * x ** (-s - 1) / 12
    tail -= s * (s + 1) * (s + 2) * x ** (-s - 3) / 720
    tail += s * (s + 1) * (s + 2) * (s + 3) * (s + 4) * x ** (-s - 5) / 30240
    return head + tail


def fit(degrees: npt.NDArray[np.int64]) -> PowerLaw | None:
    """Fits a power law to the degrees > 0; None if none fits."""
    values, counts = np.unique(degrees[degrees > 0], return_counts=True)
    best: PowerLaw | None = None
    starts = range(len(values))
    if len(values) > _STARTS_MAX:
        starts = sorted(set(np.geomspace(1, len(values), _STARTS_MAX).astype(int) - 1))  # type: ignore[assignment]
    for start in starts:
        x, c = values[start:], counts[start:]
        nodes = int(c.sum())
        if nodes < NODES_MIN or len(x) < DISTINCT_MIN or x[-1] < SPAN_MIN * x[0]:
            break
        law = _fit_from(x, c, nodes)
        if law is not None and (best is None or law.distance < best.distance):
            best = law
    if best is None or best.distance > DISTANCE_MAX:
        return None
    beyond = hurwitz_zeta(best.alpha, int(values[-1])) / hurwitz_zeta(best.alpha, best.d_min)
    return best if best.nodes * beyond >= EXPECTED_MIN else None


def _fit_from(x: npt.NDArray[np.int64], c: npt.NDArray[np.int64], nodes: int) -> PowerLaw | None:
    d_min = int(x[0])
    logs = float((c * np.log(x)).sum()) / nodes

    def cost(alpha: float) -> float:
        return math.log(hurwitz_zeta(alpha, d_min)) + alpha * logs

    low, high = 1.01, _ALPHA_MAX
    golden = (math.sqrt(5) - 1) / 2
    while high - low > 1e-5:
        one, two = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, two) if cost(one) < cost(two) else (one, high)
    alpha = (low + high) / 2
    if not 1.02 < alpha < _ALPHA_MAX - 0.01:
        return None  # at the edge of the search range: no power law
    whole = hurwitz_zeta(alpha, d_min)
    model = np.array([1 - hurwitz_zeta(alpha, int(d) + 1) / whole for d in x])
    distance = float(np.abs(np.cumsum(c) / nodes - model).max())
    return PowerLaw(alpha, (alpha - 1) / math.sqrt(nodes), d_min, nodes, distance)


def log_log(
    name: str, of: str, numbers: npt.NDArray[np.int64], law: PowerLaw | None, number: str, things: str
) -> list[Plot]:
    """Plots how many things have each number above 0; none if there are none.

    number, things: labels, such as "degree" and "pages".
    """
    values, counts = np.unique(numbers[numbers > 0], return_counts=True)
    points = list(zip(values.tolist(), counts.tolist(), strict=True))
    series = [Series(things, points, "dots", [f"{number} {d:,}: {n:,} {things}" for d, n in points])]
    legend = [things]
    if law is not None:
        scale = law.nodes / hurwitz_zeta(law.alpha, law.d_min)
        ends = (float(law.d_min), float(values[-1]))
        series.append(Series("fit", [(d, scale * d**-law.alpha) for d in np.geomspace(*ends, 30)], "curve"))
        legend.append(f"fitted power law, exponent {law.alpha:.2f}")
    axes, note = Axes(number, things, x_log=True, y_log=True), "Both axes are logarithmic."
    return figure(name, f"{of}: {things} by {number}", series, axes, (number, things), points, note, legend)


def law_rows(laws: Sequence[PowerLaw | None], number: str, things: str) -> list[list[Cell]]:
    """Tabulates fitted power laws, one per column, with dashes where none fits."""
    names = (
        "power-law exponent",
        "its standard error",
        f"fitted from {number}",
        f"{things} of at least that {number}",
        "Kolmogorov-Smirnov distance of the fit",
    )
    figures = [
        (round(law.alpha, 3), round(law.error, 3), law.d_min, law.nodes, round(law.distance, 3)) if law else (None,) * 5
        for law in laws
    ]
    rows: list[list[Cell]] = [list(row) for row in zip(names, *figures, strict=True)]
    return rows if any(laws) else rows[:1]


def law_note(laws: Sequence[PowerLaw | None]) -> str:
    """Explains the estimate of exponents, and dashes."""
    note = (
        "The exponent is the discrete maximum-likelihood estimate above the number that makes the Kolmogorov-Smirnov "
        "distance smallest (Clauset, Shalizi, Newman 2009)."
    )
    if not all(laws):
        note += (
            f" A dash means no power law: fewer than {NODES_MIN} items to fit, fewer than "
            f"{DISTINCT_MIN} distinct numbers, a range below a factor of {SPAN_MIN}, a distance "
            f"over {DISTANCE_MAX:g}, or a greatest number that is too improbable under the fit."
        )
    return note
