"""What holds for all tests; and hooks that the controller of a distributed run needs, which loads no other conftest."""

from hypothesis import HealthCheck, settings

from tests.gate.table import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]

# No test may fail because the machine is busy: hypothesis asks for 200 ms an example by default.
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")
