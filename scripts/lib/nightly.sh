# Sourced by scripts/test: the long forms that `--nightly` runs. Needs `failed`, an array; `root`, and `say` of prepare.sh.

nightly_results=()
nightly_running=

# run_nightly FILE LOGS — every step of a list such as scripts/nightly-steps; what each wrote is kept in LOGS/NAME.log. What failed is added to `failed`.
run_nightly() {
  local bound rest
  mkdir -p "$2"
  while read -r bound rest <&3; do
    case $bound in '' | '#'*) continue ;; esac
    run_nightly_step "$bound" "${rest%%:*}" "${rest#*: }" "$2"
  done 3<"$1"
}

run_nightly_step() { # BOUND NAME COMMAND LOGS
  local log=$4/${2// /-}.log began=$SECONDS code=0 result
  printf '\n== %s, at most %s: %s\n' "$2" "$1" "$3"
  # In the background, with `wait`: a trap that ends this script is not held up by it. `timeout` ends all of the step's process group.
  (cd "$root" && exec timeout --kill-after=60 "$1" bash -c "$3") </dev/null >"$log" 2>&1 3<&- &
  nightly_running=$!
  wait "$nightly_running" || code=$?
  nightly_running=
  case $code in
    0) result=passed ;;
    124 | 137) result="not done in $1" ;;
    *) result="failed with $code" ;;
  esac
  if [ "$code" -ne 0 ]; then
    tail -n 60 "$log"
    failed+=("$2")
  fi
  nightly_results+=("$(printf '%-32s %6d s  %s; %s' "$2" $((SECONDS - began)) "$result" "${log#"$root/"}")")
}

end_nightly() {
  [ -z "$nightly_running" ] || kill "$nightly_running" 2>/dev/null || true
}

summarize_nightly() {
  [ ${#nightly_results[@]} -eq 0 ] || printf '%s\n' 'The long forms:' "${nightly_results[@]/#/  }"
}
