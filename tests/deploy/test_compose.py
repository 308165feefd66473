"""compose.yaml: what compose says of it, and the same topology as processes on a real broker."""

import json
import shutil
import subprocess
import urllib.request
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import composed
import pytest
from broker import PATIENCE_SECONDS, eventually, kafka
from composed import BIN, Composed
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from tools import Tool

from neardup.verdict import Kind

VIEWS_PORT = 8379
PROFILES = ("demo", "dev", "views", "ask", "tools")
#: What a crawl publishes of the demo's site under one name; articles in three ways.
ARTICLES, PRODUCTS, OLD, OTHER = 24, 12, 6, 2


@pytest.mark.whole
def test_compose_understands_the_file(tool: Tool) -> None:
    tool("docker-compose")
    services = composed.config(*PROFILES)["services"]
    alone = composed.config()["services"]
    assert set(alone) == {"kafka", "seed", "topics", "sketcher", "matcher", "prometheus", "grafana"}
    assert set(services) - set(alone) == {*("site", "crawler", "verdicts", "dev", "views", "ask", "checkpoints")}
    for name, service in services.items():
        if "build" in service:
            assert service["read_only"], name
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
        for port in service.get("ports", []):
            assert port["host_ip"] == "127.0.0.1", name
    assert all("limits" in service["deploy"]["resources"] for service in alone.values() if "restart" in service)


