/** What the admin API is made of; service.ts fills it in. */
import type { FastifyInstance, FastifyBaseLogger } from 'fastify';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { AuditEvent } from '../audit/event.ts';
import type { PresentedCredentials } from '../auth/identity.ts';
import type { CaDriver } from '../ca/driver.ts';
import type { Config } from '../config/schema.ts';
import type { OtpRow, Store } from '../store/store.ts';

/** The admin listener's Fastify instance, with types from the route schemas. */
export type AdminApp = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger, TypeBoxTypeProvider>;

export interface AdminIdentity {
  readonly method: 'mtls' | 'bearer';
  /** Who, for the audit log. */
  readonly display: string;
}

export interface AdminAuthenticator {
  authenticate(credentials: PresentedCredentials): Promise<AdminIdentity>;
}

export interface OtpService {
  create(
    request: { client_id: string; max_uses: number; expires_at: number; ca: string | null },
    events: readonly AuditEvent[],
  ): Promise<{ row: OtpRow; token: string }>;
}

export interface Ca {
  readonly label: string;
  readonly isDefault: boolean;
  readonly driver: CaDriver;
  readonly config: { readonly driver: string };
}

export interface CaRouter {
  readonly all: readonly Ca[];
  find(label: string): Ca | undefined;
}

/** Where log lines go; pino's shape. */
export interface AdminLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface AdminDependencies {
  readonly store: Store;
  readonly otp: OtpService;
  readonly authenticator: AdminAuthenticator;
  readonly cas: CaRouter;
  readonly settings: AdminSettings;
  readonly version: string;
  readonly now: () => number;
  readonly log: AdminLog;
}

/** The configuration that the admin API depends on. */
export interface AdminSettings {
  readonly server: Pick<Config['server'], 'body_limit' | 'request_timeout' | 'keep_alive_timeout'>;
  readonly otp: Pick<Config['otp'], 'enabled' | 'max_uses' | 'default_ttl'>;
  readonly admin: Pick<Config['admin'], 'public_metrics'>;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling; null on a public route. */
    admin: AdminIdentity | null;
    /** The client's network address. */
    clientAddress: string;
  }
  interface FastifyContextConfig {
    /** Answered without authentication. */
    public?: boolean;
  }
}
