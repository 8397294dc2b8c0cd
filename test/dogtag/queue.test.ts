/** Requests that a profile of the real Dogtag queues, decided by a real agent's session. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { QUEUE } from '../support/dogtag-profiles.ts';
import { Dogtag, OPEN_TIMEOUT, type AgentDecision } from '../support/dogtag.ts';
import { Estuary, itemsOf, section } from '../support/estuary.ts';
import { requires } from '../support/requires.ts';
import { Device, type CurlAnswer, type DeviceRequest } from './support.ts';
import { pause, until } from '../support/until.ts';

/** Dogtag still has what earlier runs asked for. */
const RUN = Date.now().toString(36);

describe.skipIf(!requires('dogtag', 'curl', 'openssl'))("the real Dogtag's queue", () => {
  let dogtag: Dogtag;
  let estuary: Estuary;
  let device: Device;

  beforeAll(async () => {
    dogtag = await Dogtag.open();
    estuary = await Estuary.start({
      configure: (config, dir) => {
        dogtag.configure(config, dir, QUEUE);
        section(config, 'est')['retry_after'] = 2;
      },
    });
    device = new Device(estuary);
    writeFileSync(device.file('dogtag-ca.pem'), dogtag.ca);
  }, OPEN_TIMEOUT);
  afterAll(async () => {
    await estuary.stop();
    await dogtag.close();
  });

  /** Queues a request: what to poll with, and its id at Dogtag. */
  async function queued(name: string): Promise<{ request: DeviceRequest; token: string; id: string }> {
    const { token } = await estuary.otp({ client_id: name });
    const request = await device.request(name);
    const first = await device.enroll(request, token);
    expect(first).toEqual({ status: 202, retryAfter: '2', body: '' });
    const [id = '', ...more] = await dogtag.pending(`CN=${name}`);
    expect(more).toEqual([]);
    expect(id).not.toBe('');
    return { request, token, id };
  }

  /** Polls as Retry-After says until something else than 202 comes. */
  async function polled(request: DeviceRequest, token: string): Promise<CurlAnswer> {
    for (let attempt = 0; attempt < 20; attempt++) {
      const answer = await device.enroll(request, token);
      if (answer.status !== 202) return answer;
      await pause(2000);
    }
    throw new Error('pending for ever');
  }

  test('202 until an agent approves, then the certificate, once', async () => {
    const name = `queue-approve-${RUN}`;
    const { request, token, id } = await queued(name);
    expect((await device.enroll(request, token)).status).toBe(202);
    await dogtag.decide('approve', id);
    const pem = await device.verified(await polled(request, token), device.file('dogtag-ca.pem'), request);
    expect(await dogtag.certificatesOf(name)).toEqual([await device.serial(pem)]);
    // Fetched again with the token that is used up: the same certificate.
    const again = await device.verified(await polled(request, token), device.file('dogtag-ca.pem'), request);
    expect(await device.serial(again)).toBe(await device.serial(pem));
  });

  test.each(['reject', 'cancel'] satisfies AgentDecision[])('403 for good after an agent’s %s', async (decision) => {
    const name = `queue-${decision}-${RUN}`;
    const { request, token, id } = await queued(name);
    await dogtag.decide(decision, id);
    const refused = await polled(request, token);
    expect([refused.status, refused.body.length > 10]).toEqual([403, true]);
    expect(await dogtag.certificatesOf(name)).toEqual([]);
    const { json } = await estuary.admin(
      'GET',
      `/admin/requests?status=${decision === 'reject' ? 'rejected' : 'failed'}`,
    );
    expect(itemsOf(json)).toContainEqual(expect.objectContaining({ subject: `CN=${name}` }));
  });

  test('a queued request survives kill -9; approved meanwhile, it is issued once', async () => {
    const name = `queue-kill-${RUN}`;
    const { request, token, id } = await queued(name);
    estuary.server.signal('SIGKILL');
    await estuary.server.exited;
    await dogtag.decide('approve', id);
    await estuary.restart();
    const pem = await device.verified(await polled(request, token), device.file('dogtag-ca.pem'), request);
    expect(await dogtag.certificatesOf(name)).toEqual([await device.serial(pem)]);
  });

  test('renewal over mTLS waits in the queue as well', async () => {
    const name = `queue-renew-${RUN}`;
    const { request, token, id } = await queued(name);
    await dogtag.decide('approve', id);
    const pem = await device.verified(await polled(request, token), device.file('dogtag-ca.pem'), request);
    const renewal = await device.request(name);
    const renew = (): Promise<CurlAnswer> =>
      device.post('simplereenroll', renewal.csr, '--cert', pem, '--key', request.key);
    expect((await renew()).status).toBe(202);
    const [second = ''] = await dogtag.pending(`CN=${name}`);
    await dogtag.decide('approve', second);
    await expect.poll(async () => (await renew()).status, { interval: 2000 }).toBe(200);
    expect(await dogtag.certificatesOf(name)).toHaveLength(2);
  });

  test('serverkeygen is refused before anything reaches Dogtag: nobody would be there to take the key', async () => {
    const name = `queue-keygen-${RUN}`;
    const otp = await estuary.otp({ client_id: name });
    const csr = onTheWire(simpleCsr(makeKey(), name, [`${name}.example.com`]));
    const answer = await estuary.enroll(csr, { path: 'serverkeygen', password: otp.token });
    expect([answer.status, answer.text]).toEqual([
      500,
      'The CA queues requests, so it cannot issue for a server-generated key.',
    ]);
    expect((await estuary.admin('GET', `/admin/otp/${otp.id}`)).json['uses']).toBe(0);
    expect(await dogtag.pending(`CN=${name}`)).toEqual([]);
  });

  describe.skipIf(!requires('pki'))('strongSwan pki', () => {
    test('polls until an agent approves', async () => {
      const name = `queue-strongswan-${RUN}`;
      const [key, csr, pem] = ['key', 'der', 'pem'].map((ending) => device.file(`${name}.${ending}`));
      if (key === undefined || csr === undefined || pem === undefined) throw new Error('no names');
      writeFileSync(key, await run('pki', ['--gen', '--type', 'ecdsa', '--size', '256', '--outform', 'pem']));
      const names = ['--dn', `CN=${name}`, '--san', `${name}.example.com`];
      writeFileSync(csr, await run('pki', ['--req', '--in', key, '--type', 'priv', ...names, '--outform', 'der']));
      const { token } = await estuary.otp({ client_id: name });
      const url = `https://localhost:${estuary.server.port('est')}`;
      const trust = ['--cacert', `${estuary.dir}/ca/root.pem`, '--cacert', device.file('dogtag-ca.pem')];
      const polling = ['--interval', '1', '--maxpolltime', '270', '--userpass', `${name}:${token}`];
      const client = run('pki', ['--est', '--url', url, '--in', csr, ...trust, ...polling, '--outform', 'pem'], {
        timeout: 280_000,
      });
      const approval = (async () => {
        const id = await until('the request is queued', async () => (await dogtag.pending(`CN=${name}`))[0]);
        await dogtag.decide('approve', id);
      })();
      const [issued] = await Promise.all([client, approval]);
      writeFileSync(pem, issued);
      await run('openssl', ['verify', '-CAfile', device.file('dogtag-ca.pem'), pem]);
      expect(await dogtag.certificatesOf(name)).toEqual([await device.serial(pem)]);
    });
  });
});
