"""The navigation of the documentation site: five groups of pages."""

from collections.abc import Sequence
from typing import NamedTuple


class Entry(NamedTuple):
    """One page.

    title: its name in the navigation.
    file: its name in the site.
    source: path in the repository; empty for a page that `reference.py` generates.
    """

    title: str
    file: str
    source: str = ""


#: The groups of the navigation, in their order.
GROUPS: Sequence[tuple[str, Sequence[Entry]]] = (
    (
        "Overview",
        (
            Entry("neardup", "index.html", "README.md"),
            Entry("When to use another program", "comparison.html", "deploy/site/comparison.md"),
            Entry("Changes", "changes.html", "CHANGELOG.md"),
            Entry("Security", "security.html", "SECURITY.md"),
        ),
    ),
    (
        "Tutorials",
        (Entry("Three walks", "walks.html", "deploy/walks/README.md"),),
    ),
    (
        "How-to",
        (
            Entry("Scan a crawl", "scan-a-crawl.html", "streams/scan/scan-a-crawl.md"),
            Entry("Deduplicate a table", "deduplicate-a-table.html", "streams/library/deduplicate-a-table.md"),
            Entry("Use the library", "use-as-a-library.html", "neardup/use-as-a-library.md"),
            Entry("Run on Kafka", "run-on-kafka.html", "deploy/run-on-kafka.md"),
            Entry("Install on Kubernetes", "kubernetes.html", "helm/neardup/README.md"),
            Entry("Publish and read from Java", "java.html", "deploy/java/README.md"),
            Entry("Plan capacity", "plan-capacity.html", "deploy/plan-capacity.md"),
            Entry("Operate", "operate.html", "deploy/operate.md"),
            Entry("Respond to alerts", "alerts.html", "deploy/monitoring/README.md"),
            Entry("Back up and restore", "back-up-and-restore.html", "deploy/back-up-and-restore.md"),
            Entry("Replay and backfill", "replay-and-backfill.html", "streams/verdicts/replay-and-backfill.md"),
            Entry("Secure the stream", "secure.html", "deploy/secure.md"),
            Entry("Upgrade", "upgrade.html", "deploy/upgrade.md"),
            Entry("Use the views", "use-the-views.html", "streams/views/use-the-views.md"),
            Entry("Ask while crawling", "ask-while-crawling.html", "streams/ask/ask-while-crawling.md"),
            Entry("Export and index", "export-and-index.html", "streams/verdicts/export-and-index.md"),
            Entry("Evaluate and tune the rule", "evaluate-and-tune.html", "neardup/evaluation/evaluate-and-tune.md"),
            Entry("Partition an archive", "partition-an-archive.html", "neardup/partition/partition-an-archive.md"),
            Entry("Judge query results", "judge-query-results.html", "neardup/signals/judge-query-results.md"),
            Entry("Add a rule", "add-a-rule.html", "neardup/rules/README.md"),
            Entry("Contribute", "contribute.html", "CONTRIBUTING.md"),
        ),
    ),
    (
        "Reference",
        (
            Entry("Commands", "commands.html"),
            Entry("Exit codes", "exit-codes.html"),
            Entry("Settings", "settings.html"),
            Entry("Chart values", "chart-values.html"),
            Entry("Decider", "decider.html"),
            Entry("Verdict", "verdict.html"),
            Entry("Export tables", "export-tables.html"),
            Entry("Formats", "formats.html"),
            Entry("Metrics", "metrics.html"),
            Entry("Alert rules", "alert-rules.html"),
            Entry("Library", "library.html"),
        ),
    ),
    (
        "Explanation",
        (
            Entry("Architecture", "architecture.html", "ARCHITECTURE.md"),
            Entry("The default rule", "default-rule.html", "neardup/rules/default-rule.md"),
            Entry("Exactly once", "exactly-once.html", "streams/exactly-once.md"),
            Entry("Failures", "failures.html", "streams/roles/failures.md"),
            Entry("Accuracy", "accuracy.html", "tests/measure/gate/README.md"),
            Entry("Accuracy on unseen pages", "commons.html", "tests/measure/commons/README.md"),
            Entry("Speed", "speed.html", "tests/measure/bench/README.md"),
            Entry("Keys and options", "keys-and-options.html", "tests/measure/bench/keys-and-options.md"),
            Entry("Limits", "limits.html", "neardup/limits.md"),
            Entry("The papers", "papers.html", "neardup/papers.md"),
            Entry("Trustable LCS", "trustable-lcs.html", "neardup/partition/README.md"),
            Entry("Many signals", "many-signals.html", "neardup/signals/README.md"),
            Entry("Hashes and hostile pages", "hashes.html", "neardup/sketch/README.md"),
            Entry("The method", "method.html", "neardup/README.md"),
            Entry("The wiring", "wiring.html", "streams/README.md"),
        ),
    ),
)

ENTRIES = tuple(entry for _, entries in GROUPS for entry in entries)
