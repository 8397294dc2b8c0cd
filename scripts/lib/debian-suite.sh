# Sourced: packages of another Debian suite, unpacked next to the system without changing it. They come from the mirror this machine's
# apt already uses, checked against Debian's archive keys. apt uses separate lists, cache and status file, so it needs no root.
# The sourcing script sets `set -euo pipefail`, `root`, the checkout's folder, and `fail`.
. "$root/scripts/lib/debian-mirror.sh"

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
limit=300 # seconds for apt to fetch lists or packages

# open_suite SUITE — makes $work, a temporary folder under .cache with apt's lists of the suite, removed at exit
open_suite() {
  local command mirror
  for command in apt-get apt-cache dpkg-deb dpkg; do
    command -v "$command" >/dev/null || fail "$command not found: this needs a Debian machine"
  done
  [ -r "$keyring" ] || fail "$keyring not found (Debian package debian-archive-keyring)"
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || fail 'no Debian mirror found in /etc/apt: is this Debian?'

  mkdir -p "$root/.cache"
  work=$(mktemp -d "$root/.cache/suite.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work"/{etc,empty,state/lists/partial,cache/archives/partial,debs,tree}
  touch "$work/status"
  echo "deb [signed-by=$keyring] $mirror $1 main" >"$work/etc/sources.list"
  chmod 755 "$work" # apt's unprivileged fetcher reads here

  cat >"$work/etc/apt.conf" <<EOF
Dir::Etc "$work/etc";
Dir::Etc::sourcelist "$work/etc/sources.list";
Dir::Etc::parts "$work/empty";
Dir::Etc::sourceparts "$work/empty";
Dir::Etc::preferencesparts "$work/empty";
Dir::State "$work/state";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
APT::Sandbox::User "";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Retries "2";
// A mirror may stand still; what it gives is signed all the same.
Acquire::Check-Valid-Until "false";
EOF
  export APT_CONFIG=$work/etc/apt.conf
  echo "Reading the package lists of $1 …"
  quietly apt-get -q update
}

quietly() {
  timeout "$limit" "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    fail "failed: $*"
  }
}

# unpack PACKAGE… — into $work/tree; nothing is installed, and no maintainer script runs
unpack() {
  local deb
  echo "Fetching $# packages …"
  (cd "$work/debs" && quietly apt-get -q download "$@")
  for deb in "$work"/debs/*.deb; do dpkg-deb --extract "$deb" "$work/tree"; done
}
