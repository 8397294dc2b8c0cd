/** An ACME server as upstream. Does not verify signatures and nonces: Pebble does, in test/conformance. */
import { listOf } from '../../../../src/ca/acme/acme-client.ts';
import { encodePem } from '../../../../src/pki/der/pem.ts';
import { parseCsr } from '../../../../src/pki/pkcs10/csr.ts';
import type { Issuer } from '../../../support/certificates.ts';
import { startStandIn } from '../../../support/est-stand-in.ts';
import { serve, Steps, type Reply } from '../../../support/upstream-steps.ts';
import { CertifiedBy, isFor, type Pki, type StandIn } from './stand-in.ts';

interface Order {
  status: 'pending' | 'ready' | 'processing' | 'valid' | 'invalid';
  csr?: Buffer;
  chain?: string;
  readonly identifiers: readonly unknown[];
}

export async function acmeStandIn(
  tls: Issuer,
  pki: Pki,
  now: () => number,
): Promise<StandIn & { readonly url: string }> {
  const steps = new Steps();
  const ca = new CertifiedBy(pki, now);
  const orders: Order[] = [];
  let nonces = 0;

  async function issue(order: Order): Promise<void> {
    const chain = await ca.issue(parseCsr(order.csr ?? Buffer.alloc(0)));
    order.chain = chain.map((der) => encodePem('CERTIFICATE', der)).join('');
    order.status = 'valid';
  }

  const problem = (status: number, type: string, detail: string): Reply => ({
    status,
    headers: { 'Content-Type': 'application/problem+json' },
    body: JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail }),
  });

  async function answer(path: string, payload: Readonly<Record<string, unknown>>): Promise<Reply> {
    const [kind = '', number = ''] = path.slice(1).split('/');
    const at = (to: string): string => `${server.url}/${to}/${number}`;
    const json = (body: object, location?: string): Reply => ({
      status: 200,
      headers: {
        'Content-Type': 'application/json',
        'Replay-Nonce': `nonce-${nonces++}`,
        ...(location === undefined ? {} : { Location: location }),
      },
      body: JSON.stringify(body),
    });
    if (kind === 'directory') {
      const names = ['newNonce', 'newAccount', 'newOrder', 'revokeCert'];
      return json(Object.fromEntries(names.map((name) => [name, `${server.url}/${name}`])));
    }
    if (kind === 'newNonce') return json({});
    if (kind === 'newAccount') return json({ status: 'valid' }, `${server.url}/account`);
    if (kind === 'revokeCert') {
      ca.revoke(Buffer.from(String(payload['certificate']), 'base64url'));
      return json({});
    }
    if (kind === 'newOrder') {
      if (standIn.mode === 'refuse') return problem(403, 'rejectedIdentifier', 'not on\nthis list');
      const index = orders.push({ status: 'pending', identifiers: listOf(payload, 'identifiers') }) - 1;
      return json({ status: 'pending' }, `${server.url}/order/${index}`);
    }
    const order = orders[Number(number)];
    if (order === undefined) return problem(404, 'malformed', 'no such order');
    if (kind === 'authorization') {
      const challenge = {
        type: 'dns-01',
        status: order.status === 'pending' ? 'pending' : 'valid',
        token: 't',
        url: at('challenge'),
      };
      return json({
        status: challenge.status,
        identifier: order.identifiers[0],
        challenges: [challenge],
      });
    }
    if (kind === 'challenge') {
      order.status = 'ready';
      return json({ type: 'dns-01', status: 'valid' });
    }
    if (kind === 'certificate')
      return { status: 200, headers: { 'Content-Type': 'application/pem-certificate-chain' }, body: order.chain ?? '' };
    if (kind === 'finalize') {
      if (order.status !== 'ready') return problem(403, 'orderNotReady', `the order is ${order.status}`);
      order.csr = Buffer.from(String(payload['csr']), 'base64url');
      order.status = 'processing';
      if (standIn.mode === 'issue') await issue(order);
    }
    const error = order.status === 'invalid' ? { error: { detail: 'not on\nthis list' } } : {};
    const certificate = order.status === 'valid' ? { certificate: at('certificate') } : {};
    return json({
      status: order.status,
      authorizations: [at('authorization')],
      finalize: at('finalize'),
      ...certificate,
      ...error,
    });
  }

  const server = await startStandIn(tls, ({ method, path, body, response }) =>
    serve(steps, `${method} ${path.replace(/\/\d+$/, '')}`, response, () => answer(path, payloadOf(body))),
  );
  const standIn: StandIn & { readonly url: string } = {
    url: `${server.url}/directory`,
    steps,
    mode: 'issue',
    get wrong() {
      return ca.wrong;
    },
    set wrong(wrong) {
      ca.wrong = wrong;
    },
    certified: () => ca.all,
    async decide(decision, name) {
      for (const order of orders.filter(
        ({ status, csr }) => status === 'processing' && csr && isFor(parseCsr(csr), name),
      ))
        if (decision === 'approve') await issue(order);
        else order.status = 'invalid';
    },
    stop: () => server.stop(),
  };
  return standIn;
}

function payloadOf(body: string): Readonly<Record<string, unknown>> {
  if (body === '') return {};
  const { payload } = JSON.parse(body) as { payload: string };
  return payload === '' ? {} : (JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>);
}
