"""The examples in docstrings of the library run, and print what they show."""

import doctest

import pytest

from streams import library


def named(test: doctest.DocTest) -> str:
    return test.name.removeprefix("streams.library").lstrip(".") or "module"


EXAMPLES = [test for test in doctest.DocTestFinder().find(library) if test.examples]
#: What the module's docstring defines for all examples.
SHARED = next(test for test in EXAMPLES if named(test) == "module").docstring


@pytest.mark.parametrize("example", EXAMPLES, ids=map(named, EXAMPLES))
def test_an_example_of_the_library_prints_what_it_shows(example: doctest.DocTest) -> None:
    exec("".join(line.source for line in doctest.DocTestParser().get_examples(SHARED or "")), example.globs)
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    printed: list[str] = []
    assert runner.run(example, out=printed.append).failed == 0, "".join(printed)


def test_each_call_of_the_library_has_an_example() -> None:
    calls = {"open_index", *(f"Deduplicator.{name}" for name in ("add", "stream", "query", "cluster"))}
    assert calls <= set(map(named, EXAMPLES))
