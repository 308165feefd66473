#!/bin/sh
# Finds Chromium for the tests of the report: an installed one, else Debian's package; else prints one line of advice.
set -u
command -v chromium >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing chromium for the browser tests"
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 && exit 0
fi
echo "no chromium: the browser tests will be skipped; on Debian: apt-get install chromium" >&2
