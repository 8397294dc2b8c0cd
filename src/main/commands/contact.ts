/** Contacts the CAs and services of a configuration for `doctor` and `check`, and changes nothing. */
import { IssuerKeys } from '../../auth/jwt/issuer-keys.ts';
import { Directory } from '../../auth/ldap/directory.ts';
import { OidcSignIn } from '../../auth/oidc/oidc-sign-in.ts';
import { createRouter } from '../../ca/create-router.ts';
import type { DriverDefinition, HealthReport } from '../../ca/driver.ts';
import { driverOf } from '../../ca/drivers.ts';
import { healthOf } from '../../ca/expiry.ts';
import type { Ca } from '../../ca/router.ts';
import { clientTls } from '../../ca/remote/client-tls.ts';
import type { LoadedService } from '../../config/load.ts';
import type { ServiceMaterial } from '../../config/material/material.ts';
import { describe } from '../../errors.ts';
import { HttpClient } from '../../https-client.ts';
import { mailTransport } from '../../notification/receivers.ts';
import { FairLimiter } from '../../process/fair-limiter.ts';
import { keySource, trustedBy } from '../live-settings.ts';
import { detailOf } from '../service-watch.ts';

type Loaded = Pick<LoadedService, 'config' | 'material'>;

export interface CaContact extends HealthReport {
  readonly label: string;
  /** Of what is not in a file: the effect and what to do, unless it answers. */
  readonly advice?: string;
}

/** Starts the drivers of CAs, as the server does. @param drivers whose; default: all */
export async function contactCas(
  { config, material }: Loaded,
  now: number,
  drivers: (driver: DriverDefinition) => boolean = () => true,
): Promise<CaContact[]> {
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const router = createRouter(config, material, {
    now: () => now,
    env: process.env,
    log,
    makeMutex: (_name, queue) => new FairLimiter({ concurrency: 1, queue }),
    // No certificates are looked up here.
    store: {
      getCertificates: () => Promise.resolve([]),
      hasOtherLabels: () => Promise.resolve(false),
      rememberIntermediates: () => Promise.resolve(),
      getAcmeAccount: () => Promise.resolve(undefined),
      putAcmeAccount: () => Promise.resolve(),
      recallIntermediates: () => Promise.resolve([]),
    },
  });
  const tables = new Map(material.cas.map(({ table }) => [table.label, driverOf(table)]));
  const cas = router.issuers.flatMap((ca) => {
    const driver = tables.get(ca.label);
    return driver !== undefined && drivers(driver) ? [{ ca, driver }] : [];
  });
  return Promise.all(
    cas.map(async ({ ca, driver: { remote, dependency } }): Promise<CaContact> => {
      const { label, fault } = ca;
      const report = await reportOf(ca, now);
      if (report.health !== 'down' || fault !== undefined || dependency === undefined) return { label, ...report };
      const restore = remote === undefined ? 'Restore the token' : 'Restore the CA or the connection';
      return { label, ...report, advice: `this label answers 503. ${restore}, or correct ca[${label}]` };
    }),
  );
}

async function reportOf(ca: Ca, now: number): Promise<HealthReport> {
  try {
    await ca.driver.start?.();
    return await healthOf(ca, now);
  } catch (error) {
    return { health: 'down', detail: describe(error) };
  } finally {
    await ca.driver.close?.();
  }
}

export interface ServiceContact {
  /** As in findings. */
  readonly name: string;
  readonly key: string;
  /** URL, or host and port. */
  readonly where: string;
  /** With the effect and what to do; undefined: it answers. */
  readonly problem: string | undefined;
}

/** Contacts what the CAs do not report: without a password of a requester, and without a notification. */
export async function contactServices({ config, material }: Loaded): Promise<ServiceContact[]> {
  const { ldap, jwt } = config.auth;
  const { oidc } = config.admin;
  const common = { retryAfter: 0, now: Date.now };
  const contact = (
    of: Omit<ServiceContact, 'problem'>,
    effect: string,
    reason: string | undefined,
  ): ServiceContact => ({
    ...of,
    problem: reason && `${reason}: ${effect}. Restore the service or the connection, or correct ${of.key}`,
  });
  const asked: Promise<ServiceContact | ServiceContact[]>[] = [];
  const ask = (of: Omit<ServiceContact, 'problem'>, effect: string, answer: Promise<unknown>): void => {
    asked.push(answer.then(() => undefined, detailOf).then((reason) => contact(of, effect, reason)));
  };
  if (ldap !== undefined) {
    const directory = new Directory({ ...common, settings: ldap, ca: () => trustedBy(material.directory) });
    const effect = 'requests that need the directory get 503';
    const of = { name: 'directory', key: 'auth.ldap' };
    const probed = directory.probe([config.gssapi.directory?.required_group]);
    asked.push(probed.then((all) => all.map(([where, problem]) => contact({ ...of, where }, effect, problem))));
  }
  if (jwt !== undefined) {
    const keys = new IssuerKeys({ ...common, source: keySource(jwt, () => material) });
    const of = { name: 'token issuer', key: 'auth.jwt', where: jwt.issuer };
    ask(of, 'requests with its tokens get 503', keys.probe());
  }
  if (oidc !== undefined) {
    const signIn = new OidcSignIn({ ...oidc, ca: trustedBy(material.openidProvider) });
    const of = { name: 'OpenID provider', key: 'admin.oidc', where: oidc.issuer };
    ask(of, 'administrators cannot sign in there', signIn.begin());
  }
  for (const [list, { table, authorization }] of labelsWithFiles({ material })) {
    if (table.authorization === undefined) continue;
    const { origin: where } = new URL(table.authorization.url);
    const of = { name: 'authorization service', key: `${list}[${table.label}].authorization`, where };
    ask(of, 'this label answers 503', reach(where, authorization));
  }
  for (const [index, receiver] of config.notifications.entries()) {
    const files = material.receivers.get(receiver.name);
    const isMail = receiver.kind === 'smtp';
    const where = isMail ? receiver.host : new URL(receiver.url).origin;
    const of = { name: `receiver ${receiver.name}`, key: `notifications[${index}]`, where };
    ask(of, 'notifications wait', isMail ? reachMail(receiver, files) : reach(where, files));
  }
  return (await Promise.all(asked)).flat();
}

const labelsWithFiles = ({ material: { cas, labels } }: Pick<Loaded, 'material'>) => [
  ...cas.map((ca) => ['ca', ca] as const),
  ...[...labels.values()].flat().map((label) => ['label', label] as const),
];

/** Milliseconds. */
const ANSWER_WITHIN = 10_000;

/** Any answer will do. @throws TransportError */
async function reach(origin: string, material: ServiceMaterial | undefined): Promise<void> {
  const client = new HttpClient(origin, clientTls(material ?? {}));
  try {
    await client.call({ method: 'HEAD', path: '/', deadline: Date.now() + ANSWER_WITHIN });
  } finally {
    client.close();
  }
}

async function reachMail(...receiver: Parameters<typeof mailTransport>): Promise<void> {
  const transport = await mailTransport(...receiver);
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}
