import { driverOf } from '../../ca/drivers.ts';
import { finding, type Finding } from '../problem.ts';
import { labelsOf } from '../labels.ts';
import type { Config } from '../schema.ts';

/** Checks on `[retention]` and `[audit]`. */
export function* retentionChecks(config: Config): Generator<Finding> {
  const { retention, audit, store } = config;
  if (store.driver === 'sqlite' && audit.file === store.path)
    yield finding('audit.file', 'is the file of store.path (another file)', 'store.path');
  if (retention.audit > 0 && audit.archive === undefined)
    yield finding(
      'audit.archive',
      'is missing, and retention.audit is given (the folder where audit records go before they leave the store)',
      'retention.audit',
    );
  if (audit.checkpoint_interval > 0 && audit.checkpoint_key === undefined)
    yield finding(
      'audit.checkpoint_key',
      'is missing, and audit.checkpoint_interval is given (a PEM file with a private key)',
      'audit.checkpoint_interval',
    );
  if (retention.certificates === 0) return;
  for (const {
    key,
    table: { profile },
  } of labelsOf(config))
    if (retention.certificates < profile.renewal_grace_days)
      yield finding(
        'retention.certificates',
        `${retention.certificates} is less than ${key}.profile.renewal_grace_days: the store would delete certificates that can still be renewed (0, or at least ${profile.renewal_grace_days})`,
        `${key}.profile.renewal_grace_days`,
      );
}

const PATH = 'a path, relative to the configuration file';

export function* serverCertificateChecks({ tls, ca }: Config): Generator<Finding> {
  const { certificate, private_key, automatic } = tls;
  const files = { 'tls.certificate': certificate, 'tls.private_key': private_key };
  for (const [key, file] of Object.entries(files)) {
    if (automatic === undefined && file === undefined) yield finding(key, `is missing (${PATH})`, 'tls.automatic');
    if (automatic !== undefined && file !== undefined)
      yield finding(key, 'is given, and so is tls.automatic (one of the two)', 'tls.automatic');
  }
  if (automatic === undefined) return;
  if (automatic.names.length === 0)
    yield finding('tls.automatic.names', 'is empty (a DNS name or an IP address, at least one)');
  const issuer = ca.find(({ label }) => label === automatic.ca);
  const why = issuer === undefined ? 'is not a CA of this server' : reasonAgainst(issuer);
  if (why !== undefined)
    yield finding(
      'tls.automatic.ca',
      `"${automatic.ca}" ${why} (the label of a CA whose key is here, with approval = "auto")`,
      ...ca.flatMap((_, index) => [`ca[${index}].label`, `ca[${index}].approval`]),
    );
}

function reasonAgainst({ driver, approval }: Config['ca'][number]): string | undefined {
  if (driverOf({ driver }).remote !== undefined) return `has the remote driver "${driver}"`;
  return approval === 'manual' ? 'has manual approval' : undefined;
}

const SECRET_URL = 'url_file = "path" or url_env = "VARIABLE"';

/** Checks on `[store]`. load.ts checks for `path` with `driver = "postgres"`, which only the document shows. */
export function* storeChecks({ server, store, otp }: Config): Generator<Finding> {
  const { driver, url, tls, shared_key } = store;
  const about = ['store.driver'];
  if (driver === 'sqlite') {
    for (const [name, value] of Object.entries({ url, tls, shared_key }))
      if (value !== undefined)
        yield finding(`store.${name}`, 'requires driver = "postgres" (driver is "sqlite")', ...about);
    if (server.reuse_port)
      yield finding(
        'server.reuse_port',
        'is true, and a SQLite store serves one node only (false, or store.driver = "postgres")',
        ...about,
      );
    return;
  }
  if (url === undefined)
    yield finding('store.url', `is missing, and store.driver is "postgres" (${SECRET_URL})`, ...about);
  if (otp.enabled && otp.lookup_key === undefined)
    yield finding(
      'otp.lookup_key',
      'is missing, and store.driver is "postgres" (lookup_key_file = "path" or lookup_key_env = "VARIABLE", the same key on every server of the database)',
      'store.driver',
      'otp.enabled',
    );
}
