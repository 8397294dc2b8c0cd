/** RFC 7894 at a CA behind Dogtag: the same request with the token that was used for it; and secrets in what goes on as it was signed. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { oid, printableString, sequence } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { buildCrmf } from '../../pki/cmc/samples.ts';
import { crm, requestBy, tcr } from '../../support/cmc.ts';
import {
  buildCsr,
  commonName,
  makeKey,
  onTheWire,
  otpChallenge,
  revocationChallenge,
  simpleCsr,
  type TestKey,
} from '../../support/csr.ts';
import { DogtagStandIn, type StandInServer } from '../../support/dogtag-stand-in/index.ts';
import { certificatesOf, Estuary, itemsOf, section } from '../../support/estuary.ts';
import { usesOf } from '../../support/queued-requests.ts';
import { exchange } from './cmc-exchange.ts';
import { until } from '../../support/until.ts';

const SUBMIT = 'POST /ca/rest/certrequests';
const CMC = 'POST /ca/ee/ca/profileSubmitCMCFull';

let standIn: DogtagStandIn;
let server: StandInServer;
let estuary: Estuary;
beforeAll(async () => {
  standIn = await DogtagStandIn.start();
  ({ server } = standIn);
  estuary = await Estuary.start({
    configure: (config, dir) => {
      standIn.configure(config, { profile: 'estuaryAuto', timeout: 60, check_interval: 1, lost_after: 1 });
      standIn.trust(config, dir);
      section(config, 'est')['retry_after'] = 1;
      const otp = section(config, 'otp');
      otp['retry_window'] = 3600;
    },
  });
});
afterAll(async () => {
  await estuary.stop();
  await standIn.stop();
});
beforeEach(() => void (server.faults = {}));
afterEach(async () => {
  await estuary.admin('DELETE', '/admin/lockouts/address:127.0.0.1');
});

/** A device, its token, and what the CA has issued to it. */
class Device {
  readonly cn: string;
  readonly key: TestKey = makeKey();
  readonly otp: { readonly id: string; readonly token: string };

  private constructor(cn: string, otp: Device['otp']) {
    this.cn = cn;
    this.otp = otp;
  }

  static async make(cn: string, max_uses = 1): Promise<Device> {
    return new Device(cn, await estuary.otp({ max_uses }));
  }

  /** `200 SERIAL`, or the status with the text; signed anew each time. */
  async send(path = 'simpleenroll'): Promise<string> {
    const csr = onTheWire(simpleCsr(this.key, this.cn, [`${this.cn}.example`]));
    const answer = await estuary.enroll(csr, { password: this.otp.token, path });
    const [der] = answer.status === 200 && path === 'simpleenroll' ? certificatesOf(answer) : [];
    return `${answer.status} ${der === undefined ? answer.text.trimEnd() : parseCertificate(der).serialNumber}`;
  }

  /** Polls until the answer is not 202. */
  async final(): Promise<string> {
    return until('an answer other than 202', async () => {
      const answer = await this.send();
      return !answer.startsWith('202') && answer;
    });
  }

  /** Certificates at the CA, certificates in our store, uses of the token. */
  async count(): Promise<number[]> {
    const atCa = [...standIn.state.certificates.values()].filter(({ subject }) => subject === `CN=${this.cn}`);
    const { json } = await estuary.admin('GET', `/admin/certificates?subject=CN=${this.cn}`);
    return [atCa.length, itemsOf(json).length, Number(await usesOf(estuary, this.otp.id))];
  }
}

describe('otp.retry_window, of what a remote CA issues', () => {
  test('ten at once and one later: one certificate, one use', async () => {
    const device = await Device.make('parallel');
    const before = server.count(SUBMIT);
    const answers = await Promise.all(Array.from({ length: 10 }, () => device.send()));
    // Requests between the submission and its response were told to retry.
    const all = new Set([...answers.filter((answer) => !answer.startsWith('202')), await device.final()]);
    expect([...all]).toEqual([expect.stringMatching(/^200 [0-9a-f]+$/)]);
    expect(server.count(SUBMIT) - before).toBe(1);
    expect(await device.count()).toEqual([1, 1, 1]);
  });
});

describe('a CSR with a secret does not go to a CA that takes it as it was signed', () => {
  const REFUSED =
    '400 The server forwards the CSR unchanged to this CA, so it must not contain an otpChallenge or revocationChallenge. Send a one-time password by HTTP Basic.';
  const submissions = (): number[] => [server.count(SUBMIT), server.count(CMC)];

  test.each<[string, (token: string) => Buffer, boolean]>([
    ['a token in otpChallenge', otpChallenge, false],
    ['an otpChallenge next to the password', () => otpChallenge('something'), true],
    ['a revocationChallenge', () => revocationChallenge('a separate secret'), true],
  ])(
    '%s: 400 by simpleenroll and serverkeygen, no use taken, nothing stored, no failure',
    async (what, attribute, withPassword) => {
      const { id, token } = await estuary.otp();
      const before = submissions();
      const body = onTheWire(buildCsr(makeKey(), { subject: commonName('secret'), attributes: [attribute(token)] }));
      for (const path of ['simpleenroll', 'serverkeygen']) {
        const answer = await estuary.enroll(body, { path, ...(withPassword ? { password: token } : {}) });
        expect(`${answer.status} ${answer.text.trimEnd()}`, what).toBe(REFUSED);
      }
      expect(submissions()).toEqual(before);
      expect(await usesOf(estuary, id)).toBe(0);
      expect(itemsOf((await estuary.admin('GET', '/admin/lockouts')).json)).toEqual([]);
      expect(itemsOf((await estuary.admin('GET', '/admin/requests')).json).map(({ subject }) => subject)).not.toContain(
        'CN=secret',
      );
    },
  );

  test('by simplereenroll and fullcmc, PKCS #10 and CRMF', async () => {
    const key = makeKey();
    const client = await estuary.enrolled(key, 'cmc-secret');
    const before = submissions();
    const csr = buildCsr(key, { subject: commonName('cmc-secret'), attributes: [revocationChallenge('a secret')] });
    const answer = await estuary.enroll(onTheWire(csr), { path: 'simplereenroll', client });
    expect(`${answer.status} ${answer.text.trimEnd()}`).toBe(REFUSED);
    const control = sequence(oid(OID.revocationChallenge), printableString('a secret'));
    const crmf = buildCrmf(key, { subject: 'CN=cmc-secret', controls: [control] });
    for (const [request, text] of [
      [tcr(1, csr), REFUSED.slice(4)],
      [
        crm(1, crmf),
        'The CRMF request has a secret of RFC 7894 in its controls, which is only an attribute of PKCS #10.',
      ],
    ] as const) {
      const reply = await exchange(estuary, client, await requestBy(client, { reqSequence: [request] }));
      expect([reply.http, reply.status?.status, reply.status?.statusString]).toEqual([400, 'failed', text]);
    }
    expect(submissions()).toEqual(before);
  });
});
