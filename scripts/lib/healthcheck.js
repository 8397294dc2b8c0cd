// Exits 0 when the admin listener of this machine is alive. Its host and port are those of the configuration: the image's, or the file that
// ESTUARY_CONFIG names. ESTUARY_ADMIN_PORT names another port.
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { parse } from 'smol-toml';

/** A listener on every address is reached at the loopback. */
const EVERY = { '0.0.0.0': '127.0.0.1', '::': 'localhost' };

function configured() {
  try {
    return parse(readFileSync(process.env.ESTUARY_CONFIG ?? '/etc/estuary/est.toml', 'utf8')).admin ?? {};
  } catch (error) {
    if (process.env.ESTUARY_CONFIG !== undefined) finish(false, error.message);
    return {};
  }
}

function finish(alive, why) {
  if (!alive) console.error(`not healthy: ${why}`);
  process.exit(alive ? 0 : 1);
}

const admin = configured();
const host = EVERY[admin.host] ?? admin.host ?? '127.0.0.1';
const port = Number(process.env.ESTUARY_ADMIN_PORT ?? admin.port ?? 9444);

// The certificate is not checked: it need not name 127.0.0.1, and the answer is trusted with nothing.
request({ host, port, path: '/healthz', rejectUnauthorized: false, timeout: 5000 }, (response) => {
  finish(response.statusCode === 200, `status ${response.statusCode}`);
})
  .on('timeout', () => finish(false, 'no answer within 5 s'))
  // With admin.tls.mode = "required" nobody gets past the handshake without a certificate: the refusal is an answer.
  .on('error', (error) => finish(/alert certificate required|handshake failure/i.test(error.message), error.message))
  .end();
