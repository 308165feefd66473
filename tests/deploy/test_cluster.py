"""The chart in a real API server with Pod Security at "restricted", its pods really run, in front of a real broker."""

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apiserver
import charts
import images
import pytest
from apiserver import Api, Json, Refused
from broker import PATIENCE_SECONDS, eventually, kafka
from charts import CHART, MATRIX, documents, template
from images import Container
from node import Node
from tools import Tool

from streams.client import PageProducer, VerdictConsumer
from streams.kafka import Admin, Connection

pytestmark = pytest.mark.whole
NAMESPACE, TAG = "web", "0.0.1-test"
#: Two images of one content: an upgrade changes the tag.
TAGS = (TAG, "0.0.2-test")


@dataclass
class Place:
    """Where the chart is installed. folder: for values; environment: for helm."""

    api: Api
    node: Node
    bootstrap: str
    folder: Path
    environment: dict[str, str]

    def helm(self, *arguments: str) -> str:
        return charts.helm(*arguments, "--namespace", NAMESPACE, environment=self.environment)

    def values(self, **more: Any) -> list[str]:
        """Arguments for the values of a small installation."""
        port = int(self.bootstrap.rpartition(":")[2])
        small = {
            "image": {"tag": TAG},
            "kafka": {"bootstrap": self.bootstrap},
            "topics": {"partitions": 2, "replicas": 1},
            "networkPolicy": {"kafkaPorts": [port]},
            "settings": {"batch_ms": 5, "threads": 1},
        }
        return charts.given(self.folder, charts.merged(small, more))

    def get(self, path: str) -> Json | None:
        return self.api.find(path.replace("/ns/", f"/namespaces/{NAMESPACE}/"))

    def pods(self, component: str) -> list[Json]:
        selector = f"labelSelector=app.kubernetes.io/component={component}"
        found: list[Json] = self.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods?{selector}")["items"]
        return found

    def seed(self) -> str:
        secret = self.get("/api/v1/ns/secrets/crawl-neardup-seed")
        assert secret is not None
        return base64.b64decode(secret["data"]["seed"]).decode()

    def output(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.node.folder.glob("*.log")))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Iterator[Place]:
    for program in ("buildah", "debootstrap", "helm", "etcd", "kube-apiserver"):
        tool(program)
    folder = tmp_path_factory.mktemp("cluster")
    images.build("neardup", "localhost/neardup:test", VERSION="9.9.9", REVISION="f00")
    with (
        Container("localhost/neardup:test") as container,
        kafka.Cluster(folder / "kafka") as cluster,
        apiserver.running(folder / "api") as (api, config),
    ):
        level = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
        api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": level}})
        node = Node(api, {f"neardup:{tag}": container for tag in TAGS}, folder / "node")
        environment = {**os.environ, "KUBECONFIG": str(config), "HELM_CACHE_HOME": str(folder / "helm")}
        try:
            yield Place(api, node, cluster.bootstrap, folder, environment)
        finally:
            node.close()


class Nothing:
    def load(self) -> dict[str, int]:
        return {}


def published(place: Place, url: str) -> str:
    """Publishes one page, always the same, and the kind of its verdict."""
    body = b"<title>Wool</title><p>" + b" ".join(b"word%d" % number for number in range(100))
    with VerdictConsumer(place.bootstrap, Nothing(), start="end") as consumer:
        with PageProducer(place.bootstrap) as pages:
            pages.publish(url, body, content_type="text/html")
        for batch in consumer.batches(wait_s=PATIENCE_SECONDS):
            for verdict in batch.verdicts:
                if verdict["url"] == url:
                    return str(verdict["verdict"])
    raise AssertionError(f"no verdict for {url}: {place.output()}")


def test_admission_is_really_on(place: Place) -> None:
    container = {"name": "x", "image": "x"}
    pod = {"metadata": {"name": "loose"}, "spec": {"containers": [container]}}
    with pytest.raises(Refused, match='violates PodSecurity "restricted:latest"'):
        place.api.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", pod)


