"""The examples in docstrings of the library run, and print what they show."""

import doctest
from types import ModuleType

import pytest

from neardup import canonical, page, scheme
from neardup.pairs import scoring
from streams.library import deduplicator as library
from streams.library import tables


def examples_of(module: ModuleType) -> list[doctest.DocTest]:
    """The examples of a module. Those of its own docstring come first in all others."""
    found = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    shared = [example for test in found if test.name == module.__name__ for example in test.examples]
    for test in found:
        test.examples[:0] = [] if test.name == module.__name__ else shared
    return found


EXAMPLES = [test for module in (library, tables, canonical, page, scheme, scoring) for test in examples_of(module)]


@pytest.mark.parametrize("example", EXAMPLES, ids=[test.name for test in EXAMPLES])
def test_docstring_examples_print_the_output_that_they_show(example: doctest.DocTest) -> None:
    printed: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(example, out=printed.append)
    assert result.failed == 0, "".join(printed)


def test_each_call_of_the_library_has_an_example() -> None:
    calls = {"open_index", *(f"Deduplicator.{name}" for name in ("add", "stream", "query", "get", "cluster", "remove"))}
    assert {f"streams.library.deduplicator.{call}" for call in calls} <= {test.name for test in EXAMPLES}
