"""The pictures of README.md and `streams/views/use-the-views.md`: `make demo`'s crawl in a real browser.

    python deploy/demo/pictures.py FOLDER [--out deploy/demo/pictures]

FOLDER is that of `make demo`. Chromium and Playwright are those that the tests use. Look at what comes out.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).resolve().parent
NEARDUP = Path(sys.executable).with_name("neardup")
#: Two releases of one page of documentation.
A, B = (f"https://mako.example/{version}/doc/defs.html" for version in ("1.3.8", "1.3.2"))
WIDTH, HEIGHT = 1000, 760


def pictures() -> dict[str, str]:
    """Name of the file -> path of the page."""
    return {
        "overview": "",
        "url": f"url?url={quote(A)}",
        "compare": f"compare?a={quote(A)}&b={quote(B)}",
    }


def take(browser: Browser, address: str, out: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    for name, path in pictures().items():
        answer = page.goto(address + path)
        if answer is None or answer.status != 200:
            raise SystemExit(f"{address}{path}: no page to take a picture of")
        page.screenshot(path=out / f"{name}.png")
        print(out / f"{name}.png")


def take_report(browser: Browser, report: Path, out: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.goto(report.resolve().as_uri())
    page.screenshot(path=out / "report.png")
    print(out / "report.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "pictures")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    command = [str(NEARDUP), "views", "state", "--port", "0"]
    with subprocess.Popen(command, cwd=given.folder, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            # Lines about the build of the tables come first; none comes behind the end of the process.
            serving = next((line for line in server.stderr if "serving " in line), "")
            address = serving.partition("serving ")[2].partition(",")[0]
            if not address:
                raise SystemExit("the views did not start")
            with sync_playwright() as player:
                chromium = player.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                take(chromium, address, given.out)
                take_report(chromium, given.folder / "report.html", given.out)
                chromium.close()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
