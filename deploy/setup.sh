#!/bin/sh
# Makes the environment VENV for PYTHON from requirements.lock, with uv where present, else with pip.
# With names of extras: only neardup with these extras, without development tools.
set -eu
python=$1 venv=$2
shift 2
command -v "$python" >/dev/null || { echo "neardup needs Python 3.11 to 3.13; on Debian: apt-get install python3 python3-venv" >&2; exit 1; }
"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || {
  echo "neardup needs Python 3.11 to 3.13, but $python is $("$python" -V); name another: make PYTHON=python3.11" >&2; exit 1; }
lock=requirements.lock
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ $# -gt 0 ]; then
  lock=$folder/lock
  "$python" deploy/image/locked.py pyproject.toml requirements.lock "$@" >"$lock"
fi
echo "installing neardup and $(grep -c == "$lock") packages into $venv"
if command -v uv >/dev/null; then
  [ -x "$venv/bin/python" ] || uv venv --quiet --seed --python "$python" "$venv"
  # Bytecode is written now, as pip does: in a read-only folder each start would compile numba's sources, for .7 s.
  if [ $# -gt 0 ]; then
    VIRTUAL_ENV=$(realpath "$venv") uv pip install --quiet --compile-bytecode --require-hashes --no-deps -r "$lock"
  else
    VIRTUAL_ENV=$(realpath "$venv") uv pip sync --quiet --compile-bytecode --require-hashes "$lock"
  fi
  VIRTUAL_ENV=$(realpath "$venv") uv pip install --quiet --no-deps -e .
else
  [ -x "$venv/bin/pip" ] || "$python" -m venv "$venv" || {
    echo "the venv module is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }
  install() { "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "$@"; }
  # One pip uses one processor: two install half of the packages each, and Python then compiles with all processors.
  # Neither installs pip, which the environment has: it would lose its files while the other one runs.
  awk -v folder="$folder" '
    /^[^ #]/ { number++; half = /^pip==/ ? "" : folder "/half" number % 2 }
    half { print > half }' "$lock"
  install --require-hashes --no-compile -r "$folder/half0" &
  half=$!
  install -e . &
  own=$!
  install --require-hashes --no-compile -r "$folder/half1"
  wait "$half"
  wait "$own"
  # Some packages hold files of other Python versions, which do not compile.
  "$venv/bin/python" -m compileall -q -j 0 "$venv"/lib/python*/site-packages >/dev/null || :
fi
