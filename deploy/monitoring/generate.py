"""Writes rules and dashboards into the chart, from where compose.yaml takes them.

python deploy/monitoring/generate.py            # writes them
python deploy/monitoring/generate.py --check    # says whether they are as they would be written, and writes nothing
"""

import json
import sys
from pathlib import Path

import yaml
from dashboards import ALL, dashboard
from rules import document

FILES = Path(__file__).resolve().parents[2] / "helm" / "neardup" / "files"
_NOTE = "# Written by deploy/monitoring/generate.py from rules.py beside it.\n"


def written() -> dict[Path, str]:
    """What each file is to hold."""
    found = {FILES / "rules.yaml": _NOTE + yaml.safe_dump(document(), sort_keys=False, width=120)}
    for uid in ALL:
        found[FILES / "dashboards" / f"{uid}.json"] = json.dumps(dashboard(uid), indent=1) + "\n"
    return found


def main() -> int:
    files = written()
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    stray = [path for path in (FILES / "dashboards").glob("*.json") if path not in files]
    if "--check" in sys.argv[1:]:
        for path in (*stale, *stray):
            print(f"{path} is not what {Path(__file__).name} writes: run it", file=sys.stderr)
        return 1 if stale or stray else 0
    for path in stray:
        path.unlink()
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path])
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
