#!/bin/sh
# Builds the images with the version of pyproject.toml: neardup:VERSION, and neardup-crawler:VERSION for the demo.
#
#   ENGINE=docker PYTHON_IMAGE=python@sha256:... deploy/image/build.sh [MORE ARGUMENTS OF THE ENGINE'S build]
set -eu
cd "$(dirname "$0")/../.."
engine=${ENGINE:-docker}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
for target in neardup crawler; do
  [ "$target" = neardup ] && name=neardup || name=neardup-crawler
  "$engine" build --file deploy/Dockerfile --target "$target" --tag "$name:$version" \
    --build-arg VERSION="$version" --build-arg REVISION="$revision" \
    --build-arg SOURCE_DATE_EPOCH="$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
    ${PYTHON_IMAGE:+--build-arg PYTHON_IMAGE="$PYTHON_IMAGE"} "$@" .
done
