"""`make tests-of` finds the test files of a source file."""

from tests.tests_of import ROOT, importing


def test_files_that_import_a_module_come_apart_from_those_that_import_it_through_another() -> None:
    direct, further = importing(ROOT / "tests" / "tests_of.py")
    assert (direct, further) == ({"tests/test_tests_of.py"}, set())
    direct, further = importing(ROOT / "neardup" / "urls.py")
    assert "tests/neardup/test_urls.py" in direct
    assert further
    assert not direct & further
