/** Programs as upstream: a shell script that calls a CA in the test's process. */
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { encodePem, parsePem } from '../../../../src/pki/der/pem.ts';
import { parseCsr, type Csr } from '../../../../src/pki/pkcs10/csr.ts';
import { serve, Steps, type Reply } from '../../../support/upstream-steps.ts';
import { CertifiedBy, isFor, type Pki, type StandIn } from './stand-in.ts';

/** @returns with `program`, to be called with `issue`, `poll` or `revoke` */
export async function commandStandIn(
  dir: string,
  pki: Pki,
  now: () => number,
): Promise<StandIn & { readonly program: string }> {
  const steps = new Steps();
  const ca = new CertifiedBy(pki, now);
  /** By request ID. */
  const requests = new Map<string, { readonly csr: Csr; state: 'pending' | 'reject' | Reply }>();

  const refusal: Reply = { status: 403, body: 'not on\tthis list\nmore' };
  async function issue(csr: Csr): Promise<Reply> {
    const chain = await ca.issue(csr);
    return { status: 200, body: chain.map((der) => encodePem('CERTIFICATE', der)).join('') };
  }
  async function answer(kind: string, id: string, text: string): Promise<Reply> {
    if (kind === 'revoke') {
      for (const { der } of parsePem(text)) ca.revoke(der);
      return { status: 200 };
    }
    if (kind === 'issue') {
      if (standIn.mode === 'refuse') return refusal;
      const csr = parseCsr(parsePem(text)[0]?.der ?? Buffer.alloc(0));
      requests.set(id, { csr, state: standIn.mode === 'queue' ? 'pending' : await issue(csr) });
    }
    const state = requests.get(id)?.state;
    if (state === undefined) return { status: 404, body: 'unknown' };
    if (state === 'reject') return refusal;
    return state === 'pending' ? { status: 202, body: `ticket ${id}\n` } : state;
  }

  const server = createServer((request, response) => {
    const [, kind = '', id = ''] = (request.url ?? '').split('/');
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      void serve(steps, kind, response, () => answer(kind, id, Buffer.concat(chunks).toString('latin1')));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const program = join(dir, 'upstream-program');
  writeFileSync(
    program,
    `#!/bin/sh
body=$(mktemp)
trap 'rm -f "$body"' EXIT
code=$(curl -s -o "$body" -w '%{http_code}' --data-binary @- "http://127.0.0.1:${port}/$1/$ESTUARY_REQUEST_ID") || exit 1
case $code in
  200) cat "$body" ;;
  202) cat "$body"; exit 10 ;;
  403) cat "$body" >&2; exit 65 ;;
  *) exit 1 ;;
esac
`,
  );
  chmodSync(program, 0o755);
  const standIn: StandIn & { readonly program: string } = {
    program,
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
      for (const request of requests.values())
        if (request.state === 'pending' && isFor(request.csr, name))
          request.state = decision === 'approve' ? await issue(request.csr) : 'reject';
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return standIn;
}
