"""Reads of rows that are spread over threads."""

import pytest

from neardup.matching.batch import spread


def test_work_is_spread_over_threads_and_all_of_it_is_done():
    for threads in (1, 2, 3, 8, 100):
        for size in (0, 1, 7, 100):
            done = [0] * size

            def run(first, last, done=done):
                for i in range(first, last):
                    done[i] += 1

            spread(run, size, threads, 3)
            assert done == [1] * size


def test_error_of_a_thread_is_raised_after_all_ended():
    ended = []

    def run(first, last):
        ended.append(first)
        if first == 4:
            raise ValueError("of a thread")

    with pytest.raises(ValueError, match="of a thread"):
        spread(run, 8, 4, 1)
    assert sorted(ended) == [0, 2, 4, 6]
