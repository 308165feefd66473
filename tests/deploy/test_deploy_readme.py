"""`deploy/README.md` names files that exist."""

import re
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def test_deploy_readme_names_files_that_exist() -> None:
    text = (DEPLOY / "README.md").read_text()
    for name in re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE):
        for path in re.findall(r"`([^`]+)`", name):
            assert (DEPLOY / path).exists(), path
