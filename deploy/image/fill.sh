#!/bin/sh
# Fills the environment FOLDER of an image with the locked packages of some extras, or with a wheel.
#
#   fill.sh FOLDER EXTRA... | fill.sh FOLDER --build | fill.sh FOLDER --wheel FOLDER_OF_WHEELS
#
# The environment has no pip. Bytecode is checked by the hash of its source, not by time, so each build gives the same.
set -eu
folder=$1; shift
[ -x "$folder/bin/python3" ] || python3 -m venv --without-pip "$folder"
install() { python3 -m pip --python "$folder/bin/python3" install --quiet --no-deps "$@"; }
if [ "$1" = --wheel ]; then
  install "$2"/*.whl
else
  python3 locked.py pyproject.toml requirements.lock "$@" > "$folder/requirements.txt"
  install --require-hashes -r "$folder/requirements.txt"
fi
# Remove files that a running program never reads.
find "$folder" -type d -name tests -path '*/numba/*' -prune -exec rm -rf {} +
"$folder/bin/python3" -m compileall -q --invalidation-mode unchecked-hash "$folder/lib"