@pytest.mark.parametrize("name", MATRIX)
def test_api_server_takes_all_rendered_objects(place: Place, name: str) -> None:
    """As a dry run with strict validation: unknown and doubled fields are refused, and so is what is too loose."""
    plural = {"Ingress": "ingresses", "NetworkPolicy": "networkpolicies"}
    for document in documents(template(place.folder, MATRIX[name])):
        group, kind = document["apiVersion"], document["kind"]
        if group.startswith(("monitoring.coreos.com", "keda.sh")):
            continue  # of operators that are not here
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        path = f"{root}/namespaces/{NAMESPACE}/{plural.get(kind, kind.lower() + 's')}"
        place.api.ask("POST", f"{path}?dryRun=All&fieldValidation=Strict", document)
        assert place.api.warnings == [], f"{kind}: {place.api.warnings}"


def test_install_upgrade_rollback_uninstall(place: Place) -> None:
    page = "https://a.example/wool"
    wait = ("--wait", "--timeout", "300s")

    notes = place.helm("install", "crawl", str(CHART), *place.values(), *wait)
    assert "helm -n web test crawl" in notes
    assert {"pages", "pages.rejected", "sketches", "verdicts"} <= set(
        Admin(Connection(place.bootstrap)).topics(["pages", "pages.rejected", "sketches", "verdicts"])
    )
    assert len(place.pods("sketcher")) == 2
    assert "Phase:          Succeeded" in place.helm("test", "crawl", "--timeout", "300s")
    assert published(place, page) == "unique"
    seed = place.seed()

    # A bad value changes nothing, and nothing begins.
    with pytest.raises(charts.Refused, match="tape_min"):
        place.helm("upgrade", "crawl", str(CHART), *place.values(decider={"tape_min": 2}), *wait)

    # Another image, another number of sketchers, checkpoints and views; the index and the seed stay.
    before = place.pods("matcher")[0]["metadata"]["uid"]
    copies = {"checkpoints": {"existingClaim": "copies", "messages": 1}}
    more = place.values(image={"tag": TAGS[1]}, sketcher={"replicas": 3}, views={"enabled": True}, matcher=copies)
    place.helm("upgrade", "crawl", str(CHART), *more, *wait)
    assert len([pod for pod in place.pods("sketcher") if not pod["metadata"].get("deletionTimestamp")]) == 3
    (matcher,) = place.pods("matcher")
    assert matcher["metadata"]["uid"] != before
    assert matcher["spec"]["containers"][0]["image"] == f"neardup:{TAGS[1]}"
    assert place.seed() == seed
    assert published(place, page) == "unchanged"
    kept = place.node.claim("copies") / "checkpoints"
    eventually(lambda: kept.is_dir() and any(kept.glob("*.json")), "a checkpoint on the claim")
    (views,) = place.pods("views")
    assert any(each["type"] == "Ready" and each["status"] == "True" for each in views["status"]["conditions"])

    place.helm("rollback", "crawl", "1", *wait)
    (matcher,) = place.pods("matcher")
    assert matcher["spec"]["containers"][0]["image"] == f"neardup:{TAG}"
    assert published(place, page) == "unchanged"

    # Two writers of one generation are refused; so is a claim that is used.
    with pytest.raises(charts.Refused, match=r"release crawl of this namespace is neardup\.match already"):
        place.helm("install", "second", str(CHART), *place.values())
    claim = {"persistence": {"existingClaim": "index"}}
    place.helm("install", "third", str(CHART), *place.values(kafka={"generation": "g3"}, matcher=claim))
    with pytest.raises(charts.Refused, match="index is already used by third"):
        place.helm("install", "fourth", str(CHART), *place.values(kafka={"generation": "g4"}, matcher=claim))
    place.helm("uninstall", "third", "--wait")

    # What cannot be made again stays: the seed, the claim, the topics.
    place.helm("uninstall", "crawl", "--wait")
    eventually(lambda: not place.pods("matcher") and not place.pods("sketcher"), "the end of all pods")
    assert place.seed() == seed
    assert place.get("/api/v1/ns/persistentvolumeclaims/state-crawl-neardup-matcher-0") is not None
    place.helm("install", "crawl", str(CHART), *place.values(), *wait)
    assert place.seed() == seed
    assert published(place, page) == "unchanged"
    place.helm("uninstall", "crawl", "--wait")

    assert place.node.trouble == []
    assert seed not in place.output()
    assert str(int(seed, 16)) not in place.output()
    events = json.dumps(place.api.get(f"/api/v1/namespaces/{NAMESPACE}/events"))
    assert seed not in events
