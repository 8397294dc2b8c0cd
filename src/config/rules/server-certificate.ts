import { isRemoteDriver } from '../schema/ca.ts';
import type { Config } from '../schema.ts';
import type { Finding } from './finding.ts';

const PATH = 'a path, relative to the configuration file';

/** The checks on where the server's own certificate comes from. */
export function* serverCertificateChecks({ tls, ca }: Config): Generator<Finding> {
  const { certificate, private_key, automatic } = tls;
  const files = { 'tls.certificate': certificate, 'tls.private_key': private_key };
  for (const [key, file] of Object.entries(files)) {
    if (automatic === undefined && file === undefined)
      yield { key, message: `is missing (${PATH})`, about: ['tls.automatic'] };
    if (automatic !== undefined && file !== undefined)
      yield { key, message: 'is given, and so is tls.automatic (one of the two)', about: ['tls.automatic'] };
  }
  if (automatic === undefined) return;
  if (automatic.names.length === 0)
    yield { key: 'tls.automatic.names', message: 'is empty (a DNS name or an IP address, at least one)' };
  const issuer = ca.find(({ label }) => label === automatic.ca);
  const why = issuer === undefined ? 'is no CA of this server' : reasonAgainst(issuer);
  if (why !== undefined)
    yield {
      key: 'tls.automatic.ca',
      message: `"${automatic.ca}" ${why} (the label of a CA whose key is here, with approval = "auto")`,
      about: ca.flatMap((_, index) => [`ca[${index}].label`, `ca[${index}].approval`]),
    };
}

function reasonAgainst({ driver, approval }: Config['ca'][number]): string | undefined {
  if (isRemoteDriver(driver)) return `has the remote driver "${driver}"`;
  return approval === 'manual' ? 'has manual approval' : undefined;
}
