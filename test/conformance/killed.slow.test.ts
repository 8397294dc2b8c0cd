/**
 * What `kill -9` leaves of requests, revocations and messages: each is there after the next start, and nothing happens twice.
 * `test/faults/kill.test.ts` kills a server under load.
 */
import { randomBytes, X509Certificate } from 'node:crypto';
import type { TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import {
  exchange,
  issuedBy,
  issuedOutside,
  pendTokenOf,
  postCmc,
  requestBy,
  tcr,
  withParticipants,
} from '../support/cmc.ts';
import { untilInCrl } from '../support/crls.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, certificatePem, Estuary, itemsOf, section, type ClientIdentity } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { approve, auditOf, pollAcrossKill, requestId, usesOf } from '../support/queued-requests.ts';
import { changeStored, storedRows } from '../support/stored-rows.ts';
import { until } from '../support/until.ts';
import { isStoreInPostgres } from '../support/wanted-store.ts';

/** Kills at a random time of a poll. The nightly run sets 20. */
const ROUNDS = Number(process.env['POLL_KILL_ROUNDS'] ?? 3);

const key = makeKey();
const device = makeKey();
let server: Estuary;
let client: ClientIdentity;

beforeAll(async () => {
  const configure = (config: TomlTable): void => {
    caSection(config)['approval'] = 'manual';
    section(config, 'otp')['retry_window'] = 3600;
    const listener = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
    Object.assign(section(config, 'publication'), listener, { crl_after_revocation: 1 });
  };
  const listeners = ['est', 'admin', 'publication'] as const;
  server = await Estuary.start({ listeners, configure: withParticipants(configure).configure });
  client = issuedOutside(server, 'issuing', device, '/CN=device-1', [
    'keyUsage=critical,digitalSignature',
    'extendedKeyUsage=clientAuth',
    'subjectKeyIdentifier=hash',
  ]);
});
afterAll(() => server.stop());

async function killAndStart(): Promise<void> {
  server.server.signal('SIGKILL');
  await server.server.exited;
  await server.restart();
}

/** With a new signature each time, as libest sends its retries. */
const request = (cn: string): string => onTheWire(simpleCsr(key, cn));
const serialOf = (from: Answer): string => new X509Certificate(certificatePem(from)).serialNumber.toLowerCase();
const certificatesOf = async (cn: string): Promise<unknown> =>
  (await server.admin('GET', `/admin/certificates?subject=${cn}`)).json['items'];

describe('requests that wait for an administrator', () => {
  let names = 0;
  /** A request that waits, made with a single-use token, and is approved. */
  async function approved(path: string): Promise<{ cn: string; id: string; poll: () => Promise<Answer> }> {
    const cn = `queued-${++names}`;
    const { id, token } = await server.otp({ client_id: cn });
    const poll = (): Promise<Answer> => server.enroll(request(cn), { password: token, path });
    expect((await poll()).status).toBe(202);
    await approve(server, cn);
    return { cn, id, poll };
  }

  test('at any point of a poll: the decision stays, and there is one certificate in the end', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { cn, id, poll } = await approved('simpleenroll');
      const { before, after } = await pollAcrossKill(server, poll);
      expect(after.status).toBe(200);
      if (before?.status === 200) expect(serialOf(after)).toBe(serialOf(before));
      expect(await certificatesOf(cn)).toHaveLength(1);
      expect(await usesOf(server, id)).toBe(1);
    }
    expect(await storedRows(server.dir, 'SELECT request_id FROM reservation')).toEqual([]);
  });

  test('at any point of a poll for a generated key: one certificate and one use in the end, and a key or a clear answer', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { cn, id, poll } = await approved('serverkeygen');
      const { before, after } = await pollAcrossKill(server, poll);
      if (before?.status === 200) expect(after.status).toBe(403);
      expect([200, 403]).toContain(after.status);
      expect(await certificatesOf(cn)).toHaveLength(1);
      expect(await usesOf(server, id)).toBe(1);
      expect(await auditOf(server, 'certificate.issued', await requestId(server, cn))).toHaveLength(1);
    }
  });

  test('RFC 5272 §6.13: between the pending answer and the query: nothing is lost, one certificate comes of it', async () => {
    const message = await requestBy(client, {
      controlSequence: [buildControl(101, 'transactionId', '41'), buildControl(102, 'senderNonce', randomBytes(16))],
      reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))],
    });
    const first = await postCmc(server, message, client);
    const token = pendTokenOf(await exchange(server, message, client));
    const id = token.toString('latin1');
    expect((await server.admin('POST', `/admin/requests/${id}/approve`, {})).status).toBe(200);
    await killAndStart();
    const replayed = await postCmc(server, message, client);
    expect([replayed.status, replayed.text]).toEqual([200, first.text]);
    const query = () =>
      exchange(server, requestBy(client, { controlSequence: [buildControl(5, 'queryPending', token)] }), client);
    const replies = [...(await Promise.all([query(), query()])), await query()];
    const serials = replies.flatMap((reply) => issuedBy(reply).map(({ serialNumber }) => serialNumber));
    expect(new Set(serials).size).toBe(1);
    const { json } = await server.admin('GET', '/admin/certificates?subject=device-1&limit=1000');
    expect(itemsOf(json).filter((item) => item['request_id'] === id)).toHaveLength(1);
  });
});

