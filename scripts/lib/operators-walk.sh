# Run by scripts/operators-walk as root on a separate machine, without systemd and network.
set -Eeuo pipefail
shopt -s inherit_errexit
trap 'echo "failed at line $LINENO: $BASH_COMMAND" >&2; tail -n 20 /walk/*.log >&2 || true' ERR
cd /walk
manual=/usr/share/doc/estuary/manual

step() { printf '\n== %s\n' "$*"; }

# block PAGE HEADING LANGUAGE [NUMBER] — a block of the manual under a heading; of a console, the commands.
block() {
  awk -v heading="## $2" -v language="$3" -v number="${4:-1}" '
    /^#/ && !open { under = ($0 == heading) }
    /^ *```/ { if (open) { if (open == 2) exit; open = 0 } else { open = 1; match($0, /^ */); indent = RLENGTH
      if (under && substr($0, indent + 4) == language && ++seen == number) { open = 2; found = 1 } } ; next }
    open != 2 { next }
    { line = substr($0, indent + 1) }
    language != "console" { print line; next }
    /^ *\$ / { line = substr(line, 3); command = 1 }
    command { print line; command = (line ~ /[\\|][ \t]*$/) }
    END { exit !found }' "$manual/$1.md" || { echo "no block $*" >&2; return 1; }
}

# documented PAGE HEADING LANGUAGE [NUMBER [SED-SCRIPT]] — runs it, changed as the reader has to.
documented() {
  local lines
  lines=$(block "$1" "$2" "$3" "${4:-1}" | sed -e "${5:-}")
  printf '%s\n' "$lines" | sed 's/^/+ /'
  # Not in a condition: each line has to succeed.
  eval "$lines"
}

# What a packaged machine has: sudo, and systemd, whose unit is started here without its protection.
mkdir bin
cat >bin/sudo <<'END'
#!/bin/sh
[ "$1" = -u ] && user=$2 && shift 2
exec setpriv --reuid "$user" --regid "$user" --init-groups "$@"
END
cat >bin/systemctl <<'END'
#!/bin/bash
set -euo pipefail
verb=$1 && shift
[ "${1:-}" != --now ] || shift
for unit; do
  instance=${unit#*@}
  template=/lib/systemd/system/${unit/@*/@}.service
  pid=/run/$unit.pid
  if [ "$verb" = stop ] || [ "$verb" = restart ]; then
    kill "$(cat "$pid")"
    while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.1; done
  fi
  [ "$verb" != reload ] || { kill -HUP "$(cat "$pid")"; sleep 3; }
  case $verb in enable | start | restart) ;; *) continue ;; esac
  command=$(sed -n "s/^ExecStart=//p" "$template" | sed "s/%i/$instance/g")
  install -d -o estuary -g estuary -m 0700 "/var/lib/$(sed -n 's/^StateDirectory=//p' "$template" | sed "s/%i/$instance/g")"
  ulimit -c 0
  # shellcheck disable=SC2086
  setsid setpriv --reuid estuary --regid estuary --init-groups --ambient-caps=+net_bind_service --inh-caps=+net_bind_service $command >>"/walk/$unit.log" 2>&1 </dev/null &
  echo $! >"$pid"
  configuration=${command##* }
  port=$(sed -n '/^\[admin\]/,/^\[/s/^port = \([0-9]*\).*/\1/p' "$configuration")
  for _ in $(seq 240); do
    kill -0 "$(cat "$pid")" || { tail -n 30 "/walk/$unit.log" >&2; exit 1; }
    ! curl -skf "https://localhost:${port:-9444}/healthz" >/dev/null || continue 2
    sleep 0.5
  done
  exit 1
done
END
chmod 0755 bin/*
echo 'APT::Install-Recommends "false";' >/etc/apt/apt.conf.d/99walk
own() { chown root:estuary /etc/estuary/* /etc/estuary/ca/* && chmod 0640 /etc/estuary/* /etc/estuary/ca/* && chmod 0750 /etc/estuary/ca; }

step 'The package, and a PKI in two tiers'
page=get-started/install heading='As a Debian package'
(manual=/walk; dpkg-deb --fsys-tarfile .cache/*.deb | tar -xO "./usr/share/doc/estuary/manual/$page.md" >install.md && block install "$heading" sh >commands)
eval "$(sed -n 1p commands)"
[ "$(sed -n '2,$p' commands)" = "$(block "$page" "$heading" sh | sed -n '2,$p')" ]
documented get-started/two-tier-pki 'Create it' console
documented get-started/two-tier-pki 'Check it' console
mkdir -p /etc/estuary/ca
cp pki/issuing/issuing.key pki/issuing/issuing.pem pki/root/root.pem /etc/estuary/
cp pki/root/root.pem /etc/estuary/client-anchors.pem
cp pki/root/root.pem /etc/estuary/ca/
ln -s /etc/estuary est
eval "$(sed -n 2p commands)"
estuary admin token new --description ada --roles admin --days 365 --out ada.token >token.txt
entry=$(grep -o '{ *token_hash.*}' token.txt)
automatic=$(grep -m 1 '^automatic = ' "$manual/guides/server-certificate.md")
sed -i -e "s|^  { token_hash = .*|  ${entry//|/\\|},|" -e 's|^port = 443 .*|port = 9443|' -e '/^private_key = "server.key"/d' \
  -e "s|^certificate = \"server.pem\".*|${automatic/est.example.com/localhost}|" est/est.toml
eval "$(sed -n 3p commands)"
eval "$(sed -n 4p commands)"
eval "$(sed -n 5p commands)"

export ESTUARY_ADMIN_URL=https://localhost:9444 ESTUARY_ADMIN_TOKEN_FILE=/walk/ada.token ESTUARY_ADMIN_CA=/walk/pki/root/root.pem
estuary doctor --config est/est.toml
HOST=localhost PORT=9443
PASSWORD=$(estuary admin otp create device-1 --json | sed -n 's/.*"token": *"\([^"]*\)".*/\1/p')
cp pki/root/root.pem ROOT.pem
documented guides/clients 'curl and openssl' sh
openssl verify -CAfile ROOT.pem -untrusted pki/issuing/issuing.pem device.pem renewed.pem

step 'A key in an HSM'
mkdir -p /var/lib/estuary/tokens
printf 'directories.tokendir = /var/lib/estuary/tokens\n' >/etc/estuary/softhsm2.conf
export SOFTHSM2_CONF=/etc/estuary/softhsm2.conf
page=guides/hsm heading='Step by step, with SoftHSM2'
block "$page" "$heading" console | sed -n 1p >init
printf 'so-pin-1\nso-pin-1\na-good-pin\na-good-pin\n' | script --quiet --return --echo never --command "sleep 0.3; bash init" /dev/null
eval "$(block "$page" "$heading" console | sed -n 2p)"
block "$page" "$heading" toml >>est/est.toml
mkdir -p dist && ln -s /usr/lib/estuary/dist/server.js dist/server.js && ln -s /usr/lib/estuary/node_modules/.bin/node bin/node
documented "$page" "$heading" console 2 's|--token-label est -l|& --pin a-good-pin|'
chown -R estuary: /var/lib/estuary/tokens && own
sudo -u estuary estuary check --config /etc/estuary/est.toml
systemctl restart estuary
OTP=$(estuary admin otp create device-1 --json | sed -n 's/.*"token": *"\([^"]*\)".*/\1/p')
openssl req -in device.csr -outform DER | base64 >csr.b64
cp device.pem first.pem
documented "$page" "$heading" console 3
cp first.pem device.pem

step 'A backup and a restore'
mkdir -p /backup
cd est
documented guides/backup 'Back up' sh
serial=$(openssl x509 -in /walk/device.pem -noout -serial | cut -d = -f 2)
estuary admin cert revoke "$serial" --reason keyCompromise --yes
documented guides/backup Restore sh
cd ..
estuary admin cert show "$serial" --json | grep -q keyCompromise
sudo -u estuary estuary audit verify --config /etc/estuary/est.toml
estuary doctor --config est/est.toml

step 'A rollover of the root'
mkdir rollover && cd rollover
cp ../pki/root/root.pem ../pki/root/root.key ../pki/issuing/issuing.pem .
documented guides/rollover 'A new root' sh
cat root.pem new-root.pem new-with-old.pem old-with-new.pem >before.pem
cp before.pem /etc/estuary/chain-before.pem && cp chain.pem new-issuing.pem /etc/estuary/
cat root.pem new-root.pem >/etc/estuary/client-anchors.pem
cd .. && own
sed -i 's|^chain = "root.pem"|chain = "chain-before.pem"|' est/est.toml
systemctl reload estuary
cacerts() { curl -sSf --cacert "$1" https://localhost:9443/.well-known/est/cacerts | base64 -d | openssl pkcs7 -inform DER -print_certs; }
[ "$(cacerts ROOT.pem | grep -c BEGIN)" -eq 5 ]
cp est/est.toml est/old.toml
sed -i -e 's|^chain = "chain-before.pem"|chain = "chain.pem"|' -e 's|^certificate = "issuing.pem"|certificate = "new-issuing.pem"|' est/est.toml
own
sudo -u estuary estuary check --config /etc/estuary/est.toml --fleet --against /etc/estuary/old.toml || [ $? -eq 3 ]
systemctl reload estuary
[ "$(cacerts ROOT.pem | grep -c BEGIN)" -eq 5 ]
cp renewed.pem device.pem
documented guides/clients 'curl and openssl' sh 1 '1,/simpleenroll"/d'
openssl verify -CAfile rollover/new-root.pem -untrusted rollover/new-issuing.pem renewed.pem
estuary admin ca rollover devices

step 'Nodes on PostgreSQL'
# Everybody knows the new root now.
cp rollover/new-root.pem est/ca.pem
cp rollover/new-root.pem ROOT.pem
export ESTUARY_ADMIN_CA=/walk/ROOT.pem
systemctl stop estuary
install -d -o postgres -m 0700 /walk/database
chmod 0755 /walk
binaries=$(dirname "$(find /usr/lib/postgresql -name initdb | sort -V | tail -n 1)")
sudo -u postgres "$binaries/initdb" --pgdata /walk/database --auth trust >/walk/initdb.txt
sudo -u postgres "$binaries/pg_ctl" --pgdata /walk/database --wait --options '-k /tmp' --log /walk/database/log start >/walk/pg.txt
awk '/^```sql/ { on = 1; next } /^```/ { on = 0 } on' "$manual/guides/postgresql.md" | sed 's/…/a-good-password/' | psql -q -h /tmp -U postgres -v ON_ERROR_STOP=1
echo 'postgresql://estuary:a-good-password@localhost/estuary' >est/database.url
head -c 32 /dev/urandom | base64 >est/shared.key
head -c 32 /dev/urandom | base64 >est/lookup.key
cp /var/lib/estuary/otp-lookup.key est/lookup.key 2>/dev/null || true
block guides/nodes-on-one-host '1. Create one configuration for each node' toml >node.toml
# Everything else is the same: the tables of est.toml, with the keys of the block in place of theirs.
for n in n1 n2 n3 n4; do
  awk 'NR == FNR { if (/^\[/) table = $0; else if (/=/) add[table] = add[table] $0 "\n"; next }
    /^\[/ { table = $0; drop = (table in add) && table != "[otp]"; print; if (table in add) { printf "%s", add[table]; delete add[table] } ; next }
    !drop || !/^(path|file|port) *=/ { print }
    END { for (table in add) printf "%s\n%s", table, add[table] }' node.toml est/est.toml |
    sed -e "s/host-a-n1/host-a-$n/; s|estuary/n1/|estuary/$n/|; s/^port = 9444.*/port = $((9443 + ${n#n}))/" >"$n.toml"
  mv "$n.toml" "est/$n.toml"
done
own
estuary store copy --config est/n1.toml --from sqlite --to postgres --path /var/lib/estuary/est.db
documented guides/nodes-on-one-host '2. Start the nodes' sh
documented guides/nodes-on-one-host '3. Monitor each node' sh | tee ready.txt
[ "$(grep -o '{"status":"ok"' ready.txt | wc -l)" -eq 4 ]
PORT=8443
documented guides/clients 'curl and openssl' sh 1 '1,/simpleenroll"/d'
documented guides/nodes-on-one-host '4. Restart the nodes one after the other' sh
documented guides/clients 'curl and openssl' sh 1 '1,/simpleenroll"/d'
for n in n1 n2 n3 n4; do sudo -u estuary estuary audit verify --config "/etc/estuary/$n.toml"; done
estuary admin cert show "$serial" --json | grep -q keyCompromise
step 'The walk is done'
