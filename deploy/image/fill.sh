#!/bin/sh
# Fills the environment FOLDER for an image: with what the lock file has for some extras, or with a wheel.
#
#   fill.sh FOLDER EXTRA... | fill.sh FOLDER --build | fill.sh FOLDER --wheel FOLDER_OF_WHEELS
#
# Without pip in it. Bytecode is checked by its source's hash, not by its time, so that it is the same in each build.
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
# What a running program never reads.
find "$folder" -type d -name tests -path '*/numba/*' -prune -exec rm -rf {} +
"$folder/bin/python3" -m compileall -q --invalidation-mode unchecked-hash "$folder/lib"
