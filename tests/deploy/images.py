"""The image, really built by buildah where no container engine runs, and processes in it.

The base is a stand-in made with debootstrap: Debian with its own Python. A process gets the image's user, environment,
entry point and root, read-only, without a container's other walls: mount namespaces are all that is needed for that.
"""

import json
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tools import cache_folder, need, run

SUITE = "bookworm"
PACKAGES = ("python3-venv", "python3-pip", "ca-certificates")
STANDIN = f"localhost/python-standin:{SUITE}"
REPOSITORY = Path(__file__).resolve().parents[2]

#: Where this machine keeps what its own network needs; a build has to reach the package index, too.
_NETWORK = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")


@cache
def _storage() -> tuple[str, ...]:
    """Overlays share what layers have in common; where this machine knows none, each layer is a copy."""
    folder = cache_folder() / "images"
    known = Path("/proc/filesystems").read_text().split()
    driver = "overlay" if "overlay" in known else "vfs"
    return ("--storage-driver", driver, "--root", f"{folder}/{driver}", "--runroot", f"{folder}/{driver}-run")


def buildah(*arguments: str | Path) -> str:
    """Returns the output of buildah. Raises Missing with its last line."""
    return run(need("buildah"), *_storage(), *arguments)


def has(image: str) -> bool:
    return bool(buildah("images", "--quiet", "--filter", f"reference={image}").strip())


def standin() -> str:
    """The base image, made the first time: about a minute."""
    if has(STANDIN):
        return STANDIN
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="standin-") as name:
        root = Path(name) / "root"
        run(need("debootstrap"), "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, root)
        shutil.rmtree(root / "var" / "cache" / "apt", ignore_errors=True)
        shutil.rmtree(root / "var" / "lib" / "apt" / "lists", ignore_errors=True)
        for path in map(Path, _NETWORK):
            if path.exists():
                shutil.copy(path, root / path.relative_to("/"))
        container = buildah("from", "scratch").strip()
        try:
            buildah("add", "--quiet", container, root, "/")
            buildah("commit", "--quiet", container, STANDIN)
        finally:
            buildah("rm", container)
    return STANDIN


def build(target: str, tag: str, **arguments: str) -> str:
    """Builds a target of the Dockerfile on the stand-in; the image's id. Layers of an earlier build serve again."""
    given = {"PYTHON_IMAGE": standin(), **arguments}
    # Of the two formats, OCI's has no health check.
    return buildah(
        *("build", "--isolation", "chroot", "--pull-never", "--layers", "--format", "docker", "--quiet"),
        *("--target", target, "--tag", tag),
        *("--file", REPOSITORY / "deploy" / "Dockerfile"),
        *("--ignorefile", REPOSITORY / "deploy" / "Dockerfile.dockerignore"),
        *(word for name, value in given.items() for word in ("--build-arg", f"{name}={value}")),
        REPOSITORY,
    ).strip()


def inspect(image: str) -> dict[str, Any]:
    """The image's configuration."""
    config: dict[str, Any] = json.loads(buildah("inspect", "--type", "image", image))["Docker"]["config"]
    return config


class Container:
    """An image's files, and processes in them that see no others and can write none of them. A context manager."""

    def __init__(self, image: str) -> None:
        self.config = inspect(image)
        self._id = buildah("from", "--pull-never", image).strip()
        self.root = Path(buildah("mount", self._id).strip())

    def __enter__(self) -> "Container":
        return self

    def __exit__(self, *_: object) -> None:
        buildah("rm", self._id)

    def command(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        volumes: Mapping[str, Path] | None = None,
        entrypoint: Sequence[str] | None = None,
        user: str = "",
        empty: Sequence[str] = ("/tmp",),
    ) -> list[str]:
        """The command line of a process: for `subprocess`, as root.

        volumes: folders of this machine by where they appear. empty: what a fresh, writable folder hides. entrypoint,
        user: instead of the image's. The network is this machine's.
        """
        lines = ["set -eu", 'mount --bind "$0" "$0"']
        for place in ("/proc", "/dev"):
            lines.append(f'mount --rbind {place} "$0{place}"')
        lines += [f'mkdir -p "$0{place}"' for place in (*empty, *(volumes or {}))]
        lines.append('mount -o remount,bind,ro "$0"')
        lines += [f'mount -t tmpfs -o mode=1777 tmpfs "$0{place}"' for place in empty]
        for place, folder in (volumes or {}).items():
            lines.append(f'mount --bind {shlex.quote(str(folder))} "$0{place}"')
        lines.append('exec "$@"')
        who = user or self.config["User"]
        given = [*self.config["Env"], *(f"{name}={value}" for name, value in (environment or {}).items())]
        words = [*(self.config["Entrypoint"] if entrypoint is None else entrypoint), *arguments]
        return [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(lines), str(self.root)),
            *("setpriv", "--no-new-privs", "chroot", f"--userspec={who}", "--groups=", str(self.root)),
            *("env", "-i", "-C", self.config["WorkingDir"], *given, *words),
        ]
