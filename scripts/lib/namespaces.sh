# Sourced by scripts/dogtag, which sets `files` (its own), `run` (where process ids are kept) and `logs`: processes in
# namespaces of their own, known by process id and start time, and commands bounded in time.

check_namespaces() {
  local command
  for command in unshare nsenter flock setsid; do
    command -v "$command" >/dev/null || fail "$command not found (Debian package util-linux)"
  done
  unshare --mount --pid --net --uts --ipc --fork --kill-child mount -t tmpfs tmpfs /mnt 2>/dev/null ||
    fail 'this machine lets nobody make namespaces or mount in them (a container without CAP_SYS_ADMIN?)'
}

# start_time PID — which tells a process from a later one with the same id
start_time() {
  local stat
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${stat##*) }
  printf '%s' "${20}"
}

# remember NAME PID [MORE] — in $run/NAME
remember() { printf '%s %s %s\n' "$2" "$(start_time "$2")" "${3:-}" >"$run/$1"; }

is_alive() { # NAME
  local pid started
  { read -r pid started _ <"$run/$1"; } 2>/dev/null || return 1
  [ -n "$started" ] && [ "$(start_time "$pid")" = "$started" ]
}

# stop_process NAME — for good, and waits until it is gone
stop_process() {
  local pid
  if is_alive "$1"; then
    read -r pid _ <"$run/$1"
    kill -KILL "$pid" 2>/dev/null || true
    for _ in {1..100}; do
      is_alive "$1" || break
      sleep 0.1
    done
  fi
  rm -f "$run/$1"
}

# until_file FILE — for at most 30 seconds
until_file() {
  for _ in {1..300}; do
    [ ! -s "$1" ] || return 0
    sleep 0.1
  done
  return 1
}

# start_namespaces NAME TREE own-network|host-network [DOWNLOADS] — see dogtag-files/init
start_namespaces() {
  local name=$1 target=$2 network=$3 downloads=${4:-} kinds=(--mount --pid --ipc) pid
  [ "$network" = host-network ] || kinds+=(--net --uts)
  rm -f "$run/$name.pid"
  setsid unshare "${kinds[@]}" --fork bash "$files/init" "$target" "$run/$name.pid" "$network" "$downloads" \
    </dev/null >"$logs/namespaces" 2>&1 9>&- &
  until_file "$run/$name.pid" || fail "the namespaces could not be made; see $logs/namespaces"
  read -r pid <"$run/$name.pid"
  rm -f "$run/$name.pid"
  remember "$name" "$pid"
}

# With its first process everything in a process namespace ends.
stop_namespaces() { stop_process "$1"; }

# enter_namespaces NAME COMMAND…
enter_namespaces() {
  local pid
  read -r pid _ <"$run/$1" || fail 'Dogtag does not run'
  shift
  nsenter --target "$pid" --mount --uts --net --ipc --pid -- "$@" </dev/null 9>&-
}

# start_relay NAME PID PORT — see dogtag-files/relay.js; $run/NAME then ends with the port here
start_relay() {
  local pid here
  rm -f "$run/$1.port"
  timeout 30 node "$files/relay.js" "$2" "$3" "$run/$1.port" </dev/null >"$logs/relay" 2>&1 9>&- ||
    fail "the relay could not be started; see $logs/relay"
  read -r pid here <"$run/$1.port"
  rm -f "$run/$1.port"
  remember "$1" "$pid" "$here"
}

bounded_pid=

# bounded SECONDS LOG COMMAND… — a function or a program, in a separate process group that is killed when the time is up
# or when this script ends
bounded() {
  local limit=$1 log=$2 end=$((SECONDS + $1)) code=0
  shift 2
  set -m
  ("$@") </dev/null >"$log" 2>&1 9>&- &
  bounded_pid=$!
  set +m
  remember bounded "$bounded_pid"
  while kill -0 "$bounded_pid" 2>/dev/null && [ $SECONDS -lt "$end" ]; do
    sleep 0.2
  done
  if kill -0 "$bounded_pid" 2>/dev/null; then
    echo "not done in $limit s" >>"$log"
    end_bounded
    return 1
  fi
  wait "$bounded_pid" 2>/dev/null || code=$?
  bounded_pid=
  rm -f "$run/bounded"
  return $code
}

end_bounded() {
  [ -z "$bounded_pid" ] || kill -KILL -- "-$bounded_pid" 2>/dev/null || true
  bounded_pid=
  rm -f "$run/bounded"
}

# What an earlier call was at when it was killed.
end_left_over() {
  if is_alive bounded; then read -r bounded_pid _ <"$run/bounded"; fi
  end_bounded
}
