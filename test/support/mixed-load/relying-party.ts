/** Who fetches CRLs and asks for OCSP responses over plain HTTP. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { integer } from '../../../src/pki/der/der.ts';
import { parsePemCertificates } from '../../../src/pki/x509/certificate.ts';
import { ocspRequest } from '../ocsp.ts';
import type { Activity, MixedLoad } from './load.ts';

interface Fetched {
  readonly status: number;
  readonly body: Buffer;
}

async function get(load: MixedLoad, path: string, init: RequestInit = {}): Promise<Fetched> {
  const url = `http://127.0.0.1:${load.estuary.server.port('publication')}${path}`;
  const response = await fetch(url, { signal: AbortSignal.timeout(60_000), ...init });
  return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
}

/** The tag of the CertStatus that a response holds behind this serial number (RFC 6960 §4.2.1). */
function statusIn(response: Buffer, serial: string): number | undefined {
  const number = integer(Buffer.from(serial, 'hex'));
  const at = response.indexOf(number);
  return at < 0 ? undefined : response[at + number.length];
}
const REVOKED = 0xa1;

export const relyingParty: Activity = {
  name: 'relying party',
  clients: 1,
  pause: 50,
  begin(load) {
    const pem = readFileSync(join(load.estuary.dir, 'ca/issuing.pem'), 'latin1');
    const [certificate] = parsePemCertificates(pem);
    let rounds = 0;
    return {
      async round() {
        if (certificate === undefined) throw new Error('no certificate of the CA');
        if (++rounds % 20 === 0) await load.ask('crl', [200], () => get(load, '/crl/devices.crl'));
        // Those that are revoked, and every one, by turns.
        const [serial] = [...(rounds % 2 === 0 ? load.book.revoked : load.book.certificates.keys())].slice(-1);
        if (serial === undefined) return;
        const body = ocspRequest({ certificate }, [serial]);
        const headers = { 'Content-Type': 'application/ocsp-request' };
        const wasRevoked = load.book.revoked.has(serial);
        const answer = await load.ask('ocsp', [200], () =>
          get(load, '/ocsp/devices', { method: 'POST', headers, body: new Uint8Array(body) }),
        );
        if (answer?.status !== 200 || !wasRevoked) return;
        const status = statusIn(answer.body, serial);
        // A fault may have it answered tryLater, which names no certificate.
        if (status !== REVOKED && !(load.faults && status === undefined))
          load.book.problem(`OCSP: ${serial} is revoked, and the response says ${status}`);
      },
    };
  },
};
