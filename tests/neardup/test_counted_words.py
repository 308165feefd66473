"""Words of messages and outputs."""

from neardup.wording import counted


def test_one_of_a_kind_is_singular() -> None:
    numbers = {counted(number, "page") for number in (0, 1, 2, 1_200)}
    assert numbers == {"0 pages", "1 page", "2 pages", "1,200 pages"}
