"""Helm on our chart: what it renders, and what it refuses."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from tools import need

CHART = Path(__file__).resolve().parents[2] / "helm" / "neardup"
#: The oldest version that Chart.yaml admits, one between, and the newest whose schemas are at hand.
KUBERNETES = ("1.27", "1.32", "1.37")
#: What a first installation gives.
LEAST = {"kafka": {"bootstrap": "kafka-0.kafka:9092"}}

#: Values that make every part of the chart say something, by what they are about.
MATRIX: Mapping[str, Mapping[str, Any]] = {
    "least": {},
    "secured": {
        "kafka": {
            "bootstrap": "a.example:9094, b.example:9094",
            "security": {"protocol": "SASL_SSL"},
            "sasl": {"secret": "kafka-user", "username": "neardup"},
            "ca": {"secret": "kafka-ca"},
        },
        "views": {"enabled": True},
    },
    "certificates": {
        "kafka": {
            "security": {"protocol": "SSL"},
            "ca": {"secret": "cluster-ca-cert"},
            "certificate": {
                "secret": "kafka-user",
                "certificateKey": "user.crt",
                "keyKey": "user.key",
                "passwordKey": "p",
            },
        },
    },
    "scaled": {"sketcher": {"autoscaling": {"enabled": True}}},
    "scaled by lag": {
        "kafka": {
            "generation": "g2",
            "security": {"protocol": "SASL_SSL"},
            "sasl": {"secret": "u", "mechanism": "PLAIN"},
        },
        "sketcher": {"keda": {"enabled": True, "authenticationRef": "kafka"}},
    },
    "watched": {
        "monitoring": {
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
            "prometheusRule": {"enabled": True},
            "dashboards": {"enabled": True},
        },
    },
    "set": {
        "settings": {
            "message_bytes_max": 100_000_000,
            "flush_ms": 5000,
            "codec": "json",
            "threads": 3,
            "log_format": "human",
        },
        "decider": {"tape_min": 0.8, "rule": "tape"},
        "kafka": {"topics": {"audit": "audit"}, "config": {"match.retry.backoff.ms": 5, "socket.nagle.disable": True}},
    },
    "kept and seen": {
        "matcher": {"checkpoints": {"url": "s3://crawl/neardup", "secret": "store", "messages": 100_000, "kept": 5}},
        "views": {"enabled": True, "token": {"secret": "views"}, "names": ["views.example", "localhost:8000"]},
    },
    "several views": {
        "kafka": {"topics": {"audit": "audit"}},
        "views": {"enabled": True, "replicas": 3, "token": {"secret": "views"}, "labelling": True},
        "networkPolicy": {"viewsPeers": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
    },
    "asked": {
        "ask": {"enabled": True, "token": {"secret": "ask"}, "names": ["ask.example"]},
        "monitoring": {"serviceMonitor": {"enabled": True}},
        "networkPolicy": {"askPeers": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "metricsPeers": [{"podSelector": {}}]},
    },
    "asked through a forwarded port": {"ask": {"enabled": True}},
    "with a standby": {"matcher": {"standby": True, "newDecider": True, "checkpoints": {"url": "s3://crawl/neardup"}}},
    "filled from history": {
        "kafka": {"generation": "g2"},
        "sketcher": {"replicas": 0},
        "matcher": {"backfill": True, "extraArgs": ["--sketches-of="], "checkpoints": {"url": "s3://crawl/g2"}},
    },
    "kept on a claim": {
        "matcher": {"checkpoints": {"existingClaim": "copies"}},
        "views": {"enabled": True, "persistence": {"storageClass": "local-nvme"}, "podLabels": {"a": "b"}},
        "decider": {"rule": "tape"},
    },
    "bare": {
        "topics": {"create": False},
        "serviceAccount": {"create": False},
        "podDisruptionBudget": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "seed": {"existingSecret": "our-seed", "key": "number"},
        "matcher": {"persistence": {"existingClaim": "old-index"}, "newDecider": True},
    },
    "placed": {
        "commonLabels": {"team": "crawl"},
        "image": {"digest": "sha256:" + 64 * "a", "pullSecrets": ["registry"]},
        "sketcher": {
            "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
            "nodeSelector": {"kind": "compute"},
            "tolerations": [{"key": "crawl", "operator": "Exists"}],
            "podAnnotations": {"a": "b"},
        },
        "matcher": {
            "persistence": {"storageClass": "local-nvme", "accessMode": "ReadWriteOncePod", "size": "2.5Ti"},
            "affinity": {"nodeAffinity": {}},
            "priorityClassName": "high",
            "podLabels": {"disk": "nvme"},
        },
    },
}


#: The same in C, where PyYAML was built with it: in Python reading takes longer than rendering.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Refused(Exception):
    """Helm refused; the text is its output."""


def helm(*arguments: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """What helm prints. Raises Refused."""
    done = subprocess.run(
        [need("helm"), *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment
    )
    if done.returncode:
        raise Refused(done.stderr)
    return done.stdout


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(base)
    for key, value in more.items():
        found[key] = (
            merged(found[key], value) if isinstance(found.get(key), dict) and isinstance(value, dict) else value
        )
    return found


def given(folder: Path, values: Mapping[str, Any]) -> list[str]:
    """Arguments of helm for values beyond LEAST."""
    path = folder / "values.json"
    path.write_text(json.dumps(merged(LEAST, values)))
    return ["--values", str(path)]


def template(folder: Path, values: Mapping[str, Any], kubernetes: str = KUBERNETES[1]) -> str:
    return helm("template", "r", CHART, "--namespace", "n", "--kube-version", f"{kubernetes}.0", *given(folder, values))


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.load_all(text, _Loader) if document]


def of(found: Sequence[Mapping[str, Any]], kind: str, name: str = "") -> Mapping[str, Any]:
    """The one resource of a kind, or the one whose name ends so."""
    (one,) = (each for each in found if each["kind"] == kind and each["metadata"]["name"].endswith(name))
    return one
