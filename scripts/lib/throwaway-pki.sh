# Sourced: a throw-away PKI made with the openssl command. One algorithm throughout; keys are 0600, unencrypted.
# Everything that exists is kept: a file appears under its name only when it is whole.

# What `openssl genpkey` makes of an --algorithm of `scripts/quickstart`.
declare -A key_options=(
  [p-256]='-algorithm EC -pkeyopt ec_paramgen_curve:P-256'
  [ml-dsa-44]='-algorithm ML-DSA-44' [ml-dsa-65]='-algorithm ML-DSA-65' [ml-dsa-87]='-algorithm ML-DSA-87'
)
algorithm=p-256

# new_key FILE
new_key() {
  [ -s "$1" ] && return 0
  # shellcheck disable=SC2086 # several words on purpose
  (umask 077 && openssl genpkey ${key_options[$algorithm]} -out "$1.new")
  mv "$1.new" "$1"
}

# new_root NAME FILE DAYS — FILE.key and the self-signed FILE.pem
new_root() {
  local name=$1 file=$2 days=$3
  new_key "$file.key"
  [ -s "$file.pem" ] && return 0
  openssl req -x509 -new -key "$file.key" -sha256 -days "$days" -subj "/O=Estuary quickstart/CN=$name" \
    -config <(printf '%s\n' '[req]' 'distinguished_name = dn' 'x509_extensions = ca' '[dn]' '[ca]' \
      'basicConstraints = critical,CA:TRUE' 'keyUsage = critical,keyCertSign,cRLSign' \
      'subjectKeyIdentifier = hash') -out "$file.pem.new"
  mv "$file.pem.new" "$file.pem"
}

# new_certificate NAME FILE DAYS ISSUER EXTENSION… — FILE.key and FILE.pem, signed by ISSUER.pem
new_certificate() {
  local name=$1 file=$2 days=$3 issuer=$4
  shift 4
  new_key "$file.key"
  [ -s "$file.pem" ] && return 0
  openssl req -new -key "$file.key" -sha256 -subj "/O=Estuary quickstart/CN=$name" \
    -config <(printf '%s\n' '[req]' 'distinguished_name = dn' '[dn]') |
    openssl x509 -req -sha256 -days "$days" -CA "$issuer.pem" -CAkey "$issuer.key" -set_serial "$(new_serial)" \
      -extfile <(printf '%s\n' "$@" 'subjectKeyIdentifier = hash' 'authorityKeyIdentifier = keyid') \
      -out "$file.pem.new" 2>"$file.log" || {
    cat "$file.log" >&2
    return 1
  }
  rm -f "$file.log"
  mv "$file.pem.new" "$file.pem"
}

# 127 random bits behind a leading 4: positive, and always 16 bytes.
new_serial() { printf '0x4%s' "$(openssl rand -hex 16 | cut -c 2-)"; }

# make_pki FOLDER — the PKI of `scripts/quickstart`, under the names its help describes.
make_pki() {
  local dir=$1 host
  local issuing=('basicConstraints = critical,CA:TRUE,pathlen:0'
    'keyUsage = critical,keyCertSign,cRLSign,digitalSignature')
  local leaf=('basicConstraints = critical,CA:FALSE' 'keyUsage = critical,digitalSignature')
  mkdir -p "$dir/ca" "$dir/tls" "$dir/admin"

  new_root 'Quickstart Root CA' "$dir/ca/root" 3650
  new_certificate 'Quickstart Devices CA' "$dir/ca/issuing" 1825 "$dir/ca/root" "${issuing[@]}"
  new_certificate 'Quickstart Lab CA' "$dir/ca/lab" 1825 "$dir/ca/root" "${issuing[@]}"
  # A file of their own, so that an anchor can be added without touching a CA's chain.
  cp "$dir/ca/root.pem" "$dir/tls/client-anchors.pem"

  host=$(uname -n)
  [[ $host =~ ^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$ ]] || host=localhost
  # RFC 7030 §3.6.1: id-kp-cmcRA marks the certificate of an EST server.
  new_certificate localhost "$dir/tls/server" 825 "$dir/ca/root" "${leaf[@]}" \
    'extendedKeyUsage = serverAuth,1.3.6.1.5.5.7.3.28' \
    "subjectAltName = $(printf '%s\n' DNS:localhost IP:127.0.0.1 IP:::1 "DNS:$host" | awk '!seen[$0]++' | paste -sd ,)"

  # Administrators have a root of their own: a device's certificate never makes an admin.
  new_root 'Quickstart Admin CA' "$dir/admin/ca" 3650
  new_certificate 'Quickstart administrator' "$dir/admin/client" 825 "$dir/admin/ca" "${leaf[@]}" \
    'extendedKeyUsage = clientAuth'
}
