import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Ca } from '../../../src/ca/router.ts';
import { unavailable } from '../../../src/errors.ts';
import type { CertificateRow } from '../../../src/store/certificate-store.ts';
import { issue } from '../../store/support.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { adminFixture, ailingCa, failure, fileCa, issueFrom, type AdminFixture } from './support.ts';
import { expectBody } from './typed.ts';

describe('POST /admin/certificates/{serial}/revoke', () => {
  const folder = temporaryFolder();
  const start = Date.now();
  const told: { ca: string; serial: string; reason: string }[] = [];
  let remoteIsDown = false;
  let close: () => Promise<void>;
  let api: AdminFixture;
  let devices: Ca;

  beforeAll(async () => {
    devices = await fileCa(folder, 'devices', true);
    const lab = ailingCa('lab', () => Promise.resolve({ health: 'ok' }));
    const remote = new Ca(lab.config, {
      ...lab.driver,
      revoke({ serial, reason }) {
        if (remoteIsDown) return Promise.reject(unavailable('CA_UNAVAILABLE', 'the CA is not available'));
        told.push({ ca: 'lab', serial, reason });
        return Promise.resolve();
      },
    });
    const other = ailingCa('final', () => Promise.resolve({ health: 'ok' }));
    const final = new Ca(other.config, { ...other.driver, cannotHold: true, revoke: () => Promise.resolve() });
    api = await adminFixture({ cas: [devices, remote, final], start, onEnd: (cleanUp) => (close = cleanUp) });
  });
  afterAll(async () => {
    await close();
    folder.remove();
  });

  const revoke = (serial: string, body?: unknown, query = '') =>
    api.call('POST', `/admin/certificates/${serial}/revoke?${query}`, body);
  const fresh = (): Promise<CertificateRow> => issueFrom(devices, api.store, 'CN=sensor');

  it('answers 200 with the record, and stores time, reason and invalidity date', async () => {
    const { serial, ca } = await fresh();
    const invalid = new Date(start - 3_600_000).toISOString();
    const response = await revoke(serial, { reason: 'keyCompromise', invalidity_date: invalid });
    expect(response.statusCode, response.body).toBe(200);
    const revoked_at = new Date(start).toISOString();
    expectBody(response, { serial, ca, status: 'revoked', revoked_at, reason: 'keyCompromise' });
    const page = (await api.call('GET', `/admin/certificates/${serial}`)).json();
    const { pem, content } = page;
    expect(page).toEqual({ ...response.json(), archived_key_id: null, pem, content });
    const [row] = await api.store.getCertificates(serial);
    expect(row).toMatchObject({ revoked_at: start, invalidity_date: start - 3_600_000 });
  });

  it('needs no body: the reason is unspecified', async () => {
    for (const body of [undefined, {}]) {
      const { serial } = await fresh();
      expectBody(await revoke(serial, body), { status: 'revoked', reason: 'unspecified' });
    }
  });

  it('takes every reason of RFC 5280 §5.3.1 that revokes', async () => {
    for (const reason of [
      ...['unspecified', 'keyCompromise', 'cACompromise', 'affiliationChanged', 'superseded'],
      ...['cessationOfOperation', 'certificateHold', 'privilegeWithdrawn', 'aACompromise'],
    ])
      expectBody(await revoke((await fresh()).serial, { reason }), { reason });
  });

  it('409 ALREADY_REVOKED the second time, and the first revocation stays as it is', async () => {
    const { serial } = await fresh();
    await revoke(serial, { reason: 'superseded' });
    expect(failure(await revoke(serial, { reason: 'keyCompromise' }))).toMatchObject({
      statusCode: 409,
      code: 'ALREADY_REVOKED',
    });
    expect((await api.store.getCertificates(serial))[0]).toMatchObject({ reason: 'superseded' });
  });

  it('a hold ends with a release, or becomes final with another reason', async () => {
    const { serial } = await fresh();
    const release = () => api.call('POST', `/admin/certificates/${serial}/release?ca=devices`);
    expect(failure(await release())).toMatchObject({ statusCode: 409, code: 'NOT_HELD' });
    await revoke(serial, { reason: 'certificateHold' });
    expect(failure(await revoke(serial, { reason: 'certificateHold' })).code).toBe('ALREADY_REVOKED');
    expectBody(await release(), { status: 'valid', revoked_at: null, reason: null });
    await revoke(serial, { reason: 'certificateHold' });
    expectBody(await revoke(serial, { reason: 'keyCompromise' }), { status: 'revoked', reason: 'keyCompromise' });
    expect(failure(await release()).code).toBe('NOT_HELD');
    expect(failure(await api.call('POST', '/admin/certificates/00/release')).statusCode).toBe(404);
    const { items } = await api.store.listAudit({ serial, limit: 100 });
    expect(items.filter(({ type }) => type !== 'admin.access').map(({ type }) => type)).toEqual([
      ...['certificate.held', 'certificate.released', 'certificate.held', 'certificate.revoked'],
    ]);
    expect(items.at(-1)).toMatchObject({ certificate_subject: 'CN=sensor', revocation_reason: 'keyCompromise' });
  });

  it('409 HOLD_UNSUPPORTED: a CA elsewhere that could not end the hold is not asked for one', async () => {
    const { serial } = await issue(api.store, { ca: 'final' });
    expect(failure(await revoke(serial, { reason: 'certificateHold' }))).toMatchObject({ code: 'HOLD_UNSUPPORTED' });
    expect(told).not.toContainEqual(expect.objectContaining({ serial }));
    expectBody(await revoke(serial), { status: 'revoked' });
  });

  it('of two calls at once one succeeds', async () => {
    const { serial } = await fresh();
    const answers = await Promise.all([revoke(serial), revoke(serial)]);
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409]);
  });

  it('404 CERTIFICATE_NOT_FOUND for a serial number that nobody has', async () => {
    for (const serial of ['00', 'ff'.repeat(20), 'nope'])
      expect(failure(await revoke(serial)), serial).toMatchObject({ statusCode: 404, code: 'CERTIFICATE_NOT_FOUND' });
  });

  it('asks for ca where two CAs share a serial number, and revokes the one named only', async () => {
    const { serial } = await fresh();
    await issue(api.store, { ca: 'lab', serial });
    expect(failure(await revoke(serial))).toMatchObject({ statusCode: 400, code: 'SERIAL_AMBIGUOUS' });
    expectBody(await revoke(serial, {}, 'ca=lab'), { ca: 'lab', status: 'revoked' });
    expect((await api.store.getCertificates(serial, 'devices'))[0]).toMatchObject({ revoked_at: null });
  });

  it.each<readonly [name: string, body: unknown, names: string]>([
    ['an unknown reason', { reason: 'lost' }, 'reason'],
    ['a reason in another case', { reason: 'keycompromise' }, 'reason'],
    ['a name that every object has', { reason: 'toString' }, 'reason'],
    ['removeFromCRL, which revokes nothing', { reason: 'removeFromCRL' }, 'reason'],
    ['a number', { reason: 1 }, 'reason'],
    ['null', { reason: null }, 'reason'],
    ['a date in the future', { invalidity_date: new Date(start + 1000).toISOString() }, 'invalidity_date'],
    ['no date', { invalidity_date: 'yesterday' }, 'invalidity_date'],
    ['30 February', { invalidity_date: '2026-02-30T00:00:00Z' }, 'invalidity_date'],
    ['no zone', { invalidity_date: '2026-01-01T00:00:00' }, 'invalidity_date'],
    ['an unknown field', { comment: 'x' }, 'comment'],
    ['a list', [], 'body'],
    ['null for a body', null, 'body'],
  ])('%s: 400 that names the field', async (_name, body, names) => {
    const { serial } = await fresh();
    const answer = failure(await revoke(serial, body));
    expect(answer).toMatchObject({ statusCode: 400, code: 'FIELD_INVALID' });
    expect(answer.message).toContain(names);
    expect((await api.store.getCertificates(serial))[0]).toMatchObject({ revoked_at: null });
  });

  it('tells a remote CA first, and revokes nothing while that fails', async () => {
    const { serial } = await issue(api.store, { ca: 'lab' });
    remoteIsDown = true;
    expect(failure(await revoke(serial, { reason: 'superseded' }))).toMatchObject({ statusCode: 503 });
    expect((await api.store.getCertificates(serial))[0]).toMatchObject({ revoked_at: null });
    remoteIsDown = false;
    expect((await revoke(serial, { reason: 'superseded' })).statusCode).toBe(200);
    expect(told.filter((each) => each.serial === serial)).toEqual([{ ca: 'lab', serial, reason: 'superseded' }]);
  });

  it('revokes what a CA issued that is no longer configured', async () => {
    const { serial } = await issue(api.store, { ca: 'gone' });
    expectBody(await revoke(serial), { ca: 'gone', status: 'revoked' });
    expect(api.logged()).toContain('no longer configured');
  });

  it('certificate.revoked and admin.access say who, from where, what and why', async () => {
    const { serial } = await fresh();
    const invalidity_date = '2026-01-02T03:04:05.000Z';
    await revoke(serial, { reason: 'keyCompromise', invalidity_date });
    const revoked = (await api.store.listAudit({ limit: 1000, type: 'certificate.revoked' })).items.at(-1);
    expect(revoked).toMatchObject({
      ...{ outcome: 'success', subject: 'test admin', address: '127.0.0.1', ca: 'devices', serial },
      ...{ certificate_subject: 'CN=sensor', revocation_reason: 'keyCompromise', invalidity_date },
      detail: `CN=sensor: keyCompromise, invalid since ${invalidity_date}`,
    });
    const access = (await api.store.listAudit({ limit: 1000, type: 'admin.access' })).items.at(-1);
    expect(access).toMatchObject({
      outcome: 'success',
      detail: `POST /admin/certificates/:serial/revoke: certificate ${serial} of devices revoked`,
    });
    expect((access?.seq ?? 0) + 1).toBe(revoked?.seq);
  });
});
