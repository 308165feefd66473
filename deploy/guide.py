"""Writes into deploy/plan-capacity.md what `neardup plan` prints: each block of code that begins with its command.

python deploy/guide.py            # writes it
python deploy/guide.py --check    # says whether it is as it would be written, and writes nothing
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).resolve().parent / "plan-capacity.md"
_BLOCK = re.compile(r"^```\n\$ (neardup plan [^\n]*)\n.*?^```$", re.MULTILINE | re.DOTALL)
_COLUMNS = "118"


def output_of(command: str) -> str:
    """Returns the output of a command of neardup."""
    words = [sys.executable, "-c", "from streams.commands import main; main()", *shlex.split(command)[1:]]
    environment = {**os.environ, "COLUMNS": _COLUMNS}
    done = subprocess.run(words, env=environment, cwd=GUIDE.parents[1], capture_output=True, text=True, check=True)
    return "\n".join(line.rstrip() for line in done.stdout.splitlines() if line.strip())


def written(text: str) -> str:
    return _BLOCK.sub(lambda found: f"```\n$ {found[1]}\n{output_of(found[1])}\n```", text)


def main() -> int:
    text = GUIDE.read_text()
    made = written(text)
    if made == text:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{GUIDE} is not what {Path(__file__).name} writes: run it", file=sys.stderr)
        return 1
    GUIDE.write_text(made)
    print(GUIDE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
