/** Its sample of all keys is accepted. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { configFolder } from './support.ts';
import type { ConfigFolder } from './support.ts';

const PROFILE = `
[ca.profile]
validity_days = 397
max_validity_days = 825
key_types = ["ec:P-256", "ec:P-384", "rsa:2048", "rsa:3072", "rsa:4096", "ed25519"]
key_usage = ["digitalSignature"]
extended_key_usage = ["clientAuth"]
subject = {}
san = {}
allow_subject_change = false
renewal_grace_days = 0
renewal_issuers = "old.pem"
mtls_subject = "any"
[ca.csrattrs]
challenge_password = false
key_type = "ec:P-384"
signature = "ecdsaWithSHA384"
extensions = ["subjectAltName", { name = "keyUsage", value = ["digitalSignature"] }, "1.2.3.4"]
oids = ["1.2.840.113549.1.9.7"]
template = true
subject = [{ O = "Example" }, { CN = "" }]`;

const SAMPLE = `
profile = "niap"
[server]
shutdown_grace = 10
body_limit = 65536
[est]
host = "0.0.0.0"
port = 9443
retry_after = 30
fullcmc = true
serverkeygen = true
csrattrs_require_mtls = false
fullcmc_require_mtls = true
require_pop_linking = false
challenge_password = "binding"
base64_line_length = 64
[tls]
certificate = "tls/server.pem"
private_key = "tls/server.key"
min_version = "TLSv1.2"
[tls.client_auth]
mode = "required_for_reenroll"
trust_anchors = "ca/root.pem"
crl = "crls"
[admin]
host = "127.0.0.1"
port = 9444
public_metrics = false
[admin.tls]
mode = "required"
trust_anchors = "admin/ca.pem"
default_roles = []
certificate = "admin/server.pem"
private_key = "admin/server.key"
[admin.bearer_token]
enabled = true
tokens = [{ token_hash = "sha256:${'0f'.repeat(32)}", description = "ops", name = "Ada", roles = ["ra"], not_after = "2030-01-31T12:00:00Z" }]
[[admin.clients]]
name = "Ada"
subject = "CN=Ada,O=Example"
issuer = "CN=Admin CA"
roles = ["admin", "operator"]
[[admin.clients]]
fingerprint = "sha256:${'0f'.repeat(32)}"
roles = ["auditor"]
[[admin.clients]]
spki_sha256 = "${'0f'.repeat(32)}"
roles = ["ra"]
[otp]
enabled = true
hash_algorithm = "argon2id"
token_length = 20
max_uses = 1
max_failures = 5
failure_window = 300
lockout_duration = 900
default_ttl = 86400
lockout_scope = "address"
hmac_key_file = "otp.key"
bind_client_id = "off"
[otp.argon2]
memory_kib = 19456
iterations = 2
parallelism = 1
[gssapi]
enabled = true
keytab = "est.keytab"
gssproxy = false
service_principal = "HTTP/est.example.com@EXAMPLE.COM"
default_template = "CN={principal},O=Example"
require_crypto_verification = true
[gssapi.principal_mapping]
"alice@EXAMPLE.COM" = "CN=alice,O=Example"
[serverkeygen]
encryption = "required"
password_env = "KEYGEN_PASSWORD"
[[serverkeygen.keys]]
id = "6b6579312d"
symmetric_key_file = "kek.bin"
[[serverkeygen.keys]]
id = "6b6579322d"
certificate = "device-kek.pem"
[[cmc.shared_secrets]]
identification = "device-1"
secret_env = "KEYGEN_PASSWORD"
[publication]
enabled = true
host = "0.0.0.0"
port = 8080
base_url = "http://pki.example.com"
crl_interval = 3600
[store]
driver = "sqlite"
path = "data/est.db"
[audit]
file = "data/audit.log"
[log]
level = "info"
[[ca]]
label = "devices"
default = true
driver = "file"
approval = "manual"
certificate = "ca/issuing.pem"
chain = "ca/chain.pem"
[ca.file]
private_key = "ca/issuing.key"
${PROFILE}
[[ca]]
label = "hsm"
driver = "pkcs11"
approval = "auto"
certificate = "ca/hsm.pem"
chain = "ca/chain.pem"
[ca.pkcs11]
module = "/usr/lib/softhsm/libsofthsm2.so"
token_label = "est"
pin_file = "hsm.pin"
key_label = "issuing"
max_sessions = 8
${PROFILE}
[[ca]]
label = "dogtag"
driver = "dogtag"
[ca.dogtag]
urls = ["https://pki1:8443", "https://pki2:8443"]
trust_anchors = "dogtag-ca.pem"
client_certificate = "agent.pem"
client_key = "agent.key"
profile = "caServerCert"
cmc_profile = "caFullCMCUserCert"
kra_urls = []
timeout = 10
`;
const ENV = { KEYGEN_PASSWORD: 'a pre-shared secret' };

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
  await folder.write('otp.key', Buffer.alloc(32, 1));
  await folder.write('kek.bin', Buffer.alloc(32, 2));
  await folder.write('hsm.pin', '1234\n');
});
afterAll(() => folder.remove());

test('every key of the sample is known, with the values it shows', async () => {
  expect(await folder.problems(SAMPLE, ENV)).toEqual([]);
});

test('fullcmc and serverkeygen are on unless switched off', async () => {
  const without = SAMPLE.replace('fullcmc = true\n', '').replace('serverkeygen = true\n', '');
  const { config } = await folder.load(without, ENV);
  expect(config.est).toMatchObject({ fullcmc: true, serverkeygen: true });
});

test('secrets are loaded, a PIN without the line end of its file', async () => {
  const { config } = await folder.load(SAMPLE, ENV);
  const hsm = config.ca[1];
  const pin = hsm?.driver === 'pkcs11' ? hsm.pkcs11.pin : undefined;
  expect([pin?.reveal().toString(), pin?.key]).toEqual(['1234', 'pin_file']);
  expect(config.serverkeygen.password?.reveal().toString()).toBe(ENV.KEYGEN_PASSWORD);
  expect(config.serverkeygen.keys[0]?.symmetric_key?.length).toBe(32);
});

test('an extension is a name, or a name with its value', async () => {
  const { config } = await folder.load(SAMPLE, ENV);
  expect(config.ca[0]?.csrattrs?.extensions).toEqual([
    { name: 'subjectAltName' },
    { name: 'keyUsage', value: ['digitalSignature'] },
    { name: '1.2.3.4' },
  ]);
});

test.each([
  [
    'both or neither of token_label and slot',
    'token_label = "est"\n',
    'token_label = "est"\nslot = 0\n',
    'ca[hsm].pkcs11.token_label: is given, and so is slot (one of the two)',
  ],
  [
    'neither key_label nor key_id',
    'key_label = "issuing"\n',
    '',
    'ca[hsm].pkcs11.key_label: is missing, and so is key_id (one of the two)',
  ],
  [
    'an inline PIN',
    'pin_file = "hsm.pin"',
    'pin = "1234"',
    'ca[hsm].pkcs11.pin: a secret must not be in the configuration file (pin_file = "path" or pin_env = "VARIABLE")',
  ],
  [
    'no replica',
    'urls = ["https://pki1:8443", "https://pki2:8443"]',
    'urls = []',
    'ca[dogtag].dogtag.urls: is empty (a list with at least one item)',
  ],
  [
    'a replica without TLS',
    '"https://pki2:8443"',
    '"http://pki2:8443"',
    'ca[dogtag].dogtag.urls[1]: "http://pki2:8443" is not an https URL (an https URL such as "https://pki1:8443")',
  ],
  [
    'another subject at Dogtag',
    'kra_urls = []\ntimeout = 10\n',
    'kra_urls = []\ntimeout = 10\n[ca.profile]\nallow_subject_change = true\n',
    'ca[dogtag].profile.allow_subject_change: is true, and Dogtag uses the names of the CSR (false)',
  ],
  [
    'no keytab',
    'keytab = "est.keytab"\n',
    '',
    'gssapi.keytab: is missing, and gssapi.enabled is true (a path, relative to the configuration file, or gssproxy = true)',
  ],
  [
    'no service principal',
    /service_principal.*\n/,
    '',
    'gssapi.service_principal: is missing, and gssapi.enabled is true (HTTP/<hostname>@<REALM>)',
  ],
  [
    'no base URL',
    /base_url.*\n/,
    '',
    'publication.base_url: is missing, and publication.enabled is true (an http URL such as "http://pki.example.com")',
  ],
  [
    'a key-encryption key of no AES size',
    'symmetric_key_file = "kek.bin"',
    'symmetric_key_env = "KEYGEN_PASSWORD"',
    'serverkeygen.keys[0].symmetric_key: has 19 bytes (16, 24 or 32 raw bytes)',
  ],
  [
    'a key identifier twice',
    '6b6579322d',
    '6B6579312D',
    'serverkeygen.keys[1].id: 6B6579312D occurs twice (a different id for each key)',
  ],
  [
    'a key entry with neither form',
    'certificate = "device-kek.pem"\n',
    '',
    'serverkeygen.keys[1]: names no key (one of symmetric_key_file, symmetric_key_env and certificate)',
  ],
  [
    'linking demanded and ignored',
    'require_pop_linking = false\nchallenge_password = "binding"',
    'require_pop_linking = true\nchallenge_password = "ignore"',
    'est.challenge_password: is "ignore", and est.require_pop_linking is true ("binding", or require_pop_linking = false)',
  ],
  [
    'a template subject without a template',
    'template = true',
    'template = false',
    'ca[devices].csrattrs.subject: is given, and template is false (template = true: a subject stands in the template only)',
  ],
  [
    'csrattrs asking for a key that the profile refuses',
    '"ec:P-256", "ec:P-384", "rsa',
    '"ec:P-256", "rsa',
    `ca[devices].csrattrs.key_type: "ec:P-384" is not in the profile's key_types (ec:P-256, rsa:2048, rsa:3072, rsa:4096, ed25519)`,
  ],
  [
    'a NIAP profile with keys in the clear',
    'encryption = "required"',
    'encryption = "optional"',
    'serverkeygen.encryption: is "optional": TLS alone protects generated private keys, which profile = "niap" refuses ("password" or "required", or est.serverkeygen = false)',
  ],
])('%s', async (_, from, to, problem) => {
  expect(SAMPLE).toMatch(from);
  const lines = await folder.problems(SAMPLE.replace(from, to), ENV);
  expect(lines).toContain(`est.toml: ${problem}`);
});
