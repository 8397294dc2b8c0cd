/** The client's environment (time, randomness, network, disk, hooks), which tests can replace. */
import { randomBytes } from 'node:crypto';
import type { TokenConfig } from './config/schema.ts';
import type { ClientIdentity, ServerTrust } from './http/connection.ts';
import { EstServer, type EstServerSettings } from './http/est-server.ts';
import { askResponder } from './http/ocsp.ts';
import { runHook, type RunHook } from './run-hook.ts';
import { DISK, type Disk } from './keep/disk.ts';
import { openToken, type TokenKeys } from './token/token.ts';

export type EstOperations = Pick<EstServer, keyof EstServer>;

type LogLevel = 'info' | 'warning' | 'error';

export interface ClientContext {
  now(): number;
  /** 0 to 1. */
  random(): number;
  randomBytes(count: number): Buffer;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly disk: Disk;
  readonly runHook: RunHook;
  /** @param certificate its name in the configuration */
  log(level: LogLevel, certificate: string, message: string): void;
  server(settings: EstServerSettings, trust: ServerTrust, identity: ClientIdentity | undefined): EstOperations;
  token(config: TokenConfig): TokenKeys;
  /** The response to an OCSP request. */
  ocsp(url: string, request: Buffer): Promise<Buffer>;
  /** Asks a question; undefined without a terminal. */
  readonly ask: ((question: string, options: { readonly secret: boolean }) => Promise<string>) | undefined;
}

export function realContext(more: Pick<ClientContext, 'env' | 'log' | 'ask' | 'now'>): ClientContext {
  const context: ClientContext = {
    random: Math.random,
    randomBytes: (count) => randomBytes(count),
    disk: DISK,
    runHook,
    server: (settings, trust, identity) => new EstServer(settings, trust, identity),
    token: (config) => openToken(config, context),
    ocsp: askResponder,
    ...more,
  };
  return context;
}
