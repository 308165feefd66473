"""Plots a distribution of whole numbers, such as degrees, on two logarithmic axes with its fitted power law."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neardup.evaluation.figures import powerlaw
from neardup.evaluation.figures.sections import Cell, Plot, figure
from neardup.report.plots import Axes, Series


def log_log(
    name: str, of: str, numbers: npt.NDArray[np.int64], law: powerlaw.PowerLaw | None, number: str, things: str
) -> list[Plot]:
    """Plots how many things have each number above 0; none if there are none.

    number, things: labels, such as "degree" and "pages".
    """
    values, counts = np.unique(numbers[numbers > 0], return_counts=True)
    points = list(zip(values.tolist(), counts.tolist(), strict=True))
    series = [Series(things, points, "dots", [f"{number} {d:,}: {n:,} {things}" for d, n in points])]
    legend = [things]
    if law is not None:
        scale = law.nodes / powerlaw.hurwitz_zeta(law.alpha, law.d_min)
        ends = (float(law.d_min), float(values[-1]))
        series.append(Series("fit", [(d, scale * d**-law.alpha) for d in np.geomspace(*ends, 30)], "curve"))
        legend.append(f"fitted power law, exponent {law.alpha:.2f}")
    axes, note = Axes(number, things, x_log=True, y_log=True), "Both axes are logarithmic."
    return figure(name, f"{of}: {things} by {number}", series, axes, (number, things), points, note, legend)


def law_rows(laws: Sequence[powerlaw.PowerLaw | None], number: str, things: str) -> list[list[Cell]]:
    """Tabulates fitted power laws, one per column, with dashes where none fits."""
    exponents: list[Cell] = ["power-law exponent", *[round(law.alpha, 3) if law else None for law in laws]]
    if not any(laws):
        return [exponents]
    return [
        exponents,
        ["its standard error", *[round(law.error, 3) if law else None for law in laws]],
        [f"fitted from {number}", *[law.d_min if law else None for law in laws]],
        [f"{things} of at least that {number}", *[law.nodes if law else None for law in laws]],
        ["Kolmogorov-Smirnov distance of the fit", *[round(law.distance, 3) if law else None for law in laws]],
    ]


def law_note(laws: Sequence[powerlaw.PowerLaw | None]) -> str:
    """Explains the estimate of exponents, and dashes."""
    note = (
        "The exponent is the discrete maximum-likelihood estimate above the number that makes the Kolmogorov-Smirnov "
        "distance smallest (Clauset, Shalizi, Newman 2009)."
    )
    if not all(laws):
        note += (
            f" A dash means no power law: fewer than {powerlaw.NODES_MIN} items to fit, fewer than "
            f"{powerlaw.DISTINCT_MIN} distinct numbers, a range below a factor of {powerlaw.SPAN_MIN}, a distance "
            f"over {powerlaw.DISTANCE_MAX:g}, or a greatest number that is too improbable under the fit."
        )
    return note