@pytest.mark.whole
def test_variables_of_the_compose_file_are_settings(tool: Tool) -> None:
    """Each role refuses a variable that it does not know: `neardup config` reads them as the role would."""
    tool("docker-compose")
    services = composed.config(*PROFILES)["services"]
    for name, service in services.items():
        given = {key: value for key, value in service.get("environment", {}).items() if key.startswith("NEARDUP_")}
        given.pop("NEARDUP_SEED_FILE", None)  # it is made later
        result = subprocess.run(
            [BIN / "neardup", "config", "--json"],
            env={**composed.image_environment(), **given},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, f"{name}: {result.stderr}"


@pytest.fixture
def line(tmp_path: Path, tool: Tool) -> Iterator[tuple[Composed, str]]:
    tool("docker-compose")
    with composition(tmp_path, composed.config("demo", "views", "tools")["services"]) as found:
        yield found


@contextmanager
def composition(tmp_path: Path, services: dict[str, Any]) -> Iterator[tuple[Composed, str]]:
    """Kafka with the file's settings, and the services that are not running yet."""
    settings = composed.broker_settings(services["kafka"])
    (port,) = kafka.free_ports(1)
    with kafka.Cluster(tmp_path / "kafka", settings=settings) as cluster:
        addresses = {
            "kafka:9092": cluster.bootstrap,
            "http://site:8000": f"http://127.0.0.1:{port}",
            "http://mirror:8000": f"http://localhost:{port}",
            "127.0.0.1:8000": f"127.0.0.1:{port}",
            "8000": str(port),
        }
        started = Composed(services, tmp_path, addresses)
        try:
            yield started, cluster.bootstrap
        finally:
            started.close()


def broker_knows(bootstrap: str) -> dict[str, Any]:
    """Its settings, by name."""
    broker = ConfigResource(ResourceType.BROKER, "1")
    client = AdminClient({"bootstrap.servers": bootstrap})
    (found,) = client.describe_configs([broker]).values()
    settings: dict[str, Any] = found.result()
    return settings


def verdicts(bootstrap: str) -> list[dict[str, Any]]:
    command = [BIN / "neardup", "verdicts", "--bootstrap", bootstrap, "--no-follow", "--json"]
    result = subprocess.run(command, capture_output=True, check=True)
    return [json.loads(row) for row in result.stdout.splitlines()]


def crawl(line: Composed, bootstrap: str, instance: str, before: int) -> Counter[str]:
    """Runs the crawler once; the kinds of the verdicts on what it published, once each of its pages has one."""
    code = line.start("crawler", instance).wait(PATIENCE_SECONDS)
    output = line.log(instance).read_text()
    assert code == 0, output
    published, gone, _ = (int(word.strip(",").split()[-1]) for word in output.splitlines()[-1].split(","))

    def output() -> list[dict[str, Any]]:
        found = [row for row in verdicts(bootstrap) if row["n"] == 0]
        assert len(found) <= before + published + gone, "more verdicts than pages"
        return found if len(found) == before + published + gone else []

    rows = eventually(output, "a verdict for each page")
    rows.sort(key=lambda row: int(row["page_id"]))
    return Counter(row["verdict"] for row in rows[before:])


def seen(path: str) -> dict[str, Any]:
    """What the views show, asked as a browser does."""
    request = urllib.request.Request(f"http://127.0.0.1:{VIEWS_PORT}/{path}")
    token = composed.config("views")["services"]["views"]["environment"]["NEARDUP_VIEWS_TOKEN"]
    request.add_header("Authorization", "Basic " + b64encode(f"me:{token}".encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found
    except OSError:  # not there yet
        return {}


def lose_the_index(services: Composed, text: dict[str, str]) -> None:
    """Stops the matcher, takes its volume away, and starts it: it takes up its newest checkpoint."""
    grace = composed.config()["services"]["matcher"]["stop_grace_period"]
    assert services.stop("matcher", 60) == 0, grace
    listed = services.start("checkpoints")
    assert listed.wait(PATIENCE_SECONDS) == 0
    assert services.log("checkpoints").read_text().strip(), "no checkpoint"
    state = Path(services.environment("matcher")["NEARDUP_STATE"])
    assert (state / "index").is_dir()
    shutil.rmtree(state)
    services.start("matcher", **text)
    eventually(lambda: "index restored" in services.log("matcher").read_text(), "the checkpoint is taken up")


@pytest.mark.whole
def test_the_topology_runs_from_crawler_to_verdict(line: tuple[Composed, str]) -> None:
    services, bootstrap = line
    asked = composed.broker_settings(composed.config()["services"]["kafka"])
    assert set(asked) <= set(broker_knows(bootstrap)), "a variable of Kafka's that is no setting of it"

    assert services.start("seed").wait(PATIENCE_SECONDS) == 0
    assert services.start("topics").wait(PATIENCE_SECONDS) == 0, services.log("topics").read_text()
    roles = {"sketcher-1": "sketcher", "sketcher-2": "sketcher", "matcher": "matcher", "views": "views"}
    ports = dict(zip(roles, kafka.free_ports(4), strict=True))
    # A checkpoint a message, as a crawl this small would not come to its first.
    names = {
        name: {"NEARDUP_METRICS_PORT": str(port), "NEARDUP_CHECKPOINT_MESSAGES": "1"} for name, port in ports.items()
    }
    for instance, name in roles.items():
        services.start(name, instance, **names[instance])
    services.start("site")
    eventually(lambda: services.healthy("site"), "the site")

    first = crawl(services, bootstrap, "crawl-1", 0)
    pages = 2 * (3 * ARTICLES + PRODUCTS + OLD + OTHER)
    assert first.total() == pages, first
    assert ARTICLES + PRODUCTS + OLD + OTHER <= first[Kind.UNIQUE] < pages / 2, first
    assert first[Kind.EXACT_DUPLICATE] + first[Kind.NEAR_DUPLICATE] > pages / 4, first

    second = crawl(services, bootstrap, "crawl-2", pages)
    assert second[Kind.GONE] == 2 * OLD, second
    assert second[Kind.EDITED] > 0, second
    assert second[Kind.UNCHANGED] > 0, second

    site = next(row["site"] for row in verdicts(bootstrap) if row["verdict"] == Kind.UNIQUE)
    eventually(lambda: seen(f"site.json?name={site}").get("site") == site, "the views follow, and ask for the token")

    lose_the_index(services, names["matcher"])
    third = crawl(services, bootstrap, "crawl-3", pages + second.total())
    assert third[Kind.UNIQUE] < first[Kind.UNIQUE] / 2, "it knows what it knew"

    for instance, name in roles.items():
        grace = composed.config(*PROFILES)["services"][name]["stop_grace_period"]
        assert services.stop(instance, 60 if grace == "1m0s" else float(grace.removesuffix("s"))) == 0, instance
