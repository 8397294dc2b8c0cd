/** `GET /admin/service`: where devices reach the service, and under which labels. */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { WELL_KNOWN } from '../../ready-lines.ts';
import type { AdminApp, AdminDependencies, EstEnd } from './dependencies.ts';
import { labelsOf } from './access.ts';
import { route } from './route.ts';
import { titled, Text, Texts } from './schemas.ts';

const Service = titled('Service', 'What devices need to know.', {
  est_url: Text(
    'The URL of the EST listener. Its host is that of the call if the server certificate is for it, otherwise the first DNS name of the certificate.',
  ),
  labels: Texts('The labels that the caller may name.'),
});

export function registerService(app: AdminApp, deps: AdminDependencies): void {
  route(app, {
    call: 'GET /admin/service',
    access: ['ra', 'auditor', 'operator'],
    labels: 'records',
    summary: 'Get the EST address and the labels',
    tag: 'api',
    response: { 200: Service },
    handler: (request) => {
      const limit = labelsOf(request);
      const labels = deps.cas.all.map(({ label }) => label);
      return {
        est_url: estUrlFor(request.hostname, deps.est()),
        labels: limit === undefined ? labels : labels.filter((label) => limit.includes(label)),
      };
    },
  });
}

/** @param host of the call, without its port */
export function estUrlFor(host: string, { port, certificate }: EstEnd): string {
  const leaf = new X509Certificate(certificate);
  const address = host.replace(/^\[(.*)\]$/, '$1');
  const isFor = isIP(address) === 0 ? leaf.checkHost(host) : leaf.checkIP(address);
  const [, first] = /DNS:([^,"*\s]+)(?:,|$)/.exec(leaf.subjectAltName ?? '') ?? [];
  const name = isFor === undefined ? (first ?? host) : host;
  return `https://${name}${port === 443 ? '' : `:${port}`}${WELL_KNOWN}`;
}
