/** Options of commands with many of them. */
import { GENERATED_KEY_TYPES } from '../../pki/x509/key-pair.ts';
import { flag, required, value, values } from './command.ts';

export const config = required('FILE', 'the configuration');

/** Of a check of the configuration. */
export const CHECK = {
  config,
  offline: flag('check without contacting CAs, services and the database'),
  fleet: flag('find the devices that could not renew with this configuration, in the store'),
  against: value('FILE', 'with --fleet: the configuration in force, to find what the change does'),
  json: flag('with --fleet: print JSON, for programs'),
};

export const SERVE = { config, check: flag('check the configuration like "check", and stop'), offline: CHECK.offline };

export const STORE_COPY = {
  config: required('FILE', 'the configuration with store.driver = "postgres"'),
  from: required('DRIVER', 'sqlite or postgres'),
  to: required('DRIVER', 'the other driver'),
  path: value('FILE', 'the SQLite database (default data/est.db next to the configuration)'),
};

export const AUDIT_VERIFY = {
  config,
  checkpoint: value(
    'FILE',
    'checkpoints kept elsewhere (lines of the log or of the audit file): the chain must match them',
  ),
  'checkpoint-key': value(
    'FILE',
    'PEM of the public or private key of the checkpoints (default audit.checkpoint_key, if it is readable)',
  ),
};

export const AUDIT_EXPORT = {
  config,
  format: value('FORMAT', 'json (one record per line, as in the audit file; the default), csv or cef'),
  since: value('TIME', 'records from this time on, ISO 8601'),
  until: value('TIME', 'records up to this time'),
};

/** Options that constrain a subordinate CA. */
export const SUBORDINATE = {
  'path-length': value('N', 'number of CAs allowed below the issuing CA (default 0)'),
  'permitted-dns': values('HOST', 'name constraint: the CA may certify this host and the hosts below it'),
  'permitted-ip': values('NETWORK', 'name constraint: the CA may certify addresses of this network'),
};

export const CA_INIT = {
  config: value('FILE', 'the configuration; [ca.file] or [ca.pkcs11] of the CA says where its key is'),
  ca: value('LABEL', "the CA's label"),
  csr: value('FILE', 'write a PKCS #10 request for a CA above to FILE instead of a self-signed root'),
  'use-existing-key': flag('use the existing key that the configuration names'),
  root: value('DIR', 'the folder of a new root: root.key, root.pem'),
  issuing: value('DIR', 'the folder of a new issuing CA that the root signs: issuing.key, issuing.pem, chain.pem'),
  'key-type': value(
    'TYPE',
    `${GENERATED_KEY_TYPES.join(', ')} (default ec:P-256; a token creates RSA, EC and, from PKCS#11 3.2 on, ML-DSA keys)`,
  ),
  subject: value('DN', "the CA's name in RFC 4514 form (default CN=LABEL CA, or CN=Issuing CA)"),
  days: value('N', 'validity of the self-signed root (default 3650), or of the issuing CA (default 1825)'),
  'root-subject': value('DN', "the root's name (default CN=Root CA)"),
  'root-days': value('N', 'validity of the root (default 7300)'),
  'root-passphrase-file': value('FILE', 'encrypt root.key (PKCS #8) with the passphrase in FILE'),
  ...SUBORDINATE,
};

const ISSUER_PASSPHRASE = value('FILE', 'the passphrase of an encrypted key of the CA that signs is in FILE');

export const CA_SIGN = {
  issuer: required('DIR', 'the folder of the CA that signs: NAME.key, NAME.pem'),
  'issuer-passphrase-file': ISSUER_PASSPHRASE,
  csr: required('FILE', 'the PKCS #10 request, for example from "ca init --csr"'),
  out: required('FILE', 'the new certificate'),
  days: value('N', 'validity (default 1825), at most that of the issuer'),
  ...SUBORDINATE,
};

export const CA_RENEW = {
  issuer: required('DIR', 'the folder of the CA that signs'),
  'issuer-passphrase-file': ISSUER_PASSPHRASE,
  ca: required('DIR', 'the folder of the CA to renew'),
  'new-key': flag('create a new key; the former one is kept under another name'),
  days: value('N', 'validity (default 1825), at most that of the issuer'),
};
