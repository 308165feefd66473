"""Names of metrics for expressions, taken from where they are made: one that goes, or is renamed, breaks the build.

`M.lag` is "neardup_lag_records"; `M.pages` is "neardup_pages_total"; histograms have `M.latency.bucket`, `.sum` and
`.count`.
"""

from prometheus_client import Counter, Gauge, Histogram

from streams.process.metrics import BatchHistogram, Metrics


class MetricName(str):
    """Of one metric, as Prometheus stores it."""

    __slots__ = ()

    @property
    def bucket(self) -> str:
        return f"{self}_bucket"

    @property
    def sum(self) -> str:
        return f"{self}_sum"

    @property
    def count(self) -> str:
        return f"{self}_count"


class Names:
    def __init__(self) -> None:
        self._metrics = Metrics()

    def __getattr__(self, attribute: str) -> MetricName:
        """The name of a metric by its attribute in `Metrics`. AttributeError if there is none."""
        found = getattr(self._metrics, attribute)
        if isinstance(found, dict):
            found = next(iter(found.values()))
        if isinstance(found, Counter):
            return MetricName(f"{found._name}_total")
        if isinstance(found, Gauge | Histogram | BatchHistogram):
            return MetricName(found._name)
        raise AttributeError(f"{attribute} is no metric")


M = Names()
#: The one that says what a process runs; prometheus-client's own `Info` adds the suffix.
INFO = "neardup_info"
