"""Rules, dashboards and runbook hold together; and alerts fire in a real Prometheus when their fault is made."""

import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import charts
import composed
import pytest
import yaml
from broker import PATIENCE_SECONDS, eventually, kafka
from composed import REPOSITORY, Composed
from tools import Tool

from streams.client import PageProducer
from streams.formats.message import Message, decode_entry, encode_message
from streams.kafka import Connection, KafkaLog, Writer
from streams.process.metrics import Metrics

MONITORING = REPOSITORY / "deploy" / "monitoring"
FILES = charts.CHART / "files"
sys.path.insert(0, str(MONITORING))  # a folder of programs, no package

import rules  # noqa: E402


def promtool(tool: Tool, *arguments: str | Path) -> str:
    environment = {**os.environ, "GOGC": "800"}  # else it collects garbage for a quarter of its time
    result = subprocess.run([tool("promtool"), *arguments], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_files_are_those_of_the_code() -> None:
    command = [sys.executable, MONITORING / "generate.py", "--check"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.whole
def test_rules_are_valid_and_pass_their_unit_tests(tool: Tool) -> None:
    promtool(tool, "check", "rules", FILES / "rules.yaml")
    promtool(tool, "test", "rules", MONITORING / "rules_test.yaml")


def test_each_alert_was_made_to_fire_and_has_an_entry_in_the_runbook() -> None:
    names = {alert.name for alert in rules.alerts(rules.RuleDurations())}
    tested = yaml.safe_load((MONITORING / "rules_test.yaml").read_text())["tests"]
    cases = [case for test in tested for case in test.get("alert_rule_test", [])]
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == names
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == names, "never seen silent"
    headings = re.findall(r"^### (\w+)$", (MONITORING / "README.md").read_text(), re.MULTILINE)
    assert set(headings) == names
    assert len(headings) == len(names)


def test_prometheus_takes_its_configuration(tool: Tool, tmp_path: Path) -> None:
    text = (MONITORING / "prometheus.yml").read_text().replace("/etc/prometheus/rules", str(FILES))
    (tmp_path / "prometheus.yml").write_text(text)
    promtool(tool, "check", "config", tmp_path / "prometheus.yml")


def panels() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((FILES / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            yield f"{path.stem}: {panel['title']}", panel


def test_every_panel_asks_something_that_prometheus_understands(tool: Tool, tmp_path: Path) -> None:
    found = [
        {"record": f"panel:{number}:{place}", "expr": target["expr"].replace("$__rate_interval", "1m")}
        for number, (_, panel) in enumerate(panels())
        for place, target in enumerate(panel["targets"])
    ]
    assert len(found) > 30
    path = tmp_path / "panels.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": found}]}))
    promtool(tool, "check", "rules", path)


def test_every_panel_queries_an_existing_metric() -> None:
    """Names of metrics that some process has, and names that are recorded."""
    metrics = Metrics()
    metrics.info(version="1", role="match")
    metrics.ready.labels("match").set(1)
    there = set(re.findall(r"^([a-z_:]+)(?:\{| )", metrics.render().decode(), re.MULTILINE))
    there |= set(rules.records(rules.RuleDurations()))
    for title, panel in panels():
        for target in panel["targets"]:
            names = set(re.findall(r"\b(?:neardup|process)[a-z_:0-9]+", re.sub(r'"[^"]*"', "", target["expr"])))
            assert names, title
            assert names <= there, f"{title}: {names - there}"


def test_panels_lie_side_by_side() -> None:
    for path in sorted((FILES / "dashboards").glob("*.json")):
        taken: set[tuple[int, int]] = set()
        for panel in json.loads(path.read_text())["panels"]:
            place = panel["gridPos"]
            own = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not own & taken, f"{path.stem}: {panel['title']} lies on another panel"
            assert place["x"] + place["w"] <= 24
            taken |= own


#: Everything many times as fast, but slower than a scrape takes on a busy machine.
FAST = rules.RuleDurations(window="10s", long="60s", day="10m", wait="5s", patience="10s", behind_s=1)


#: Pages of a flood.
MANY = 10_000


