"""A runtime for roles inside a test."""

import threading

from streams.config.settings import Settings
from streams.process.health import Health
from streams.process.metrics import Metrics
from streams.process.shutdown import steady_ms
from streams.roles.runtime import Runtime


def quiet_runtime(settings: Settings) -> Runtime:
    """Without server, signals and log configuration."""
    return Runtime(settings, Metrics(), Health(steady_ms, settings.stall_ms), threading.Event())
