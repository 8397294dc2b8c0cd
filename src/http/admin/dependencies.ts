/** Dependencies of the admin API, provided by main/assemble.ts. */
import type { FastifyInstance, FastifyBaseLogger } from 'fastify';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { AdminAuthenticator } from '../../auth/admin-authenticator.ts';
import type { AdminSession, AdminSessions } from '../../auth/admin-sessions.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import type { OtpService } from '../../auth/otp/otp-service.ts';
import type { CaRouter } from '../../ca/router.ts';
import type { CertificateExpiry } from '../../config/material/material.ts';
import type { ListState } from '../../auth/mtls/revocation-lists.ts';
import type { Warning } from '../../config/problem.ts';
import type { Config } from '../../config/schema.ts';
import type { ShownKey } from '../../config/shown.ts';
import type { DryRun } from '../../enrollment/dry-run.ts';
import type { Fleet } from '../../fleet/fleet.ts';
import type { Logger } from '../../log.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import type { Metrics } from '../../metrics.ts';
import type { Reload } from '../../config/diff.ts';
import type { Notifier } from '../../notification/notifier.ts';
import type { CrlPublisher } from '../../publication/crl-publisher.ts';
import type { ServiceState } from '../../service-state-metrics.ts';
import type { Store } from '../../store/store.ts';
import type { Access, LabelRule } from './access.ts';

export type AdminApp = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger, TypeBoxTypeProvider>;

export interface AdminDependencies {
  readonly store: Store;
  /** Result and time of the last reload. If it failed, the settings in force differ from the file. */
  readonly lastReload: () => ServiceState['lastReload'];
  readonly reload: Reload;
  /** Requests in flight end, and no other comes. */
  readonly isStopping?: () => boolean;
  /** Of configured files; drivers report the CAs' own certificates. */
  readonly certificateExpiries: () => readonly CertificateExpiry[];
  readonly otp: Pick<OtpService, 'create' | 'estimate'>;
  readonly authenticator: Pick<AdminAuthenticator, 'authenticate' | 'hasOidc' | 'beginOidc' | 'completeOidc'>;
  readonly sessions: Pick<AdminSessions, 'begin' | 'resume' | 'note' | 'end' | 'isAlive' | 'times'>;
  /** Why Kerberos tickets cannot be verified now; undefined if they can. Absent without Kerberos. */
  readonly missingCredentials?: () => Promise<string | undefined>;
  readonly configuration: () => readonly ShownKey[];
  /** Intervals of event streams in milliseconds, for tests. */
  readonly eventTimes?: { readonly lookEvery?: number; readonly beatEvery?: number };
  readonly cas: Pick<CaRouter, 'all' | 'issuers' | 'find'>;
  readonly est: () => EstEnd;
  /** Trust anchors of the EST listener, and CA certificates below them. */
  readonly issuers: () => readonly Certificate[];
  readonly notifiers: readonly Pick<Notifier, 'name' | 'state' | 'test'>[];
  /** Faults of files (docs/guides/faults.md). */
  readonly faults: () => readonly Warning[];
  readonly clientCrls: () => readonly ListState[];
  /** Services that were tried: a directory, a token issuer … */
  readonly services: () => readonly {
    readonly name: string;
    readonly ca: string;
    readonly problem: string | undefined;
  }[];
  readonly crls: Pick<CrlPublisher, 'latest' | 'signNow'>;
  readonly fleet: Pick<Fleet, 'list' | 'summary' | 'refresh'>;
  readonly dryRun: Pick<DryRun, 'run' | 'queued'>;
  readonly settings: AdminSettings;
  readonly metrics: Metrics;
  readonly version: string;
  readonly node: string;
  /** Folder of the console's files; default: the output of `npm run build`. */
  readonly consoleFolder?: string;
  readonly now: () => number;
  /** Milliseconds that this machine's clock is ahead of the database's; absent without one. */
  readonly clockSkew?: () => number;
  readonly log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;
}

/** The EST listener. */
export interface EstEnd {
  readonly port: number;
  /** The server certificate, PEM. */
  readonly certificate: string | Buffer;
}

export interface AdminSettings {
  readonly est: Pick<Config['est'], 'retry_after'>;
  readonly limits: Config['limits'];
  readonly server: Pick<Config['server'], 'body_limit' | 'headers_timeout' | 'request_timeout' | 'keep_alive_timeout'>;
  readonly otp: Pick<Config['otp'], 'enabled' | 'max_uses' | 'default_ttl'>;
  readonly admin: Pick<Config['admin'], 'public_metrics' | 'console'>;
  readonly publication: Pick<Config['publication'], 'enabled' | 'base_url'>;
  readonly tls: { readonly client_auth: Pick<Config['tls']['client_auth'], 'mode'> };
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller; null on a public route. */
    admin: AdminIdentity | null;
    /** The session of the call; null if it has other credentials or none. */
    adminSession: AdminSession | null;
    clientAddress: string;
  }
  interface FastifyContextConfig {
    /** The roles that may make the call. Every route sets it; Fastify's types cannot require it. */
    access?: Access;
    /** How labels limit it; absent: limited administrators may not make the call. */
    labels?: LabelRule;
    /** false: changes nothing although it is not a GET. */
    changes?: false;
    /** The call signs in: a cookie does not count. */
    signsIn?: true;
    /** Accepts NDJSON and CSV in addition to JSON, or only these. */
    bulk?: 'too' | 'only';
  }
}