class Watched:
    """Prometheus over processes of the compose file's services. firing: the alerts of now, with their labels."""

    def __init__(self, prometheus: Path, services: Composed, folder: Path) -> None:
        self.services = services
        names = ("sketcher", "matcher")
        self.ports = dict(zip((*names, "prometheus"), kafka.free_ports(3), strict=True))
        (folder / "rules.yaml").write_text(yaml.safe_dump(rules.document(FAST)))
        config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(folder / "rules.yaml")]
        scraped = {job["job_name"]: sorted(job.pop("dns_sd_configs")[0]["names"]) for job in config["scrape_configs"]}
        assert scraped == {
            "neardup": ["matcher", "sketcher", "views"],
            "neardup-ask": ["ask"],
        }
        # Without the profile of ask its name has no address.
        roles, ask = config["scrape_configs"]
        roles["static_configs"] = [{"targets": [f"127.0.0.1:{self.ports[name]}" for name in names]}]
        ask["static_configs"] = []
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with (folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    prometheus,
                    f"--config.file={folder}/prometheus.yml",
                    f"--storage.tsdb.path={folder}/tsdb",
                    f"--web.listen-address=127.0.0.1:{self.ports['prometheus']}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def ask(self, path: str) -> Any:
        url = f"http://127.0.0.1:{self.ports['prometheus']}/api/v1/{path}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.loads(answer.read())["data"]
        except OSError:
            assert self._process.poll() is None
            return None

    def firing(self) -> dict[str, dict[str, str]]:
        found = self.ask("alerts") or {"alerts": []}
        return {each["labels"]["alertname"]: each["labels"] for each in found["alerts"] if each["state"] == "firing"}

    def value(self, expr: str) -> float | None:
        found = self.ask(f"query?query={urllib.parse.quote(expr)}")
        return float(found["result"][0]["value"][1]) if found and found["result"] else None

    def start(self, name: str, **more: str) -> "subprocess.Popen[bytes]":
        return self.services.start(name, NEARDUP_METRICS_PORT=str(self.ports[name]), NEARDUP_BATCH_PAGES="1", **more)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def watched(tmp_path: Path, tool: Tool) -> Iterator[tuple[Watched, str]]:
    tool("docker-compose")
    prometheus = tool("prometheus")
    services = composed.config()["services"]
    settings = composed.broker_settings(services["kafka"])
    with kafka.Cluster(tmp_path / "kafka", settings=settings) as cluster:
        started = Composed(services, tmp_path, {"kafka:9092": cluster.bootstrap})
        made = Watched(prometheus, started, tmp_path)
        try:
            for name in ("seed", "topics"):
                assert started.start(name).wait(PATIENCE_SECONDS) == 0, started.log(name).read_text()
            yield made, cluster.bootstrap
        finally:
            made.close()
            started.close()


def send(bootstrap: str, count: int, prefix: str) -> None:
    with PageProducer(bootstrap) as pages:
        for number in range(count):
            text = f"<title>{prefix} {number}</title><p>" + f"{prefix} {number} wool " * 30
            pages.publish(f"https://a.example/{prefix}/{number}", text.encode(), content_type="text/html")


def leave_out(bootstrap: str) -> None:
    """Appends to the log what a faulty sketcher would: a message that begins behind where the last one ended."""
    connection = Connection(bootstrap)
    with closing(KafkaLog(connection, "sketches")) as log:
        entries = [decode_entry(data, offset) for offset, data in log.messages(log.first_offset())]
    last = next(entry for entry in reversed(entries) if isinstance(entry, Message))
    ranges = tuple(replace(each, start=each.stop + 3, stop=each.stop + 3) for each in last.ranges)
    with closing(Writer(connection, "sketches")) as writer:
        writer.send(encode_message(Message(last.scheme, ranges, ())))
        writer.flush()


def quiet(prometheus: Watched) -> None:
    last: dict[str, Any] = {}

    def none() -> bool:
        last.clear()
        last.update(prometheus.firing())
        return not last

    try:
        eventually(none, "silence")
    except AssertionError:
        raise AssertionError(f"still firing: {last}") from None


@pytest.mark.whole
def test_alerts_fire_when_their_fault_is_made(watched: tuple[Watched, str]) -> None:
    prometheus, bootstrap = watched
    fires = prometheus.firing
    eventually(lambda: {"NeardupMatcherAbsent", "NeardupSketcherAbsent"} <= set(fires()), "no process runs")
    prometheus.start("sketcher")
    matcher = prometheus.start("matcher")
    eventually(lambda: prometheus.value('neardup_ready{role="match"}') == 1, "the matcher is ready")
    send(bootstrap, 20, "first")
    eventually(lambda: prometheus.value('sum(neardup_pages_total{role="match"})') == 20, "all judged")
    quiet(prometheus)
    eventually(lambda: prometheus.value("neardup:duplicate_share") is not None, "a recorded share")

    # More pages than one sketcher takes, which sketches each by itself here.
    send(bootstrap, MANY, "second")
    eventually(lambda: fires().get("NeardupSketcherLag", {}).get("role") == "sketch", "lag")
    assert "NeardupMatcherAbsent" not in fires()
    eventually(lambda: prometheus.value('sum(neardup_pages_total{role="match"})') == 20 + MANY, "all judged")
    eventually(lambda: "NeardupSketcherLag" not in fires(), "the end of the lag")

    # The matcher is away.
    prometheus.services.stop("matcher", 60)
    eventually(lambda: fires().get("NeardupMatcherAbsent", {}).get("severity") == "critical", "its absence")
    matcher = prometheus.start("matcher")
    eventually(lambda: "NeardupMatcherAbsent" not in fires(), "its return")

    # Pages are missing from the log: it stops, stays long enough to be seen, and its alert outlives it.
    leave_out(bootstrap)
    eventually(lambda: "NeardupSourceGap" in fires(), "the gap")
    assert "NeardupStopped" not in fires()
    assert matcher.poll() is None, "it holds"
    matcher.terminate()
    assert matcher.wait(60) == 1
    assert "accept gap" in prometheus.services.log("matcher").read_text().splitlines()[-1]
