"""Words of messages and outputs."""


def counted(number: int, noun: str) -> str:
    """Formats a number with its noun: `1 page`, `1,200 pages`. noun: in the singular; its plural must end in -s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
