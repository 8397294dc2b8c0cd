/** Activities of devices. */
import { X509Certificate } from 'node:crypto';
import { Agent } from 'node:https';
import { parseCertsOnly } from '../../../src/pki/cms/cms.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { makeKey, onTheWire, simpleCsr, type TestKey } from '../csr.ts';
import type { ClientIdentity, NewOtp } from '../estuary.ts';
import type { Answer } from '../https.ts';
import type { Activity, MixedLoad } from './load.ts';

/** Requests of one device before it connects anew. */
const PER_CONNECTION = 20;

/** Longer than any clock jumps. */
const expiry = (): string => new Date(Date.now() + 30 * 86_400_000).toISOString();

/** A token, made until it is; an administrator whose answer was lost makes another. */
export async function token(load: MixedLoad, otp: NewOtp): Promise<string | undefined> {
  const body = { expires_at: expiry(), ...otp };
  const answer = await load.ask('tokens', [201], () => load.estuary.admin('POST', '/admin/otp', body));
  const { token: text } = answer?.json ?? {};
  return typeof text === 'string' ? text : undefined;
}

/** The certificate of an answer, alone or as the first part of two, in the book. */
export function keep(load: MixedLoad, answer: Answer, name: string, once: boolean): string | undefined {
  const [, part] = /\r\n\r\n([A-Za-z0-9+/=\r\n]+)\r\n--/.exec(answer.text) ?? [];
  const [der] = parseCertsOnly(Buffer.from(part ?? answer.text, 'base64'));
  if (der === undefined) {
    load.book.problem(`${name}: 200 without a certificate`);
    return undefined;
  }
  load.book.answered(new X509Certificate(der).serialNumber.toLowerCase(), { name, once });
  return encodePem('CERTIFICATE', der);
}

/** A generated key goes out once; docs/guides/approval.md. */
const wasLostWithItsKey = ({ status, text }: Answer): boolean =>
  status === 403 && text.startsWith('The private key was sent with certificate');

/** A newcomer's way to a certificate. */
export async function enroll(
  load: MixedLoad,
  activity: string,
  key: TestKey,
  more: { readonly agent?: Agent; readonly path?: string } = {},
): Promise<{ readonly name: string; readonly client: ClientIdentity } | undefined> {
  const name = load.name(activity);
  const password = await token(load, { client_id: name });
  if (password === undefined) return undefined;
  const csr = onTheWire(simpleCsr(key, name));
  const send = (): Promise<Answer> => load.estuary.enroll(csr, { password, ...more });
  const answer = await load.ask(activity, [200], send, wasLostWithItsKey);
  const cert = answer?.status === 200 ? keep(load, answer, name, true) : undefined;
  return cert === undefined ? undefined : { name, client: { cert, key: key.pem } };
}

export const enrolling: Activity = {
  name: 'enroll',
  clients: 2,
  pause: 20,
  begin(load) {
    const key = makeKey();
    let rounds = 0;
    return {
      async round() {
        rounds += 1;
        await enroll(load, 'enroll', key, rounds % 10 === 0 ? { path: 'serverkeygen' } : {});
      },
    };
  },
};

export const renewing: Activity = {
  name: 'renew',
  clients: 3,
  pause: 20,
  begin(load) {
    const key = makeKey();
    let device: { readonly name: string; client: ClientIdentity } | undefined;
    let agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let rounds = 0;
    return {
      async round() {
        device ??= await enroll(load, 'enroll', key);
        // The server's clock was ahead when it issued this.
        if (device !== undefined && new X509Certificate(device.client.cert).validFromDate > new Date())
          device = undefined;
        if (device === undefined) return;
        const { name, client } = device;
        if (++rounds % PER_CONNECTION === 0) {
          agent.destroy();
          agent = new Agent({ keepAlive: true, maxSockets: 1 });
        }
        const csr = onTheWire(simpleCsr(key, name));
        load.renewed.add(name);
        const answer = await load.ask('renew', [200], () =>
          load.estuary.enroll(csr, { client, agent, path: 'simplereenroll' }),
        );
        if (answer?.status !== 200) {
          device = undefined;
          return;
        }
        const cert = keep(load, answer, name, false);
        // Every now and then it goes on with the new one, on a new connection.
        if (cert !== undefined && rounds % PER_CONNECTION === 0) device = { name, client: { ...client, cert } };
      },
      end: () => agent.destroy(),
    };
  },
};
