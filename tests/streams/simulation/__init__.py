"""A whole line in one process on scripted ports, under faults that a seed draws; and what must hold all the same."""
