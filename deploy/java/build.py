"""Compiles the Java client into build/java/neardup-client.jar, and its libraries into build/java/libs.

    python deploy/java/build.py                    # needs a JDK, 17 or newer, and Maven
    python deploy/java/build.py --nutch            # and the plugin of Apache Nutch: build/java/neardup-publish

As a module it uses the standard library only.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: What the plugin is compiled against. Nutch has both; their own dependencies are not needed for that.
PROVIDED = ("org.apache.nutch:nutch:1.21", "org.apache.hadoop:hadoop-common:3.4.1")
#: The plugin's libraries that Nutch and Hadoop do not have.
PLUGIN_LIBRARIES = ("kafka-clients", "lz4-java", "snappy-java", "zstd-jni")
RELEASE = "17"
#: A compiler that ends after a second is not worth optimising: half of its processor time.
BRIEF = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")


class BuildFailed(Exception):
    """A program is missing, or has failed; the text has its output."""


def _run(*command: str) -> None:
    if shutil.which(command[0]) is None:
        package = "maven" if command[0] == "mvn" else "openjdk-17-jdk-headless"
        raise BuildFailed(f"{command[0]} is missing; on Debian: apt-get install {package}")
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise BuildFailed(f"{' '.join(command[:3])} ... failed:\n{done.stdout}")


def fetch_libraries(folder: Path) -> Path:
    """Copies the client's libraries into a folder."""
    goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}")
    _run("mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *goal)
    return folder


def fetch_provided(folder: Path) -> Path:
    """Copies what the plugin is compiled against into a folder: these jars alone."""
    for artifact in PROVIDED:
        _run("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
    return folder


def compile_java(sources: Path, classes: Path, *libraries: Path) -> Path:
    """Compiles a folder of sources; libraries: folders of jars or of classes. Returns the folder of classes."""
    path = ":".join(str(each) if (each / "neardup").is_dir() else f"{each}/*" for each in libraries)
    files = [str(each) for each in sorted(sources.rglob("*.java"))]
    _run(
        "javac", *BRIEF, "--release", RELEASE, "-Xlint:all,-serial,-processing", "-d", str(classes), "-cp", path, *files
    )
    return classes


def build_client(out: Path) -> Path:
    """Returns the jar of the client; its libraries are beside it."""
    classes = compile_java(HERE / "src", out / "classes", fetch_libraries(out / "libs"))
    return _jar(out / "neardup-client.jar", classes)


def build_plugin(out: Path) -> Path:
    """Returns the folder of the plugin for Nutch, after `build_client`."""
    provided = fetch_provided(out / "provided")
    classes = compile_java(HERE / "nutch", out / "nutch-classes", out / "libs", provided, out / "classes")
    folder = out / "neardup-publish"
    folder.mkdir(exist_ok=True)
    _jar(folder / "neardup-publish.jar", classes, out / "classes")
    for name in PLUGIN_LIBRARIES:
        (library,) = (out / "libs").glob(f"{name}-[0-9]*.jar")
        shutil.copy(library, folder / f"{name}.jar")
    shutil.copy(HERE / "nutch" / "plugin.xml", folder)
    return folder


def _jar(target: Path, *folders: Path) -> Path:
    _run("jar", "--create", "--file", str(target), *(word for each in folders for word in ("-C", str(each), ".")))
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/java"), help="folder (default: %(default)s)")
    parser.add_argument("--nutch", action="store_true", help="also the plugin of Apache Nutch")
    given = parser.parse_args()
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        print(build_client(given.out))
        if given.nutch:
            print(build_plugin(given.out))
    except BuildFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
