"""Words of messages and outputs."""


def counted(number: int, noun: str) -> str:
    """Formats a number with its noun: `1 page`, `1,200 pages`. noun: singular of a noun whose plural ends in -s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
