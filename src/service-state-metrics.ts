/** Metrics of the state at the time of the scrape. They are rebuilt each time, so that no stale label remains. */
import { Gauge, Registry } from 'prom-client';
import { VERSION } from './version.ts';

interface CaGauge {
  readonly label: string;
  readonly up: boolean;
  /** undefined while unknown. */
  readonly not_after: number | undefined;
}

interface CertificateGauge {
  readonly use: string;
  readonly ca: string;
  readonly subject: string;
  readonly serial: string;
  readonly notAfter: number;
}

/** A dependency of the service other than its CAs and its store. */
interface DependencyGauge {
  readonly name: string;
  /** The CA that uses it; empty: none. */
  readonly ca: string;
  readonly up: boolean;
}

export interface ServiceState {
  readonly cas: readonly CaGauge[];
  readonly dependencies: readonly DependencyGauge[];
  readonly certificates: readonly CertificateGauge[];
  /** nextUpdate of CRLs of clients' issuers; 0: a needed one is missing. */
  readonly clientCrls: readonly { readonly issuer: string; readonly nextUpdate: number }[];
  /** undefined if the store does not respond. */
  readonly waiting:
    { readonly pending: readonly { ca: string; count: number }[]; readonly lockouts: number } | undefined;
  /** Holders of certificates by label and state; absent if the store does not respond. */
  readonly holders?: Readonly<Record<string, Readonly<Record<string, number>>>> | undefined;
  readonly storeUp: boolean;
  /** undefined: none since the start. */
  readonly lastReload: { readonly at: number; readonly ok: boolean } | undefined;
  /** Milliseconds that the clock is ahead of the database's. */
  readonly clockSkew: number;
}

export function renderState(state: ServiceState): Promise<string> {
  const registry = new Registry();
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]): Gauge<Label> =>
    new Gauge({ name, help, labelNames, registers: [registry] });
  const holders = gauge(
    'estuary_fleet_holders',
    'Holders of certificates by label and state (docs/guides/fleet.md).',
    'ca',
    'state',
  );
  for (const [ca, states] of Object.entries(state.holders ?? {}))
    for (const [name, n] of Object.entries(states)) holders.set({ ca, state: name }, n);
  const up = gauge('estuary_ca_up', '1 if the CA can sign.', 'ca');
  const caEnd = gauge('estuary_ca_certificate_expiry_timestamp_seconds', 'notAfter of the CA certificate.', 'ca');
  const end = gauge(
    'estuary_certificate_expiry_timestamp_seconds',
    'notAfter of each certificate that the service needs, by use.',
    'use',
    'ca',
    'subject',
    'serial',
  );
  for (const { label: ca, up: isUp, not_after: notAfter } of state.cas) {
    up.set({ ca }, isUp ? 1 : 0);
    if (notAfter !== undefined) caEnd.set({ ca }, notAfter / 1000);
  }
  for (const { notAfter, use, ca, subject, serial } of state.certificates)
    end.set({ use, ca, subject, serial }, notAfter / 1000);
  const dependencyUp = gauge(
    'estuary_dependency_up',
    '1 if the external dependency responds: hsm, dogtag, est, acme, command, gssapi, ldap, jwks, oidc, authorization, notification.',
    'dependency',
    'ca',
  );
  for (const { name, ca, up: isUp } of state.dependencies) dependencyUp.set({ dependency: name, ca }, isUp ? 1 : 0);
  const crlEnd = gauge(
    'estuary_client_crl_expiry_timestamp_seconds',
    'nextUpdate of the CRL of an issuer of client certificates; 0 if it needs one and has none.',
    'issuer',
  );
  for (const [issuer, lists] of Map.groupBy(state.clientCrls, (list) => list.issuer))
    crlEnd.set({ issuer }, Math.min(...lists.map(({ nextUpdate }) => nextUpdate)) / 1000);
  gauge('estuary_store_up', '1 if the store and the audit log can be written.').set(state.storeUp ? 1 : 0);
  if (state.waiting !== undefined) {
    const pending = gauge('estuary_requests_pending', 'Queued requests that wait for a decision.', 'ca');
    for (const { ca, count } of state.waiting.pending) pending.set({ ca }, count);
    gauge('estuary_lockouts', 'Locked-out addresses and names.').set(state.waiting.lockouts);
  }
  const skew = gauge(
    'estuary_clock_skew_seconds',
    "Seconds by which the clock of this node is ahead of the database's.",
  );
  skew.set(state.clockSkew / 1000);
  const { lastReload } = state;
  const reloaded = 'estuary_config_last_reload_successful';
  gauge(reloaded, '0 after a failed reload, until one succeeds.').set(lastReload?.ok === false ? 0 : 1);
  if (lastReload !== undefined)
    gauge('estuary_config_last_reload_timestamp_seconds', 'Time of the last reload.').set(lastReload.at / 1000);
  gauge('estuary_build_info', 'Version of the running server; always 1.', 'version', 'node').set(
    { version: VERSION, node: process.version },
    1,
  );
  return registry.metrics();
}
