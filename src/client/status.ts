/** The state of each certificate, for people, a health file and Prometheus. Reads only. */
import { basename, dirname, join } from 'node:path';
import type { Certificate } from '../pki/x509/certificate.ts';
import { formatGeneralName } from '../pki/x509/general-name.ts';
import { formatName } from '../pki/x509/name.ts';
import type { ClientError } from './client-error.ts';
import type { CertificateConfig, ClientConfig } from './config/schema.ts';
import { CertificateFolder } from './keep/certificate-folder.ts';
import type { Disk } from './keep/disk.ts';
import type { LastError } from './keep/state.ts';

/**
 * Renewal at two thirds of the lifetime, spread by a tenth of it, so that a fleet enrolled within an hour does not
 * renew within one.
 */
const RENEWAL_POINT = 2 / 3;
const SPREAD = 0.1;

/**
 * The time of renewal. The certificate's hash determines the spread, so it is random but stable across restarts.
 * @param point of the lifetime, 0 to 1
 */
export function renewalTime({ notBefore, notAfter, fingerprint }: Certificate, point = RENEWAL_POINT): number {
  const lifetime = notAfter.getTime() - notBefore.getTime();
  const drawn = Number.parseInt(fingerprint.slice(0, 8), 16) / 2 ** 32;
  const spread = Math.min(SPREAD, point / 2, (1 - point) / 2);
  return Math.round(notBefore.getTime() + lifetime * (point + (drawn - 0.5) * spread));
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** For temporary failures, and for those that a person must fix: repeated wrong passwords lock out the address. */
const TEMPORARY = { first: 15 * SECOND, longest: HOUR };
const LASTING = { first: 5 * MINUTE, longest: 6 * HOUR };
/** For a device that an administrator must enable. */
const DISABLED = { least: HOUR, most: 24 * HOUR, share: 1 / 4 };

/**
 * Milliseconds until the next attempt. The delay starts at the server's Retry-After, if any, doubles with each failure,
 * and is at least Retry-After. Half of it is random. For short-lived certificates it is proportional to the lifetime.
 * @param failures consecutive, at least 1
 * @param lifetime milliseconds, of the current certificate
 * @param random 0 to 1
 */
export function retryDelay(error: ClientError, failures: number, lifetime: number | undefined, random: number): number {
  const spread = 0.5 + random / 2;
  if (error.kind === 'disabled') {
    const { least, most, share } = DISABLED;
    return Math.round(Math.min(most, Math.max(least, (lifetime ?? Infinity) * share)) * spread);
  }
  const isTemporary = error.kind === 'later' || error.kind === 'local';
  const { first, longest } = isTemporary ? TEMPORARY : LASTING;
  const most = Math.min(longest, Math.max(SECOND, (lifetime ?? Infinity) / 50));
  const least = (error.retryAfter ?? 0) * SECOND;
  const start = isTemporary && least > 0 ? least : first;
  const delay = Math.min(most, Math.min(start, most) * 2 ** Math.min(failures - 1, 20));
  return Math.round(Math.max(delay * spread, least));
}

/** An earlier clock is unset: this client did not exist then. */
const EARLIEST = Date.UTC(2026, 0, 1);
/** Tolerated clock difference, as for backdated certificates. */
const TOLERATED = 5 * MINUTE;

/** Why this machine's time must be wrong, or undefined. */
export function clockProblem(now: number, live: Certificate | undefined): string | undefined {
  const earliest = Math.max(EARLIEST, (live?.notBefore.getTime() ?? 0) - TOLERATED);
  if (now >= earliest) return undefined;
  return `the clock is at ${new Date(now).toISOString()}, which is before ${new Date(earliest).toISOString()}`;
}

interface CertificateStatus {
  readonly name: string;
  /**
   * `due`: renewal is due; `pending`: the first request was accepted; `disabled`: the server rejects the device; `unknown to the server`:
   * it no longer has renewal information for the certificate, its OCSP responder does not know it, or it does not trust the issuer.
   */
  readonly state:
    'valid' | 'due' | 'disabled' | 'expired' | 'revoked' | 'unknown to the server' | 'pending' | 'missing';
  readonly folder: string;
  readonly subject: string | undefined;
  readonly names: readonly string[];
  readonly serial: string | undefined;
  readonly not_before: string | undefined;
  readonly not_after: string | undefined;
  readonly renew_at: string | undefined;
  /** When a new certificate that is not valid yet takes over. */
  readonly successor_from: string | undefined;
  readonly failures: number;
  readonly next_attempt: string | undefined;
  readonly hook_pending: boolean;
  readonly last_error: LastError | undefined;
}

/** What servers say of a revoked certificate: in a response, and in the alert of a failed handshake (RFC 8446 §6.2). */
const REVOKED = /certificate (?:is )?revoked/i;
/** What they say of one that they do not know, or no longer trust. */
const UNKNOWN = /alert (?:unknown ca|certificate unknown)|certificate signed by unknown authority/i;

/** What an error of an attempt shows of the client's certificate; undefined: nothing. */
export function knowledgeOf(message = ''): 'revoked' | 'unknown' | undefined {
  if (REVOKED.test(message)) return 'revoked';
  return UNKNOWN.test(message) ? 'unknown' : undefined;
}

/** A renewal is late if it is overdue by a tenth of the lifetime. */
const LATE = 0.1;
const ACCESS = { folder: { mode: 0o755 }, secret: { mode: 0o600 }, open: { mode: 0o644 } };

export function statusOf(config: CertificateConfig, disk: Disk, now: number): CertificateStatus {
  const folder = new CertificateFolder(config.folder, disk, ACCESS);
  const live = folder.live();
  const state = folder.state();
  const iso = (time: number): string => new Date(time).toISOString();
  const certificate = live?.certificate;
  const due = certificate && renewalTime(certificate, config.renew_at / 100);
  const successor = live && folder.successor()?.certificate.notBefore;
  const validity = (): CertificateStatus['state'] => {
    if (state.lastError?.code === 'DEVICE_DISABLED') return 'disabled';
    if (certificate === undefined || due === undefined) return state.accepted ? 'pending' : 'missing';
    if (now > certificate.notAfter.getTime()) return 'expired';
    const answered = state.renewal?.version === live?.version ? state.renewal?.server : undefined;
    const knowledge = knowledgeOf(state.lastError?.message) ?? answered;
    if (knowledge === 'revoked') return 'revoked';
    if (knowledge === 'unknown') return 'unknown to the server';
    const lifetime = certificate.notAfter.getTime() - certificate.notBefore.getTime();
    return successor === undefined && now > due + lifetime * LATE ? 'due' : 'valid';
  };
  return {
    name: config.name,
    state: validity(),
    folder: config.folder,
    subject: certificate && formatName(certificate.subject),
    names: certificate?.subjectAltNames.map(formatGeneralName) ?? [],
    serial: certificate?.serialNumber,
    not_before: certificate?.notBefore.toISOString(),
    not_after: certificate?.notAfter.toISOString(),
    renew_at: due === undefined ? undefined : iso(due),
    successor_from: successor?.toISOString(),
    failures: state.failures,
    next_attempt: state.nextAttempt > now ? iso(state.nextAttempt) : undefined,
    hook_pending: live !== undefined && state.announced?.split(' ')[0] !== String(live.version),
    last_error: state.lastError,
  };
}

export const isWell = ({ state, hook_pending }: CertificateStatus): boolean => state === 'valid' && !hook_pending;

export function describeStatus(status: CertificateStatus): string {
  const { name, state, subject, names, not_after: end, renew_at: renewal, last_error: error } = status;
  const lines = [
    `${name}: ${state}`,
    ...(subject === undefined ? [] : [`  subject    ${[subject, ...names].filter((name) => name !== '').join(', ')}`]),
    ...(end === undefined ? [] : [`  expires    ${end}`]),
    ...(renewal === undefined ? [] : [`  renewal    ${renewal}`]),
    ...(status.successor_from === undefined ? [] : [`  successor  valid from ${status.successor_from}`]),
    ...(status.next_attempt === undefined ? [] : [`  next try   ${status.next_attempt}`]),
    ...(status.hook_pending ? ['  hook       has not run for it yet'] : []),
    ...(error === undefined ? [] : [`  last error ${error.time} ${error.message}`]),
  ];
  return `${lines.join('\n')}\n`;
}

/** Writes the monitoring files atomically after each change. */
export function writeReports(config: ClientConfig, disk: Disk, now: number): void {
  const { health_file: health, prometheus_file: prometheus } = config;
  if (health === undefined && prometheus === undefined) return;
  const all = config.certificate.map((certificate) => statusOf(certificate, disk, now));
  if (health !== undefined) replace(disk, health, `${JSON.stringify(healthOf(all, now), null, 2)}\n`);
  if (prometheus !== undefined) replace(disk, prometheus, metricsOf(all, now));
}

function replace(disk: Disk, path: string, content: string): void {
  const fresh = join(dirname(path), `.${basename(path)}.new`);
  disk.remove(fresh);
  disk.write(fresh, content, { mode: 0o644 });
  disk.rename(fresh, path);
}

export const healthOf = (certificates: readonly CertificateStatus[], now: number): object => ({
  status: certificates.every(isWell) ? 'ok' : 'failing',
  time: new Date(now).toISOString(),
  certificates,
});

interface Metric {
  readonly name: string;
  readonly help: string;
  /** undefined: not applicable to this certificate. */
  readonly of: (status: CertificateStatus) => number | undefined;
}

const seconds = (time: string | undefined): number | undefined =>
  time === undefined ? undefined : Date.parse(time) / 1000;

const METRICS: readonly Metric[] = [
  {
    name: 'estuary_client_certificate_valid',
    help: 'Whether the certificate is valid and its renewal is not late.',
    of: ({ state }) => (state === 'valid' ? 1 : 0),
  },
  {
    name: 'estuary_client_certificate_not_after_seconds',
    help: 'When the certificate expires, seconds since the epoch.',
    of: ({ not_after }) => seconds(not_after),
  },
  {
    name: 'estuary_client_certificate_renewal_seconds',
    help: 'When the renewal is due, seconds since the epoch.',
    of: ({ renew_at }) => seconds(renew_at),
  },
  {
    name: 'estuary_client_failures',
    help: 'Failed attempts in a row.',
    of: ({ failures }) => failures,
  },
  {
    name: 'estuary_client_hook_pending',
    help: 'Whether the deploy hook has not succeeded yet for this certificate.',
    of: ({ hook_pending }) => (hook_pending ? 1 : 0),
  },
];

/** Prometheus' text format. */
export function metricsOf(certificates: readonly CertificateStatus[], now: number): string {
  const lines = METRICS.flatMap(({ name, help, of }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} gauge`,
    ...certificates.flatMap((certificate) => {
      const value = of(certificate);
      return value === undefined ? [] : [`${name}{certificate="${certificate.name}"} ${value}`];
    }),
  ]);
  const updated = 'estuary_client_updated_seconds';
  return `${[...lines, `# HELP ${updated} When the client wrote this file, seconds since the epoch.`, `# TYPE ${updated} gauge`, `${updated} ${now / 1000}`].join('\n')}\n`;
}
