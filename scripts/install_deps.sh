#!/usr/bin/env bash
# Installs the packages of packages.txt that are missing. Without the right to install, prints the
# command to run and ends with 1.
set -euo pipefail
cd "$(dirname "$0")"

mapfile -t wanted < <(sed 's/#.*//' packages.txt | xargs -n1)

if ! command -v dpkg-query >/dev/null; then
  echo "install_deps: this is no Debian system; install what these packages hold by your own means:" >&2
  echo "  ${wanted[*]}" >&2
  exit 1
fi

# One query asks for all packages. Those that dpkg does not know are simply missing in the answer.
declare -A installed=()
while read -r package state; do
  [ "$state" = installed ] && installed[$package]=1
done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null)
missing=()
for package in "${wanted[@]}"; do
  [ -n "${installed[$package]:-}" ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  echo "install_deps: missing packages and no right to install them; run this, then try again:" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
known() { apt-cache show --no-all-versions "${missing[@]}" >/dev/null 2>&1; }

echo "installing ${#missing[@]} Debian packages: ${missing[*]}"
fresh=no
if ! known; then
  apt update
  fresh=yes
fi
# An outdated package list names versions that the mirror no longer has: refresh it once and try
# again.
if ! apt install -y --no-install-recommends "${missing[@]}" >/dev/null; then
  [ "$fresh" = no ] || exit 1
  apt update
  apt install -y --no-install-recommends "${missing[@]}" >/dev/null
fi