test('between the commit and the response: the device asks again and has its certificate', async () => {
  const { token } = await server.otp();
  const ask = () => server.enroll(request('killed'), { password: token, path: 'lab/simpleenroll' });
  const first = serialOf(await ask());
  await killAndStart();
  expect(serialOf(await ask())).toBe(first);
});

test('after the certificates of a CMC message and before its response: the repeated message gets them', async () => {
  const lab = issuedOutside(server, 'lab', device, '/CN=device-1', ['extendedKeyUsage=clientAuth']);
  const message = await requestBy(lab, {
    controlSequence: [buildControl(101, 'transactionId', '51'), buildControl(102, 'senderNonce', randomBytes(16))],
    reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1')), tcr(2, simpleCsr(makeKey(), 'device-1'))],
  });
  const send = () => exchange(server, message, lab, 'lab/fullcmc');
  const first = await send();
  server.server.signal('SIGKILL');
  await server.server.exited;
  // As it is on the disk when the process dies before it could keep the answer.
  const lost =
    "UPDATE cmc_message SET instance = 'dead', answer = NULL, nonce = NULL WHERE id = (SELECT max(id) FROM cmc_message)";
  expect(await changeStored(server.dir, lost)).toBe(1);
  await server.restart();
  // With a shared database, a node closes the work of a dead one after some seconds.
  const again = await until('the answer of the dead process is closed', async () => {
    const reply = await send();
    return !(isStoreInPostgres() && reply.status === 503) && reply;
  });
  expect(again.der.equals(first.der)).toBe(false);
  const serials = (reply: typeof first): string[] => issuedBy(reply).map(({ serialNumber }) => serialNumber);
  expect(serials(first)).toHaveLength(2);
  expect(serials(again)).toEqual(serials(first));
  expect((await send()).der.equals(again.der)).toBe(true);
});

test('a revocation is in the CRL after the next start', async () => {
  const who = new X509Certificate((await server.enrolled(key, 'device-2', [], 'lab/simpleenroll')).cert);
  const revoke = `/admin/certificates/${who.serialNumber.toLowerCase()}/revoke`;
  expect((await server.admin('POST', revoke, { reason: 'keyCompromise' })).status).toBe(200);
  await killAndStart();
  const url = `http://127.0.0.1:${server.server.port('publication')}/crl/lab.crl`;
  await untilInCrl(async () => Buffer.from(await (await fetch(url)).arrayBuffer()), who.serialNumber);
});
