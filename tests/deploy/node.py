"""A small node: it takes every pod of the API server and runs its container as a process in the image's files.

What a kubelet does for our pods, and no more: volumes (empty, of secrets, of claims), variables (given, of secrets, of
resources), the probe for readiness, preStop and SIGTERM with the grace period, starting again. Pods share the machine's
network, so each gets a port of its own in place of 9464. No limit is enforced.
"""

import base64
import http.client
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from apiserver import Api, Json, Refused
from broker import kafka
from images import Container

NAME = "node"
_PORT = "9464"
_UID = 10001


@dataclass
class _Running:
    spec: Json
    process: subprocess.Popen[bytes]
    port: int
    restarts: int = 0
    ready: bool = False
    ending: threading.Thread | None = None
    given: Json = field(default_factory=dict)


class Node:
    """claims: folders of the claims by name, which outlive pods. log(pod): output of its container."""

    def __init__(self, api: Api, containers: Mapping[str, Container], folder: Path) -> None:
        """containers: by the name of the image."""
        self._api, self._containers, self.folder = api, containers, folder
        self._running: dict[str, _Running] = {}
        self._stop = threading.Event()
        self.trouble: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)
        api.ask("POST", "/api/v1/nodes", {"metadata": {"name": NAME, "labels": {"kubernetes.io/hostname": NAME}}})
        self._thread = threading.Thread(target=self._run, name="node", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for running in self._running.values():
            _kill(running.process)

    def log(self, pod: str) -> str:
        path = self.folder / f"{pod}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def claim(self, name: str) -> Path:
        return self.folder / "claims" / name

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            try:
                pods = self._api.get("/api/v1/pods")["items"]
                for pod in pods:
                    self._tend(pod)
                there = {pod["metadata"]["uid"] for pod in pods}
                for uid in set(self._running) - there:
                    _kill(self._running.pop(uid).process)
            except (OSError, http.client.HTTPException) as error:
                self.trouble.append(f"{error!r}")
            except Refused as error:
                if error.status not in (404, 409):
                    self.trouble.append(str(error))

    def _tend(self, pod: Json) -> None:
        meta, running = pod["metadata"], self._running.get(pod["metadata"]["uid"])
        if meta.get("deletionTimestamp"):
            self._end(pod, running)
        elif not pod["spec"].get("nodeName"):
            binding = {"metadata": {"name": meta["name"]}, "target": {"kind": "Node", "name": NAME}}
            self._api.ask("POST", f"{_path(pod)}/binding", binding)
        elif running is None and pod["status"].get("phase") == "Pending":
            self._start(pod)
        elif running is not None:
            self._look(pod, running)

    def _start(self, pod: Json) -> None:
        spec = pod["spec"]["containers"][0]
        (port,) = kafka.free_ports(1)
        try:
            environment = {each["name"]: self._value(pod, spec, each) for each in spec.get("env", [])}
            volumes = {mount["mountPath"]: self._volume(pod, mount["name"]) for mount in spec.get("volumeMounts", [])}
        except Refused as error:  # a secret that is not there yet: a kubelet waits for it, too
            self._tell(pod, {"phase": "Pending", "message": str(error)})
            return
        if environment.get("NEARDUP_METRICS_PORT") == _PORT:
            environment["NEARDUP_METRICS_PORT"] = str(port)
        process = self._launch(pod, spec.get("command"), spec.get("args", []), environment, volumes)
        fields = {"environment": environment, "volumes": volumes}
        self._running[pod["metadata"]["uid"]] = _Running(spec, process, port, given=fields)
        self._tell(pod, _status(spec, running=True, ready=False, restarts=0))

    def _launch(
        self,
        pod: Json,
        command: list[str] | None,
        arguments: list[str],
        environment: Mapping[str, str],
        volumes: Mapping[str, Path],
    ) -> subprocess.Popen[bytes]:
        spec = pod["spec"]["containers"][0]
        security = pod["spec"]["securityContext"]
        assert spec["securityContext"]["readOnlyRootFilesystem"]
        words = self._containers[spec["image"]].command(
            arguments,
            entrypoint=command,
            environment=environment,
            volumes=volumes,
            empty=(),
            user=f"{security['runAsUser']}:{security['runAsGroup']}",
        )
        with (self.folder / f"{pod['metadata']['name']}.log").open("ab") as log:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def _value(self, pod: Json, spec: Json, variable: Json) -> str:
        if "value" in variable or "valueFrom" not in variable:
            return str(variable.get("value", ""))
        source = variable["valueFrom"]
        if "secretKeyRef" in source:
            return self._secret(pod, source["secretKeyRef"]["name"])[source["secretKeyRef"]["key"]].decode()
        kind, _, what = source["resourceFieldRef"]["resource"].partition(".")
        amount = spec["resources"][kind][what]
        cores = float(amount[:-1]) / 1000 if amount.endswith("m") else float(amount)
        return str(int(-(-cores // 1)))

    def _secret(self, pod: Json, name: str) -> dict[str, bytes]:
        found = self._api.get(f"/api/v1/namespaces/{pod['metadata']['namespace']}/secrets/{name}")
        return {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}

    def _volume(self, pod: Json, name: str) -> Path:
        volume = next(each for each in pod["spec"]["volumes"] if each["name"] == name)
        own = self.folder / pod["metadata"]["uid"] / name
        if claim := volume.get("persistentVolumeClaim"):
            own = self.claim(claim["claimName"])
        own.mkdir(parents=True, exist_ok=True)
        if secret := volume.get("secret"):
            data = self._secret(pod, secret["secretName"])
            for item in secret["items"]:
                (own / item["path"]).write_bytes(data[item["key"]])
                os.chown(own / item["path"], 0, _UID)
                (own / item["path"]).chmod(secret["defaultMode"])
        else:
            os.chown(own, _UID, _UID)
        own.parent.chmod(0o755)
        return own

    def _look(self, pod: Json, running: _Running) -> None:
        code = running.process.poll()
        spec = running.spec
        if code is None:
            ready = "readinessProbe" not in spec or _asks(running.port, spec["readinessProbe"]["httpGet"]["path"])
            if ready != running.ready:
                running.ready = ready
                self._tell(pod, _status(spec, running=True, ready=ready, restarts=running.restarts))
        elif pod["spec"]["restartPolicy"] == "Never":
            if pod["status"].get("phase") == "Running":
                ended = _status(spec, running=False, ready=False, restarts=0, code=code)
                self._tell(pod, ended | {"phase": "Failed" if code else "Succeeded"})
        else:
            running.restarts += 1
            running.ready = False
            running.process = self._launch(
                pod, spec.get("command"), spec.get("args", []), running.given["environment"], running.given["volumes"]
            )
            self._tell(pod, _status(spec, running=True, ready=False, restarts=running.restarts))

    def _end(self, pod: Json, running: _Running | None) -> None:
        if running is None or running.process.poll() is not None:
            self._api.ask("DELETE", _path(pod), {"gracePeriodSeconds": 0})
        elif running.ending is None:
            running.ending = threading.Thread(target=self._stop_in_order, args=(pod, running), daemon=True)
            running.ending.start()

    def _stop_in_order(self, pod: Json, running: _Running) -> None:
        deadline = time.monotonic() + pod["spec"]["terminationGracePeriodSeconds"]
        hook = running.spec.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
        if hook:
            words = [word.replace(_PORT, str(running.port)) for word in hook]
            given = running.given
            hooked = self._launch(pod, words[:1], words[1:], given["environment"], given["volumes"])
            hooked.wait(max(0.0, deadline - time.monotonic()))
        running.process.send_signal(signal.SIGTERM)
        try:
            running.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.trouble.append(f"{pod['metadata']['name']} had to be killed")
            _kill(running.process)

    def _tell(self, pod: Json, status: Json) -> None:
        path = f"{_path(pod)}/status"
        self._api.patch(path, {"status": {"hostIP": "127.0.0.1", "podIP": "127.0.0.1", **status}})


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _status(spec: Json, *, running: bool, ready: bool, restarts: int, code: int = 0) -> Json:
    truth = {True: "True", False: "False"}[ready]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    state: Json = {"running": {"startedAt": now}} if running else {"terminated": {"exitCode": code}}
    return {
        "phase": "Running",
        "conditions": [{"type": name, "status": truth} for name in ("Ready", "ContainersReady")],
        "containerStatuses": [
            {
                "name": spec["name"],
                "image": spec["image"],
                "imageID": spec["image"],
                "ready": ready,
                "restartCount": restarts,
                "started": running,
                "state": state,
            }
        ],
    }


def _asks(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
