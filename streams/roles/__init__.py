"""The roles of the stream on Kafka; each takes settings and returns when it was stopped."""

from streams.roles.adapters import run_matcher, run_sketcher
from streams.roles.backfill import run_backfill
from streams.roles.operator import accept_gap, forget, skip_record
from streams.roles.single_process import run_single_process

__all__ = ["accept_gap", "forget", "run_backfill", "run_matcher", "run_single_process", "run_sketcher", "skip_record"]
