# Sourced by scripts/dogtag: makes the tree, in $building first. Uses what that script and namespaces.sh define.

# The first mirror that has the suite: this machine's own, Debian's, and where Debian keeps old suites.
choose_mirror() {
  local mirror own
  own=$(debian_mirror)
  for mirror in $own http://deb.debian.org/debian http://archive.debian.org/debian; do
    if timeout 60 /usr/lib/apt/apt-helper download-file "$mirror/dists/$suite/Release" "$dir/Release" >>"$logs/mirror" 2>&1; then
      rm -f "$dir/Release"
      printf '%s' "$mirror"
      return 0
    fi
  done
  return 1
}

# The proxy that apt uses, for debootstrap and for the apt inside the tree.
use_proxy_of_apt() {
  local proxy
  proxy=$(apt-config shell proxy Acquire::http::Proxy | sed -n "s/^proxy='\(.*\)'$/\1/p")
  [ -z "$proxy" ] || export http_proxy=$proxy
}

# debootstrap downloads with wget, which waits 15 minutes for a connection that stands still, and tries it 20 times.
fetch_base() {
  local attempt
  printf 'timeout = 30\ntries = 3\n' >"$dir/wgetrc"
  export WGETRC=$dir/wgetrc
  for attempt in 1 2 3; do
    rm -rf "$building"
    unshare --mount --pid --fork --kill-child --mount-proc debootstrap --variant=minbase --cache-dir="$downloads/base" \
      --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$suite" "$building" "$mirror" && return 0
    sleep $((attempt * 5))
  done
  return 1
}

fetch_packages() {
  local attempt
  for attempt in 1 2 3; do
    inside apt-get -q -o Acquire::Retries=3 update &&
      inside apt-get -q -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 --yes --no-install-recommends install "${packages[@]}" &&
      return 0
    sleep $((attempt * 5))
  done
  return 1
}

prepare_base() {
  mkdir -p "$building/var/cache/apt/archives"
  cp --dereference /etc/resolv.conf "$building/etc/resolv.conf"
  printf '127.0.0.1 localhost pki\n' >"$building/etc/hosts"
  printf '#!/bin/sh\nexit 101\n' >"$building/usr/sbin/policy-rc.d"
  chmod 755 "$building/usr/sbin/policy-rc.d"
}

# Debian's pkispawn leaves out how the CA finds the KRA's transport certificate in its own database.
name_transport_certificate() {
  local config=$building/etc/pki/pki-tomcat/ca/CS.cfg
  grep -q '^ca.connector.KRA.transportCertNickname=' "$config" ||
    echo 'ca.connector.KRA.transportCertNickname=kra_transport' >>"$config"
}

make_tree() {
  stop_all
  building=$dir/tree.new
  rm -rf "$tree" "$building"
  install_debian_packages debootstrap wget || fail "$install_problem"
  use_proxy_of_apt
  mirror=$(choose_mirror) || fail "no mirror with Debian $suite can be reached; see $logs/mirror"
  mkdir -p "$downloads/base" "$downloads/packages"
  step 'base system' 1200 fetch_base
  prepare_base
  start_namespaces init "$building" host-network "$downloads/packages"
  step 'packages' 1500 fetch_packages
  stop_namespaces init
  install -m 600 "$files"/{ds.inf,ca.cfg,kra.cfg} "$building/root/"
  start_namespaces init "$building" own-network
  prepare_run
  step 'directory server' 300 inside dscreate from-file /root/ds.inf
  step 'CA' 900 inside pkispawn -f /root/ca.cfg -s CA
  step 'KRA' 900 inside pkispawn -f /root/kra.cfg -s KRA
  name_transport_certificate
  export_credentials
  stop_services
  stop_namespaces init
  fingerprint >"$building/etc/estuary-dogtag"
  mv "$building" "$tree"
  building=$tree
}

# The agent's certificate and key and the CA's certificate, for the tests.
export_credentials() {
  local out=$building/root/credentials
  inside sh -euc '
    mkdir -p -m 700 /root/credentials && cd /root/credentials
    certutil -L -d /etc/pki/pki-tomcat/alias -n ca_signing -a >ca.pem
    certutil -L -d /root/.dogtag/pki-tomcat/ca/alias -n caadmin -a >agent.pem
    openssl pkcs12 -in /root/.dogtag/pki-tomcat/ca_admin_cert.p12 -passin pass:Test.Only.123 -nodes -nocerts |
      openssl pkey -out agent.key' >"$logs/credentials" 2>&1 || fail "no agent certificate; see $logs/credentials"
  [ -s "$out/ca.pem" ] && [ -s "$out/agent.pem" ] && [ -s "$out/agent.key" ] || fail 'the agent certificate is empty'
}
