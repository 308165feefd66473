"""The bench of the scan counts pages, processes and stages as it says."""

import pytest

from neardup.scheme import Scheme
from tests.measure.bench.scanning import PAGE_BYTES, Scanned, _row, counts_of, readers, scanned, stages, write_files

pytestmark = pytest.mark.whole


def test_counts_are_powers_of_two_and_all_cores():
    assert [counts_of(cores) for cores in (1, 2, 3, 6, 16)] == [
        [1], [1, 2], [1, 2, 3], [1, 2, 4, 6], [1, 2, 4, 8, 16]
    ]  # fmt: skip


def test_scan_is_bound_by_the_judging_process_or_by_all_cores():
    run = Scanned(1000, 9.0, judging=1.0, others=9.0)
    assert run.bound(1) == 100, "one core does all"
    assert run.bound(4) == pytest.approx(1000 / 3), "three read"
    assert run.bound(16) == 1000, "one judges"
    row = _row("x", 2, Scanned(1000, 5.0, 2.0, 2.0), Scanned(1000, 8.0, 2.0, 2.0))
    assert row.ratio == 1.6
    assert row.notes["pages/s by processor time"] == "500 (2.00 x)"


def test_scanned_files_are_measured_whole_and_by_stage(tmp_path):
    paths = write_files(tmp_path, 2, 40)
    run = scanned(paths, 1)
    assert 70 <= run.pages <= 80, "a few are gone, which archives do not say"
    assert run.seconds > 0
    assert run.judging > 0
    row = stages(Scheme(seed=1), paths, run)
    assert list(row.notes)[:3] == ["read and decompressed", "decoded and sketched", "packed"]
    assert PAGE_BYTES == 31_000


def test_readers_of_a_scan_are_compared_with_it(tmp_path):
    names = [f"{name} of {suffix}" for suffix in (".jsonl", ".parquet") for name in ("copy", "export", "report")]
    rows = list(readers(tmp_path, 400))
    assert [row.name.partition(",")[0] for row in rows] == names
    assert list(rows[0].notes) == ["scan, us a page", "copy, us a page"]
    assert all(row.notes["scan, us a page"] > 0 for row in rows)
