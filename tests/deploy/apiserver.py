"""A real Kubernetes API server with its controllers: what Helm installs into. Pods are run by `node`.

etcd, kube-apiserver and kube-controller-manager listen on 127.0.0.1 and end with `close`. Pod Security admission is on,
as everywhere; of the admission plugins only that for tokens of accounts is off, as no key of a cluster is made.
"""

import http.client
import json
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from broker import eventually, kafka
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tools import need

TOKEN = "a-token-of-this-test-alone"
#: Those that make something of what the chart has.
CONTROLLERS = (
    *("deployment-controller", "replicaset-controller", "statefulset-controller", "job-controller"),
    *("namespace-controller", "garbage-collector-controller", "disruption-controller"),
)
Json = dict[str, Any]


class Refused(Exception):
    """The API server refused. status: HTTP's; text: its reason."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status, self.text = status, text


class Api:
    """Requests, one at a time for each thread that makes its own."""

    def __init__(self, port: int) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its own certificate, on the loopback
        self._make = lambda: http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)

    def ask(self, method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
        """Raises Refused, and OSError while it is not there."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind, "Accept": "application/json"}
        connection = self._make()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            self.warnings = answer.headers.get_all("Warning") or []
        finally:
            connection.close()
        if answer.status >= 400:
            with suppress(ValueError, KeyError):
                text = json.loads(text)["message"]
            raise Refused(answer.status, text)
        found: Json = json.loads(text) if text.startswith("{") else {"text": text}
        return found

    def get(self, path: str) -> Json:
        return self.ask("GET", path)

    def find(self, path: str) -> Json | None:
        """None if there is no such thing."""
        try:
            return self.get(path)
        except Refused as error:
            if error.status != 404:
                raise
            return None

    def patch(self, path: str, body: Json) -> Json:
        return self.ask("PATCH", path, body, "application/merge-patch+json")


def _keys(folder: Path) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path = folder / "accounts.key"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


def kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [
            {"name": "test", "cluster": {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}}
        ],
        "users": [{"name": "test", "user": {"token": TOKEN}}],
    }
    path.write_text(json.dumps(config))
    return path


@contextmanager
def running(folder: Path) -> Iterator[tuple[Api, Path]]:
    """The API and a kubeconfig for it."""
    client, peer, port = kafka.free_ports(3)
    folder.mkdir(parents=True, exist_ok=True)
    key, tokens = _keys(folder), folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
    processes: list[subprocess.Popen[bytes]] = []

    def start(program: str, *arguments: str) -> None:
        with (folder / f"{program}.log").open("wb") as log:
            command = [str(need(program)), *arguments]
            processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder))

    def up(ask: Callable[[], object]) -> bool:
        for process in processes:
            assert process.poll() is None, f"{process.args}: see {folder}"
        try:
            ask()
        except (OSError, Refused, http.client.HTTPException):
            return False
        return True

    here = "http://127.0.0.1:"
    try:
        start(
            "etcd",
            f"--data-dir={folder}/etcd",
            *(f"--listen-client-urls={here}{client}", f"--advertise-client-urls={here}{client}"),
            *(f"--listen-peer-urls={here}{peer}", f"--initial-advertise-peer-urls={here}{peer}"),
            f"--initial-cluster=default={here}{peer}",
            "--unsafe-no-fsync",
        )
        start(
            "kube-apiserver",
            *(f"--etcd-servers={here}{client}", "--bind-address=127.0.0.1", f"--secure-port={port}"),
            *(f"--cert-dir={folder}/certificates", f"--token-auth-file={tokens}", "--authorization-mode=RBAC"),
            *("--service-account-issuer=https://test.invalid", f"--service-account-key-file={key}"),
            *(f"--service-account-signing-key-file={key}", "--service-cluster-ip-range=10.96.0.0/24"),
            "--disable-admission-plugins=ServiceAccount",
        )
        api = Api(port)
        eventually(lambda: up(lambda: api.get("/readyz")), "the API server")
        config = kubeconfig(folder, port)
        start(
            "kube-controller-manager",
            *(f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0"),
            *(f"--controllers={','.join(CONTROLLERS)}", f"--service-account-private-key-file={key}"),
            "--concurrent-gc-syncs=2",
        )
        yield api, config
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
