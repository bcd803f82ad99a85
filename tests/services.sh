#!/bin/sh
# The programs that tests drive; each name is also that of its Debian package.
# As root on Debian, installs what is missing; elsewhere, says what is missing and how to get it.
# It never fails: tests that lack a program are skipped by name, or fail under EMBER_TEST_STRICT=1.
set -eu

missing=
for program in chromium curl podman prometheus prometheus-pushgateway redis-server; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
[ -n "$missing" ] || exit 0

install="apt-get install --yes --no-install-recommends$missing"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing$missing, which some tests drive."
    { apt-get update && DEBIAN_FRONTEND=noninteractive $install; } >/dev/null ||
        echo "That did not work; tests that need$missing will be skipped." >&2
else
    echo "Not installed:$missing. Tests that need it will be skipped." >&2
    echo "On Debian: sudo $install" >&2
fi
