"""What compose.yaml says, as processes of this machine: Kafka from jars, the rest from this environment.

Compose itself resolves the file. This module has all differences from containers: host names and ports
become addresses of 127.0.0.1, volumes become folders, the image's paths become the repository's.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools import need, run

REPOSITORY = Path(__file__).resolve().parents[2]
FILE = REPOSITORY / "deploy" / "compose.yaml"
BIN = Path(sys.executable).parent
#: What the image sets, and what of it matters to a process here.
DOCKERFILE = REPOSITORY / "deploy" / "Dockerfile"


def config(*profiles: str, **environment: str) -> dict[str, Any]:
    """The file as compose understands it. Raises Missing with what it says where it does not."""
    chosen = [word for profile in profiles for word in ("--profile", profile)]
    result = run(need("docker-compose"), "-f", FILE, *chosen, "config", "--format", "json", env=environment)
    resolved: dict[str, Any] = json.loads(result)
    return resolved


def image_environment() -> dict[str, str]:
    """The variables of the Dockerfile's ENV that are ours."""
    return dict(re.findall(r"^\s*(?:ENV )?(NEARDUP_\w+)=(\S+)", DOCKERFILE.read_text(), re.MULTILINE))


def broker_settings(service: Mapping[str, Any]) -> dict[str, str]:
    """The settings of Kafka's own image: KAFKA_LOG_DIRS is log.dirs. Without those that are the container's."""
    named = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in service["environment"].items()
        if name != "KAFKA_HEAP_OPTS"
    }
    place = ("listeners", "advertised.listeners", "controller.quorum.voters", "log.dirs", "node.id")
    protocols = ("listener.security.protocol.map",)  # names a listener that only the container has
    return {name: value for name, value in named.items() if name not in (*place, *protocols)}


class Composed:
    """Processes by service. addresses: what stands for `name:port` of the file."""

    def __init__(self, services: Mapping[str, Any], folder: Path, addresses: Mapping[str, str]) -> None:
        self._services, self._folder, self._addresses = services, folder, addresses
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def here(self, text: str, service: Mapping[str, Any]) -> str:
        """A text of the file with the names of this machine."""
        for name, address in self._addresses.items():
            text = text.replace(name, address)
        for volume in service.get("volumes", []):
            if volume["type"] == "volume":
                text = text.replace(volume["target"], str(self._folder / volume["source"]))
        return text.replace("/opt/demo/", f"{REPOSITORY}/deploy/demo/").replace("0.0.0.0", "127.0.0.1")

    def command(self, name: str) -> list[str]:
        service = self._services[name]
        image = ["python3"] if service["build"]["target"] == "crawler" else ["neardup"]
        words = [*(service["entrypoint"] or image), *(service["command"] or [])]
        return [str(BIN / words[0]), *(self.here(word, service) for word in words[1:])]

    def environment(self, name: str, **more: str) -> dict[str, str]:
        service = self._services[name]
        for volume in service.get("volumes", []):
            (self._folder / volume["source"]).mkdir(parents=True, exist_ok=True)
        given = {**image_environment(), **service.get("environment", {})}
        own = {key: value for key, value in os.environ.items() if not key.startswith("NEARDUP_")}
        return {**own, **{key: self.here(value, service) for key, value in given.items()}, **more}

    def log(self, instance: str) -> Path:
        return self._folder / f"{instance}.log"

    def start(self, name: str, instance: str = "", **more: str) -> subprocess.Popen[bytes]:
        """One container of a service, as a process whose log is `instance`.log."""
        instance = instance or name
        with self.log(instance).open("ab") as log:
            self._running[instance] = subprocess.Popen(
                self.command(name),
                env=self.environment(name, **more),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self._running[instance]

    def healthy(self, name: str) -> bool:
        """The service's own health check, run here."""
        service = self._services[name]
        test: Sequence[str] = service["healthcheck"]["test"]
        assert test[0] == "CMD"
        words = [str(BIN / test[1]), *(self.here(word, service) for word in test[2:])]
        return subprocess.run(words, env=self.environment(name), capture_output=True).returncode == 0

    def stop(self, instance: str, seconds: float) -> int:
        """SIGTERM, as compose does; the exit code. Raises TimeoutExpired after the service's grace period."""
        process = self._running[instance]
        process.terminate()
        return process.wait(seconds)

    def close(self) -> None:
        for process in self._running.values():
            if process.poll() is None:
                process.kill()
            process.wait()
