# Sourced: where this machine's apt gets Debian from.

# debian_mirror — the URI of the first source that carries Debian's main archive, in either of apt's formats.
debian_mirror() {
  local mirror
  mirror=$(debian_mirrors)
  printf '%s' "${mirror%%$'\n'*}"
}

debian_mirrors() {
  local file
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -r "$file" ] || continue
    awk 'BEGIN { RS = ""; FS = "\n" }
      {
        uri = ""; main = 0
        for (i = 1; i <= NF; i++) {
          if ($i ~ /^URIs:/) { split($i, words, /[ \t]+/); uri = words[2] }
          if ($i ~ /^Components:.*main/) main = 1
        }
        sub(/\/+$/, "", uri)
        if (main && uri ~ /\/debian$/) { print uri; exit }
      }' "$file"
  done
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -r "$file" ] || continue
    sed -E 's/^deb +\[[^]]*\] +/deb /' "$file" |
      awk '$1 == "deb" { uri = $2; sub(/\/+$/, "", uri); if (uri ~ /\/debian$/ && / main/) { print uri; exit } }'
  done
}
