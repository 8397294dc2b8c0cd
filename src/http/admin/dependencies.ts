/** What the admin API is made of; main/assemble.ts fills it in. */
import type { FastifyInstance, FastifyBaseLogger } from 'fastify';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { AdminAuthenticator } from '../../auth/admin-authenticator.ts';
import type { AdminSession, AdminSessions } from '../../auth/admin-sessions.ts';
import type { AdminIdentity } from '../../auth/administrators.ts';
import type { OtpService } from '../../auth/otp/otp-service.ts';
import type { CaRouter } from '../../ca/router.ts';
import type { CertificateEnd } from '../../config/material/certificate-ends.ts';
import type { Config } from '../../config/schema.ts';
import type { ShownKey } from '../../config/shown.ts';
import type { DryRun } from '../../enrollment/dry-run.ts';
import type { Logger } from '../../log.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import type { Metrics } from '../../metrics.ts';
import type { Reload } from '../../config/diff.ts';
import type { CrlPublisher } from '../../publication/crl-publisher.ts';
import type { Store } from '../../store/store.ts';
import type { EventStreamOptions } from './event-stream.ts';
import type { LabelRule } from './labels.ts';
import type { Access } from './roles.ts';

/** The admin listener's Fastify instance, with types from the route schemas. */
export type AdminApp = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger, TypeBoxTypeProvider>;

export interface AdminDependencies {
  readonly store: Store;
  readonly condition: () => ServiceCondition;
  readonly reload: Reload;
  /** Of the files that the configuration names; the CAs' own certificates are theirs to tell. */
  readonly certificateEnds: () => readonly CertificateEnd[];
  readonly otp: Pick<OtpService, 'create' | 'estimate'>;
  readonly authenticator: Pick<AdminAuthenticator, 'authenticate'>;
  readonly sessions: Pick<AdminSessions, 'begin' | 'resume' | 'note' | 'end' | 'isAlive' | 'times'>;
  /** Why Kerberos tickets cannot be verified now; undefined while they can. Absent where nobody verifies any. */
  readonly missingCredentials?: () => Promise<string | undefined>;
  /** What is in force. */
  readonly configuration: () => readonly ShownKey[];
  /** How often a stream of events looks and shows that it lives, milliseconds; as it should be unless a test says otherwise. */
  readonly eventTimes?: Pick<EventStreamOptions, 'lookEvery' | 'beatEvery'>;
  readonly cas: Pick<CaRouter, 'all' | 'issuers' | 'find'>;
  /** Trust anchors of the EST listener, and CA certificates between them and clients. */
  readonly issuers: () => readonly Certificate[];
  readonly crls: Pick<CrlPublisher, 'signNow'>;
  readonly dryRun: Pick<DryRun, 'run' | 'queued'>;
  readonly settings: AdminSettings;
  readonly metrics: Metrics;
  readonly version: string;
  /** What this server is called among those that share its store. */
  readonly node: string;
  /** Where the console's files are, if not where `npm run build` puts them. */
  readonly consoleFolder?: string;
  readonly now: () => number;
  /** Milliseconds that this machine's clock is ahead of the database's; absent: there is no other clock. */
  readonly clockSkew?: () => number;
  readonly log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;
}

/** What is not as it should be, though the service answers. */
export interface ServiceCondition {
  /** The last reload failed: what is in force is not what the file says. */
  readonly reloadFailed: boolean;
  /** How the last one ended, and when, in milliseconds since the epoch. */
  readonly lastReload?: { readonly at: number; readonly ok: boolean };
}

/** The configuration that the admin API depends on. */
export interface AdminSettings {
  readonly est: Pick<Config['est'], 'retry_after'>;
  readonly limits: Config['limits'];
  readonly server: Pick<Config['server'], 'body_limit' | 'headers_timeout' | 'request_timeout' | 'keep_alive_timeout'>;
  readonly otp: Pick<Config['otp'], 'enabled' | 'max_uses' | 'default_ttl'>;
  readonly admin: Pick<Config['admin'], 'public_metrics' | 'console'>;
  readonly publication: Pick<Config['publication'], 'enabled' | 'base_url'>;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling; null on a public route. */
    admin: AdminIdentity | null;
    /** That the call came with; null: it brought its own credentials, or none. */
    adminSession: AdminSession | null;
    /** The client's network address. */
    clientAddress: string;
  }
  interface FastifyContextConfig {
    /** Who may make the call. Every route of ours says so; Fastify's types do not let it be asked for here. */
    access?: Access;
    /** How labels limit it; absent: limited administrators may not make the call. */
    labels?: LabelRule;
    /** false: it changes nothing, though it is no GET. */
    changes?: false;
    /** Who makes the call signs in with it: a cookie does not count. */
    signsIn?: true;
    /** Takes NDJSON and CSV beside JSON, or alone. */
    bulk?: 'too' | 'only';
  }
}
