/** The files that tell a monitor how the certificates are: written anew as a whole after each change. */
import { basename, dirname, join } from 'node:path';
import type { ClientConfig } from './config/client-config.ts';
import type { Disk } from './keep/disk.ts';
import { isWell, statusOf, type CertificateStatus } from './status.ts';

/** @param now milliseconds since the epoch */
export function writeReports(config: ClientConfig, disk: Disk, now: number): void {
  const { health_file: health, prometheus_file: prometheus } = config;
  if (health === undefined && prometheus === undefined) return;
  const all = config.certificate.map((one) => statusOf(one, disk, now));
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
  /** undefined: of this certificate there is none. */
  readonly of: (status: CertificateStatus) => number | undefined;
}

const seconds = (time: string | undefined): number | undefined =>
  time === undefined ? undefined : Date.parse(time) / 1000;

const METRICS: readonly Metric[] = [
  {
    name: 'estuary_client_certificate_valid',
    help: 'Whether there is a certificate, not due for longer than it should be.',
    of: ({ state }) => (state === 'valid' ? 1 : 0),
  },
  {
    name: 'estuary_client_certificate_not_after_seconds',
    help: 'End of the certificate, seconds since the epoch.',
    of: ({ not_after }) => seconds(not_after),
  },
  {
    name: 'estuary_client_certificate_renewal_seconds',
    help: 'When it is renewed, seconds since the epoch.',
    of: ({ renew_at }) => seconds(renew_at),
  },
  {
    name: 'estuary_client_failures',
    help: 'Attempts in a row that have failed.',
    of: ({ failures }) => failures,
  },
  {
    name: 'estuary_client_hook_pending',
    help: 'Whether the hook has not yet ended well for this certificate.',
    of: ({ hook_pending }) => (hook_pending ? 1 : 0),
  },
];

/** Prometheus' text format. */
export function metricsOf(certificates: readonly CertificateStatus[], now: number): string {
  const lines = METRICS.flatMap(({ name, help, of }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} gauge`,
    ...certificates.flatMap((one) => {
      const value = of(one);
      return value === undefined ? [] : [`${name}{certificate="${one.name}"} ${value}`];
    }),
  ]);
  const updated = 'estuary_client_updated_seconds';
  return `${[...lines, `# HELP ${updated} When this was written.`, `# TYPE ${updated} gauge`, `${updated} ${now / 1000}`].join('\n')}\n`;
}
