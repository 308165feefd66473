"""The exponent of distributions whose exponent is known."""

import math

import numpy as np
import pytest

from neardup.evaluation.powerlaw import fit, hurwitz_zeta


@pytest.mark.parametrize(
    ("s", "q", "value"), [(2, 1, math.pi**2 / 6), (4, 1, math.pi**4 / 90), (2, 2, math.pi**2 / 6 - 1)]
)
def test_zeta_has_its_known_values(s: float, q: float, value: float) -> None:
    assert hurwitz_zeta(s, q) == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize("alpha", [1.8, 2.5, 3.2])
def test_the_exponent_of_a_sample_is_found(alpha: float) -> None:
    support = np.arange(1, 200_000)
    weights = support**-alpha
    degrees = np.random.default_rng(5).choice(support, 20_000, p=weights / weights.sum())
    law = fit(degrees)
    assert law is not None
    assert abs(law.alpha - alpha) < 5 * law.error + 0.02
    assert law.distance < 0.03


@pytest.mark.parametrize("degrees", [[], [0, 0], [1] * 1000, [1] * 30 + [2] * 5 + [3, 4, 5]])
def test_nothing_is_fitted_to_too_little(degrees: list[int]) -> None:
    assert fit(np.array(degrees, dtype=np.int64)) is None


#: Degrees of the B graph and of the C graph of 9,600 pages of javadoc in ten releases: most pages have nine siblings.
RELEASES = (
    (1347, 641, 739, 821, 951, 1230, 1185, 594, 848),
    (543, 562, 446, 638, 542, 1303, 1046, 2200, 1285, 2, 12),
)


@pytest.mark.parametrize("counts", RELEASES)
def test_the_releases_of_a_manual_are_no_power_law(counts: tuple[int, ...]) -> None:
    assert fit(np.repeat(np.arange(1, len(counts) + 1), counts)) is None


def test_poor_fit_is_no_power_law() -> None:
    rng = np.random.default_rng(2)
    assert fit(rng.integers(1, 400, 3000)) is None  # over two decades, and even
    assert fit(1 + rng.poisson(6, 3000)) is None


def test_a_few_giants_beside_many_of_one_are_no_power_law() -> None:
    """Hosts of a crawl of 743: of nearly all one page, of one 635. A steep exponent fits the many, and no giant."""
    sizes = [1] * 699 + [2] * 27 + [3] * 3 + [4] * 2 + [5] * 2 + [6, 7, 7, 12, 12, 14, 30, 157, 157, 635]
    assert fit(np.array(sizes)) is None
    weights = np.arange(1, 1_000_000) ** -2.8
    rng = np.random.default_rng(6)
    for _ in range(5):  # giants of a power law are as large as it gives
        degrees = 1 + np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(2000))
        assert fit(degrees.astype(np.int64)) is not None
