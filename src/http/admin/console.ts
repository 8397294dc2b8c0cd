/** The browser console at `/`: static files. Its data comes from the API under /admin. */
import fastifyStatic from '@fastify/static';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyReply } from 'fastify';
import { notFound } from '../../errors.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';

/** Output folder of `npm run build`, next to the compiled server; also found when running from source. */
const FOLDERS = [join(import.meta.dirname, 'console'), join(import.meta.dirname, '../../../dist/console')];

/** No inline or foreign content, no text that becomes script, no frames. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
};

/** The names of assets contain a hash of their content. */
const FOREVER = 'public, max-age=31536000, immutable';

/** Serves the built console; without a build, says so. */
export function registerConsole(
  app: AdminApp,
  { log, consoleFolder }: Pick<AdminDependencies, 'log' | 'consoleFolder'>,
): void {
  const folders = consoleFolder === undefined ? FOLDERS : [consoleFolder];
  const folder = folders.find((folder) => existsSync(join(folder, 'index.html')));
  if (folder === undefined) {
    log.warn({}, 'the console is not built: run npm run build');
    return;
  }
  const assets = new Set(readdirSync(join(folder, 'assets')).filter((name) => !/\.(?:br|gz)$/.test(name)));
  app.register(fastifyStatic, { root: folder, serve: false, preCompressed: true, cacheControl: false });
  const route = { config: { access: 'public' as const }, schema: { hide: true } };
  app.get('/', route, (_request, reply) => send(reply, 'index.html', 'no-store'));
  app.get<{ Params: { name: string } }>('/assets/:name', route, (request, reply) => {
    const { name } = request.params;
    if (!assets.has(name)) throw notFound('NOT_FOUND', 'nothing is served at this path');
    return send(reply, `assets/${name}`, FOREVER);
  });
}

function send(reply: FastifyReply, file: string, cacheControl: string): FastifyReply {
  return reply.headers({ ...HEADERS, 'cache-control': cacheControl }).sendFile(file);
}
