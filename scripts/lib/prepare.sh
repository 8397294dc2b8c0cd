# Sourced by the scripts next to it: prepares a checkout. Its messages go to stderr.
# The sourcing script sets `set -euo pipefail` and `root`, the checkout's folder.

say() { printf '# %s\n' "$*" >&2; }

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Seconds between two lines about a step that still runs.
progress_interval=30

# watched WHAT LOG COMMAND… — runs it. Shows every half minute that it still runs, and where its output is unless LOG is
# empty. WHAT is a text, or a function that prints it.
watched() {
  local what=$1 log=$2 status=0
  shift 2
  # Closed when this shell ends, which ends the process that shows the progress.
  exec 8> >(show_progress "$what" "$log")
  "$@" 8>&- || status=$?
  exec 8>&-
  return "$status"
}

show_progress() {
  local began=$SECONDS text status
  trap '' INT
  while true; do
    status=0
    read -r -t "$progress_interval" || status=$?
    [ "$status" -gt 128 ] || return 0
    text=$1
    [ "$(type -t "$1")" != function ] || text=$("$1")
    say "$text … $(((SECONDS - began) / 60)):$(printf '%02d' $(((SECONDS - began) % 60)))${2:+, log: $2}"
  done
}

# The required commands. The pinned Node 26 comes with npm's packages; any Node from 20 on can fetch them.
require_node_and_openssl() {
  local command
  for command in node npm openssl; do
    command -v "$command" >/dev/null || fail "$command not found: install Node.js 20 or newer (with npm) and openssl"
  done
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
    fail "this Node.js is $(node --version): 20 or newer is needed"
}

# missing_debian_packages PACKAGE… — those that are not installed, one a line.
missing_debian_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || echo "$package"
  done
}

# install_debian_packages PACKAGE… — what is missing of them, when apt and root (or sudo without a password) are at
# hand. No service starts. Returns 1, with the reason in $install_problem, when something stays missing.
install_debian_packages() {
  install_problem=
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    install_problem='no apt-get here'
    return 1
  fi
  local missing
  mapfile -t missing < <(missing_debian_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      install_problem="neither root nor sudo without a password; missing: ${missing[*]}"
      return 1
    fi
    as_root=(sudo -n)
  fi
  say "Installing Debian packages: ${missing[*]}"
  without_services apt_install "${missing[@]}" || true
  mapfile -t missing < <(missing_debian_packages "${missing[@]}")
  [ ${#missing[@]} -eq 0 ] && return 0
  install_problem="apt could not install: ${missing[*]}"
  return 1
}

# apt_get ARGUMENT… — bounded in time, without questions.
apt_get() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive timeout 1200 \
    apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}

# apt_install PACKAGE… — together, and where one of them cannot be had, each of the others.
apt_install() {
  apt_get update || say 'apt-get update failed; going on with the package lists that are there'
  apt_get install --yes --no-install-recommends "$@" && return 0
  local package
  for package in "$@"; do
    apt_get install --yes --no-install-recommends "$package" || true
  done
}

# without_services COMMAND… — runs it while Debian's policy-rc.d forbids packages to start daemons.
without_services() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | ${as_root[@]+"${as_root[@]}"} tee "$policy" >/dev/null
    trap '${as_root[@]+"${as_root[@]}"} rm -f "$policy"' EXIT
    ${as_root[@]+"${as_root[@]}"} chmod 755 "$policy"
  fi
  "$@"
)

# What npm needs to build the optional native packages (Kerberos, PKCS#11); the server runs without them.
build_tools=(python3 make g++ libkrb5-dev)

# Runs `npm ci` unless node_modules/ is what package-lock.json asks for, and puts the pinned Node first on the PATH.
# prepare_dependencies [PACKAGE…] — also where one of these optional packages is missing, since its tools may have come later than npm ran.
prepare_dependencies() {
  cd "$root"
  local difference
  if ! difference=$(node scripts/lib/dependencies-current.js "$@" 2>&1); then
    [ ! -L node_modules ] || fail "node_modules is a symbolic link and not up to date ($difference): run npm ci there"
    install_debian_packages "${build_tools[@]}" ||
      say "Optional native packages may stay out ($install_problem)"
    npm_log=$root/.cache/logs/npm
    mkdir -p "$root/.cache/logs"
    say "Installing npm packages: a minute or two, more on a slow network"
    if ! watched npm_progress "$npm_log" npm_ci; then
      grep -v '^npm http' "$npm_log" | tail -n 40 >&2
      fail "npm ci failed; see $npm_log"
    fi
  fi
  PATH=$root/node_modules/.bin:$PATH
  export PATH
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 26 ? 0 : 1)' ||
    fail "npm has no Node.js 26 for this machine, and its own is $(node --version): install Node.js 26"
}

npm_ci() { timeout 1200 npm ci --no-audit --no-fund --loglevel=http </dev/null >"$npm_log" 2>&1; }

npm_progress() {
  echo "Installing npm packages: $(grep -c '^npm http .*\.tgz' "$npm_log") of about $(grep -c '"integrity":' package-lock.json) fetched"
}

# Builds src/ into dist/ when something is newer than the last build. A script that only prints its help needs no build.
case " $* " in *' --help '*) only_help=yes ;; *) only_help=no ;; esac
prepare_build() {
  cd "$root"
  [ "$only_help" = no ] || return 0
  if [ ! -e dist/server.js ] ||
    [ -n "$(find src package.json package-lock.json scripts/lib/bundle-server.ts -newer dist/server.js -print -quit)" ]; then
    say 'Building …'
    watched Building '' npm run --silent build >&2 || fail 'the build failed'
  fi
}

# beneath PROCESS — prints the ids of its children, theirs, and so on
beneath() {
  local child
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
    echo "$child"
    beneath "$child"
  done
}

# end_beneath SHELL — ends the program that a function runs in the background, and waits for the shell that `&` made for the function: with
# that shell alone the program would not end. KILL, since unshare ignores TERM while it waits; each of them, since what becomes another user
# no longer dies with unshare. Nothing where SHELL is empty or gone.
end_beneath() {
  local program
  [ -n "$1" ] || return 0
  for program in $(beneath "$1"); do
    kill -KILL "$program" 2>/dev/null || true
  done
  wait "$1" 2>/dev/null || true
}
