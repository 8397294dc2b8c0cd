# Sourced by the scripts in the folder above: with --help or -h among its arguments, a script prints the comment at its head and does nothing.
for argument in "$@"; do
  case $argument in
    --help | -h)
      awk 'NR == 1 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$0"
      exit 0
      ;;
  esac
done
