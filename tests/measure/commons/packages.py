"""The packages of the benchmark: the list, the reserved names, and the clients that fetch them into a cache.

A name is *reserved* if the BLAKE2b digest of its source begins with 0, 1, 2 or 3: such packages are kept for judging a
rule that was chosen here, so they are not fetched or read.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("packages.tsv")
_FETCH_S_MAX = 1800
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class Package(NamedTuple):
    """One line of the list.

    client: "debian", "maven", "pypi" or "npm". source: the name that is checked for being reserved. releases: suites of
    Debian, or versions. generator: the program that made most of the pages.
    """

    client: str
    name: str
    source: str
    releases: tuple[str, ...]
    generator: str


def reserved(source: str) -> bool:
    return blake2b(source.encode()).hexdigest()[0] in "0123"


def listed(path: Path = LIST) -> list[Package]:
    """All packages. Raises ValueError for a reserved one."""
    packages = []
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        client, name, source, releases, generator = line.split("\t")
        if reserved(source):
            raise ValueError(f"{path}: {name} is reserved: remove the line, and never fetch the package")
        packages.append(Package(client, name, source, tuple(releases.split()), generator))
    return packages


def cache_folder() -> Path:
    """Where archives and results are kept, outside the repository."""
    given = os.environ.get("NEARDUP_TEST_COMMONS")
    return Path(given) if given else Path.home() / ".cache" / "neardup" / "commons"


def fetch(packages: Sequence[Package], folder: Path) -> Iterator[str]:
    """Fetches what the cache lacks, each package by its client. Yields a line for each one that cannot be had."""
    for client, get in (("debian", _debian), ("maven", _maven), ("pypi", _pypi), ("npm", _npm)):
        listed_here = [one for one in packages if one.client == client]
        wanted = [(package, release) for package in listed_here for release in package.releases]
        missing = [(package, release) for package, release in wanted if not archive_of(package, release, folder)]
        if missing:
            yield from get(missing, folder)


def archive_of(package: Package, release: str, folder: Path) -> Path | None:
    """The archive of one release, if it is in the cache."""
    name = package.name.rpartition(":")[2].lstrip("@").replace("/", "-")
    if package.client == "debian":
        return next((folder / "debian" / release).glob(f"{name}_*.deb"), None)
    found = (folder / package.client).glob("*")
    start = f"{name}-{release}".lower().replace("_", "-")
    return next((path for path in sorted(found) if path.name.lower().replace("_", "-").startswith(start)), None)


def archives_of(package: Package, folder: Path) -> list[tuple[str, Path]]:
    """(release, archive) of the releases that are in the cache."""
    found = [(release, archive_of(package, release, folder)) for release in package.releases]
    return [(release, path) for release, path in found if path]


_Wanted = Sequence[tuple[Package, str]]


def _run(command: Sequence[str], where: Path) -> str:
    """The last line of what a client says where it fails, else an empty string."""
    where.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command, cwd=where, capture_output=True, text=True, timeout=_FETCH_S_MAX, check=False, stdin=subprocess.DEVNULL
    )
    return (done.stderr.strip() or done.stdout.strip() or "failed").splitlines()[-1] if done.returncode else ""


def _debian(wanted: _Wanted, folder: Path) -> Iterator[str]:
    """With lists of its own, so that the machine's stay as they are; the archive is the machine's own, too."""
    if not shutil.which("apt-get"):
        yield "debian: this machine has no apt-get"
        return
    suites = sorted({release for _, release in wanted})
    command = ["apt-get", *_apt(folder / "apt", suites), "-qq", "download"]
    for suite in suites:
        names = [f"{package.name}/{suite}" for package, release in wanted if release == suite]
        if _run([*command, *names], folder / "debian" / suite):
            for name in names:  # one that is not there ends the command, so each alone
                if problem := _run([*command, name], folder / "debian" / suite):
                    yield f"debian: {name}: {problem}"


def _apt(own: Path, suites: Sequence[str]) -> list[str]:
    """Options of apt-get for these suites of the archive that the machine itself uses."""
    for needed in ("state/lists/partial", "cache/archives/partial"):
        (own / needed).mkdir(parents=True, exist_ok=True)
    listing = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"], capture_output=True, text=True, check=True
    )
    known = [line.split() for line in listing.stdout.splitlines()]
    archive = next(uri for uri, *release in known if release and "-" not in release[0])
    sources = own / "sources.list"
    text = "".join(f"deb [signed-by={_KEYRING}] {archive} {suite} main\n" for suite in suites)
    options = [f"Dir::State={own}/state", f"Dir::Cache={own}/cache", f"Dir::Etc::sourcelist={sources}"]
    options += ["Dir::Etc::sourceparts=/dev/null", "APT::Sandbox::User="]
    flags = [word for option in options for word in ("-o", option)]
    if not sources.exists() or sources.read_text() != text:
        sources.write_text(text)
        subprocess.run(["apt-get", *flags, "-qq", "update"], check=True, timeout=_FETCH_S_MAX)
    return flags


def _maven(wanted: _Wanted, folder: Path) -> Iterator[str]:
    for package, version in wanted:
        artifact = f"{package.name}:{version}:jar:javadoc"
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
        command = ["mvn", "-q", "-B", goal, f"-Dartifact={artifact}", f"-DoutputDirectory={folder / 'maven'}"]
        if problem := _run(command, folder / "maven"):
            yield f"maven: {artifact}: {problem}"


def _pypi(wanted: _Wanted, folder: Path) -> Iterator[str]:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation", "--no-binary", ":all:"]
    for package, version in wanted:
        if problem := _run([*pip, f"{package.name}=={version}"], folder / "pypi"):
            yield f"pypi: {package.name} {version}: {problem}"


def _npm(wanted: _Wanted, folder: Path) -> Iterator[str]:
    for package, version in wanted:
        if problem := _run(["npm", "pack", "--silent", f"{package.name}@{version}"], folder / "npm"):
            yield f"npm: {package.name} {version}: {problem}"
