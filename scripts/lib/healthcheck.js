// Exits 0 when the admin listener of this machine is alive. ESTUARY_ADMIN_PORT names a port other than 9444.
import { request } from 'node:https';

const port = Number(process.env.ESTUARY_ADMIN_PORT ?? 9444);

function finish(alive, why) {
  if (!alive) console.error(`not healthy: ${why}`);
  process.exit(alive ? 0 : 1);
}

// The certificate is not checked: it need not name 127.0.0.1, and the answer is trusted with nothing.
request({ host: '127.0.0.1', port, path: '/healthz', rejectUnauthorized: false, timeout: 5000 }, (response) => {
  finish(response.statusCode === 200, `status ${response.statusCode}`);
})
  .on('timeout', () => finish(false, 'no answer within 5 s'))
  // With admin.tls.mode = "required" nobody gets past the handshake without a certificate: the refusal is an answer.
  .on('error', (error) => finish(/alert certificate required|handshake failure/i.test(error.message), error.message))
  .end();
