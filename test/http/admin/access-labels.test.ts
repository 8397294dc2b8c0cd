/** Administrators with roles limited to labels: label × call × outcome, for every call of the OpenAPI description. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { AdminRole } from '../../../src/config/vocabulary.ts';
import { labelsFor } from '../../../src/http/admin/access.ts';
import type { AssumedSender, Verdict } from '../../../src/enrollment/dry-run.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { makeKey, simpleCsr } from '../../support/csr.ts';
import { certificateRow, deviceRow, event, otpRow, requestRow, reservation } from '../../store/rows.ts';
import { deviceOf } from '../../support/devices.ts';
import { adminFixture, ailingCa, failure, NOW, type AdminFixture } from './support.ts';

const HOLDERS = {
  ra: { roles: ['ra'], labels: ['lab'] },
  auditor: { roles: ['auditor'], labels: ['lab'] },
  both: { roles: ['ra', 'auditor'], labels: ['lab', 'guests'] },
  unlimited: { roles: ['ra', 'auditor'] },
  admin: { roles: ['admin'] },
} as const satisfies Record<string, { roles: readonly AdminRole[]; labels?: readonly string[] }>;
type Holder = keyof typeof HOLDERS;
const LIMITED = ['ra', 'auditor', 'both'] as const;

const tokenOf = (holder: string): string => `the-token-of-${holder}`;
const hashOf = (token: string): string => `sha256:${createHash('sha256').update(token).digest('hex')}`;

/** `lab` and `devices` are CAs, `guests` is a further label of `devices`; `none`: records without a label. */
const PLACES = ['lab', 'devices', 'guests', 'none'] as const;
type Place = (typeof PLACES)[number];
/** The ids of one record of each kind in a place; all of them contain its {@link mark}. */
type Ids = Readonly<Record<'serial' | 'otp' | 'device' | 'request', string>>;
const mark = (place: Place): string => `of-place-${place}`;

interface Operation {
  readonly 'x-roles'?: readonly string[];
  readonly 'x-labels'?: string;
}

let api: AdminFixture;
let close: () => Promise<void>;
let calls: readonly (readonly [name: string, method: string, path: string, operation: Operation])[];

/** What dry runs were asked. */
const assumed: AssumedSender[] = [];
const VERDICT: Verdict = { verdict: 'issue', subject: 'CN=x', sans: [], notAfter: NOW };

beforeAll(async () => {
  api = await adminFixture({
    auth: {
      bearer_token: {
        enabled: true,
        tokens: Object.entries(HOLDERS).map(([holder, grant]) => ({
          token_hash: hashOf(tokenOf(holder)),
          description: holder,
          ...grant,
        })),
      },
    },
    cas: ['devices', 'lab', 'guests'].map((label) =>
      ailingCa(
        label,
        () => Promise.resolve({ health: 'ok' }),
        [],
        label === 'devices',
        () => Promise.resolve(),
      ),
    ),
    dryRun: {
      run: (question) => {
        assumed.push(question.as);
        return Promise.resolve(VERDICT);
      },
      queued: () => Promise.resolve(VERDICT),
    },
    onEnd: (end) => (close = end),
  });
  const description = await as('admin', 'GET', '/admin/openapi.json');
  const { paths } = description.json() as { paths: Record<string, Record<string, Operation>> };
  calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method} ${path}`, method, path, operation] as const),
  );
});
afterAll(() => close());

const as = (holder: Holder, method: string, url: string, body?: string, type = 'application/json') =>
  api.raw(
    method,
    url,
    { authorization: `Bearer ${tokenOf(holder)}`, ...(body === undefined ? {} : { 'content-type': type }) },
    body,
  );

let made = 0;

/** Makes a record of each kind in a place, with a new id. */
async function records(place: Place): Promise<Ids> {
  const id = `${mark(place)}-${++made}`;
  const ca = place === 'none' ? null : place;
  const label = ca === null ? {} : { ca };
  const issuer = { ca: place === 'guests' ? 'devices' : place, label: place === 'guests' ? place : null };
  const serial = made.toString(16).padStart(32, '0');
  const device = deviceRow({ id, ca, key: `key-${id}` });
  const otp = otpRow({ id, client_id: id, ca, expires_at: NOW + 86_400_000 });
  const owner = { subject: `CN=${id}`, requester: id, request_id: id };
  const intent = reservation({ ...issuer, ...owner, serial, created_at: NOW });
  const request = requestRow({ id, ca: place, requester: id, subject: `CN=${id}`, device: id, device_key: device.key });
  await api.store.putDevices([{ row: device, events: [event('device.created', { ...label, detail: id })] }], 'create');
  await api.store.insertOtp(otp, [event('otp.created', { ...label, subject: id, token: id })]);
  await api.store.reserve(intent, []);
  await api.store.recordCertificate(
    // Without its DER, as after a restore: nothing here reads it.
    certificateRow(intent, { der: Buffer.alloc(0), not_before: NOW, not_after: NOW + 86_400_000, device: id }),
    place === 'none' ? [] : [event('certificate.issued', { ...issuerOf(issuer), subject: id, serial, request_id: id })],
  );
  await api.store.queueRequest({ ...request, required_device: null }, null, [
    event('request.queued', { ...label, subject: id, request_id: id }),
  ]);
  const selection = place === 'none' ? { subject: id } : place === 'guests' ? { label: place } : { ca: place };
  const times = { begins: NOW, due: NOW + 86_400_000, overdue_at: null };
  await api.store.startRenewal({ id, selection, ...times, created_by: 'x', reason: null, explanation_url: null }, []);
  return { serial, otp: id, device: id, request: id };
}

const issuerOf = ({ ca, label }: { ca: string; label: string | null }) => ({
  ca,
  ...(label === null ? {} : { label }),
});

const hold = (place: Place, { serial }: Ids) =>
  api.store.revokeCertificate(
    {
      ca: place === 'guests' ? 'devices' : place,
      serial,
      reason: 'certificateHold',
      revoked_at: NOW,
      invalidity_date: null,
    },
    [],
  );

const rescue = (place: Place, { serial }: Ids) =>
  api.store.rescueCertificate(
    {
      ...{ ca: place === 'guests' ? 'devices' : place, serial, until: NOW + 86_400_000 },
      ...{ reason: null, created_at: NOW, created_by: 'Ada' },
    },
    [],
  );

const idIn = (ids: Ids, path: string): string => {
  if (path.includes('{serial}')) return ids.serial;
  if (path.startsWith('/admin/otp')) return ids.otp;
  return path.startsWith('/admin/devices') ? ids.device : ids.request;
};

/** Bodies of the calls that need one. */
const BODIES: Readonly<Record<string, string>> = {
  'patch /admin/otp/{id}': JSON.stringify({ expires_at: new Date(NOW + 172_800_000).toISOString() }),
  'patch /admin/devices/{id}': JSON.stringify({ note: 'changed' }),
  'post /admin/requests/{id}/reject': JSON.stringify({ reason: 'x' }),
  'post /admin/certificates/{serial}/rescue': JSON.stringify({ for_seconds: 60 }),
};

const mayCall = (holder: Holder, { 'x-roles': roles = [] }: Operation): boolean =>
  HOLDERS[holder].roles.some((role) => roles.includes(role));
const permitted = (holder: (typeof LIMITED)[number]): readonly string[] => HOLDERS[holder].labels;

describe('label × call × outcome, of the OpenAPI description', () => {
  test('every call of a role that labels can limit says how they do', () => {
    for (const [name, , , operation] of calls) {
      const roles = operation['x-roles'] ?? [];
      const isLimitable = roles.includes('ra') || roles.includes('auditor');
      const expected =
        roles.includes('operator') && roles.includes('ra') && name.endsWith('session') ? 'none' : 'records';
      if (!isLimitable) expect(operation['x-labels'], name).toBeUndefined();
      else if (/session|openapi/.test(name)) expect(operation['x-labels'], name).toBe('none');
      else expect(operation['x-labels'], name).toBe(expected);
    }
  });

  test.each(LIMITED)(
    '%s: a record of another label, or of none, is 404 by every call; one of its labels is not',
    async (holder) => {
      const withId = calls.filter(
        ([, , path, operation]) => /\{(id|serial)\}/.test(path) && mayCall(holder, operation),
      );
      expect(withId.length).toBeGreaterThanOrEqual(5);
      for (const [name, method, path] of withId)
        for (const place of PLACES) {
          const ids = await records(place);
          const url = path.replace(/\{\w+\}/, idIn(ids, path));
          if (path.endsWith('/release')) await hold(place, ids);
          if (name.startsWith('delete') && path.endsWith('/rescue')) await rescue(place, ids);
          const before = await stateOf(ids);
          const answer = await as(holder, method.toUpperCase(), url, BODIES[name]);
          if (permitted(holder).includes(place)) {
            expect([200, 201, 204], `${name} of ${place}: ${answer.body}`).toContain(answer.statusCode);
            continue;
          }
          const unknown = await as(holder, method.toUpperCase(), path.replace(/\{\w+\}/, 'ff'), BODIES[name]);
          expect(failure(answer), `${name} of ${place}`).toEqual({ ...failure(unknown), statusCode: 404 });
          expect(await stateOf(ids), `${name} of ${place}`).toEqual(before);
        }
    },
  );

  test.each(LIMITED)(
    '%s: no list, search, export or stream shows records of other labels, or of none',
    async (holder) => {
      const all = await Promise.all(PLACES.map(records));
      const queries = all.flatMap((ids, n) => [
        `/admin/history?device=${ids.device}`,
        `/admin/history?requester=${ids.request}`,
        `/admin/history?request_id=${ids.request}`,
        `/admin/certificates?subject=${mark(PLACES[n] ?? 'none')}`,
        `/admin/certificates?serial=${ids.serial}`,
        `/admin/certificates?device=${ids.device}`,
        `/admin/otp?client_id=${ids.otp}`,
        `/admin/devices?id=${ids.device}`,
        `/admin/requests?requester=${ids.request}`,
        `/admin/audit?subject=${mark(PLACES[n] ?? 'none')}`,
      ]);
      const lists = calls.filter(
        ([, method, path, operation]) => method === 'get' && !path.includes('{') && mayCall(holder, operation),
      );
      const bodies: (readonly [string, string])[] = [];
      for (const url of [...lists.map(([, , path]) => path), ...queries]) {
        // The stream is below, and the history needs a parameter.
        if (['/admin/events', '/admin/history'].includes(url)) continue;
        const described = calls.find(([name]) => name === `get ${url.split('?', 1)[0] ?? ''}`);
        if (described === undefined || !mayCall(holder, described[3])) continue;
        bodies.push([url, await everyPage(holder, url)]);
        bodies.push([`${url} as CSV`, (await csv(holder, url)).body]);
      }
      const after = (await api.store.listAudit({ limit: 1, order: 'desc' })).items[0]?.seq ?? 0;
      bodies.push(['/admin/events', await events(holder, after)]);
      for (const [url, body] of bodies)
        for (const place of PLACES.filter((known) => !permitted(holder).includes(known)))
          expect(body, `${place} by ${url}`).not.toContain(mark(place));
      const shown = bodies.filter(([, body]) => body.includes(mark('lab'))).map(([url]) => url);
      expect(shown).toEqual(
        expect.arrayContaining([
          '/admin/certificates',
          '/admin/certificates as CSV',
          '/admin/devices',
          '/admin/requests',
          '/admin/events',
        ]),
      );
      if (holder !== 'auditor') expect(shown).toContain('/admin/otp');
      if (holder !== 'ra') expect(shown).toEqual(expect.arrayContaining(['/admin/audit', '/admin/audit as CSV']));
    },
  );

  test('counts are those of the permitted labels', async () => {
    api.advance(11_000);
    const before = { ra: await counts('ra'), both: await counts('both'), unlimited: await counts('unlimited') };
    for (const place of PLACES) await records(place);
    api.advance(11_000);
    expect(difference(await counts('ra'), before.ra)).toEqual({ valid: 1, pending: 1, issued: 1 });
    expect(difference(await counts('both'), before.both)).toEqual({ valid: 2, pending: 2, issued: 2 });
    expect(difference(await counts('unlimited'), before.unlimited)).toEqual({ valid: 4, pending: 4, issued: 3 });
  });

  test.each([
    ['lab', 'passes'],
    ['devices', 'fails'],
    ['unknown', 'fails'],
    [undefined, 'fails'],
  ] as const)('creating something with the label %s %s', async (ca, outcome) => {
    const status = (passing: number): number => (outcome === 'passes' ? passing : 403);
    const body = (more: object) => JSON.stringify({ ...more, ca });
    const creations: Readonly<Record<string, (id: string) => Promise<{ statusCode: number; body: string }>>> = {
      'post /admin/otp': (id) => as('ra', 'POST', '/admin/otp', body({ client_id: id })),
      'post /admin/otp/bulk': (id) => bulk('/admin/otp/bulk', body({ client_id: id })),
      'post /admin/devices': (id) => as('ra', 'POST', '/admin/devices', body({ id })),
      'post /admin/check': () =>
        as('ra', 'POST', '/admin/check', JSON.stringify({ ca: ca ?? '-', csr: '-', as: { client_id: 'x' } })),
      'post /admin/renewals': () =>
        as(
          'ra',
          'POST',
          '/admin/renewals',
          JSON.stringify({ filter: { ca, subject: 'x' }, by: '2100-01-01T00:00:00Z' }),
        ),
      // It creates nothing; its filters find nothing of other labels (see below).
      'post /admin/certificates/revoke': () => Promise.resolve({ statusCode: status(200), body: '' }),
    };
    const described = calls.filter(
      ([, method, path, operation]) => method === 'post' && !path.includes('{') && operation['x-labels'] === 'records',
    );
    expect(Object.keys(creations).sort()).toEqual(described.map(([name]) => name).sort());
    for (const [name, create] of Object.entries(creations)) {
      const id = `new-${++made}`;
      const answer = await create(id);
      const passing =
        { 'post /admin/check': 400, 'post /admin/certificates/revoke': 200, 'post /admin/otp/bulk': 200 }[name] ?? 201;
      expect(answer.statusCode, `${name}: ${answer.body}`).toBe(status(passing));
    }
    for (const url of ['/admin/devices', '/admin/devices?mode=upsert', '/admin/devices?dry_run=true']) {
      const answer = await bulk(url, body({ id: `new-${++made}` }));
      expect(answer.statusCode, `${url}: ${answer.body}`).toBe(status(200));
    }
    if (outcome === 'fails')
      expect(failure(await as('ra', 'POST', '/admin/otp', body({ client_id: 'x' })))).toEqual({
        statusCode: 403,
        code: 'LABEL_NOT_PERMITTED',
        message: 'ca must be a label that you may touch: lab',
      });
  });

  test('an ID at another label, or at none, is neither seen nor changed nor taken; a change moves no device out', async () => {
    const [own, foreign, free] = await Promise.all((['lab', 'devices', 'none'] as const).map(records));
    for (const dry of ['', '&dry_run=true'])
      for (const { device: id } of [foreign, free].filter((record) => record !== undefined)) {
        const row = JSON.stringify({ id, ca: 'lab', enabled: false });
        for (const mode of ['create', 'upsert']) {
          const path = `/admin/devices?mode=${mode}${dry}`;
          expect((await as('ra', 'POST', path, row)).statusCode).toBe(dry === '' ? 201 : 200);
          if (dry === '') expect((await as('ra', 'DELETE', `/admin/devices/${id}`)).statusCode).toBe(204);
          const answer = await as('ra', 'POST', path, row, 'application/x-ndjson');
          expect(JSON.parse(answer.body)).toMatchObject({ id, ca: 'lab', enabled: false });
          if (dry === '') expect((await as('ra', 'DELETE', `/admin/devices/${id}?ca=lab`)).statusCode).toBe(204);
        }
        expect(await deviceOf(api.store, id)).toMatchObject({ enabled: true });
        for (const ca of ['', '?ca=', '?ca=devices'])
          expect((await as('ra', 'GET', `/admin/devices/${id}${ca}`)).statusCode).toBe(404);
      }
    const id = own?.device ?? '';
    for (const ca of ['devices', null]) {
      const answer = await as('ra', 'PATCH', `/admin/devices/${id}`, JSON.stringify({ ca }));
      expect(failure(answer)).toMatchObject({ statusCode: 403, code: 'LABEL_NOT_PERMITTED' });
    }
    expect((await api.store.getDevices(id))[0]).toMatchObject({ ca: 'lab' });
    expect((await as('both', 'PATCH', `/admin/devices/${id}`, JSON.stringify({ ca: 'guests' }))).statusCode).toBe(200);
  });

  test('a dry run does not know devices of other labels, or of none', async () => {
    const csr = encodePem('CERTIFICATE REQUEST', simpleCsr(makeKey()));
    for (const holder of ['ra', 'unlimited'] as const)
      for (const place of PLACES) {
        const { device } = await records(place);
        const { statusCode } = await as(
          holder,
          'POST',
          '/admin/check',
          JSON.stringify({ ca: 'lab', csr, as: { device } }),
        );
        expect(statusCode).toBe(200);
        const known = holder === 'unlimited' || place === 'lab';
        expect(assumed.at(-1), `${holder}: ${place}`).toEqual({ kind: 'device', id: device, known });
      }
  });

  test('a bulk revocation and the deletion of a device revoke certificates of the permitted labels only', async () => {
    const all = await Promise.all(PLACES.map(records));
    const filter = { subject: mark('lab').slice(0, -3) };
    const order = (more: object) => as('ra', 'POST', '/admin/certificates/revoke', JSON.stringify({ filter, ...more }));
    const { count } = JSON.parse((await order({ dry_run: true })).body) as { count: number };
    expect((await order({ count })).statusCode).toBe(200);
    const open = await Promise.all(all.map(({ serial }) => api.store.getCertificates(serial)));
    expect(open.map(([row]) => row?.revoked_at === null)).toEqual([false, true, true, true]);

    const device = deviceRow({ id: 'moved', key: 'moved', ca: 'lab' });
    await api.store.putDevices([{ row: device, events: [] }], 'create');
    const serials = ['aa01', 'aa02'];
    for (const [n, ca] of ['devices', 'lab'].entries()) {
      const intent = reservation({ ca, serial: serials[n] ?? '', request_id: `moved-${ca}`, created_at: NOW });
      await api.store.reserve(intent, []);
      await api.store.recordCertificate(
        certificateRow(intent, {
          device: 'moved',
          device_key: 'moved',
          required_device: null,
          not_after: NOW + 86_400_000,
        }),
        [],
      );
    }
    expect((await as('ra', 'DELETE', '/admin/devices/moved?revoke=true')).statusCode).toBe(204);
    const revoked = await Promise.all(serials.map((serial) => api.store.getCertificates(serial)));
    expect(revoked.map(([row]) => row?.reason ?? null)).toEqual([null, 'cessationOfOperation']);
  });

  test('a campaign is for those whose labels are all that it is about', async () => {
    const by = new Date(NOW + 86_400_000).toISOString();
    const start = async (holder: Holder, filter: object): Promise<string> => {
      const answer = await as(holder, 'POST', '/admin/renewals', JSON.stringify({ filter, by }));
      expect(answer.statusCode, answer.body).toBe(201);
      return (JSON.parse(answer.body) as { id: string }).id;
    };
    const ids = {
      everything: await start('admin', { subject: 'x' }),
      devices: await start('admin', { ca: 'devices' }),
      guests: await start('admin', { ca: 'devices', label: 'guests' }),
      lab: await start('admin', { ca: 'lab' }),
    };
    const seen = async (holder: Holder): Promise<string[]> => {
      const { items } = JSON.parse((await as(holder, 'GET', '/admin/renewals?order=desc')).body) as {
        items: { id: string }[];
      };
      return Object.entries(ids).flatMap(([name, id]) => (items.some((item) => item.id === id) ? [name] : []));
    };
    expect(await seen('unlimited')).toEqual(['everything', 'devices', 'guests', 'lab']);
    expect(await seen('ra')).toEqual(['lab']);
    expect(await seen('both')).toEqual(['guests', 'lab']);
    for (const method of ['GET', 'DELETE'])
      expect((await as('ra', method, `/admin/renewals/${ids.devices}`)).statusCode, method).toBe(404);
    expect((await as('ra', 'DELETE', `/admin/renewals/${ids.lab}`)).statusCode).toBe(204);
  });

  test('a limit applies to the roles that it was given with', () => {
    const admin: Parameters<typeof labelsFor>[0] = {
      grants: [{ roles: ['ra'], labels: ['lab'] }, { roles: ['auditor'] }],
    };
    expect(labelsFor(admin, ['ra'])).toEqual(['lab']);
    expect(labelsFor(admin, ['auditor'])).toBeUndefined();
    expect(labelsFor(admin, ['ra', 'auditor'])).toBeUndefined();
    expect(labelsFor(admin, ['operator'])).toEqual([]);
  });

  test('a route without a rule is refused for limited administrators', async () => {
    const bare = await adminFixture({
      auth: {
        bearer_token: {
          enabled: true,
          tokens: Object.entries(HOLDERS).map(([description, grant]) => ({
            token_hash: hashOf(tokenOf(description)),
            description,
            ...grant,
          })),
        },
      },
      addRoutes: (app) => void app.get('/admin/new', { config: { access: ['ra', 'auditor'] } }, () => ({ all: true })),
    });
    for (const holder of Object.keys(HOLDERS)) {
      const answer = await bare.raw('GET', '/admin/new', { authorization: `Bearer ${tokenOf(holder)}` });
      if (holder === 'admin' || holder === 'unlimited') expect(answer.statusCode, holder).toBe(200);
      else expect(failure(answer), holder).toMatchObject({ statusCode: 403, code: 'LABEL_NOT_PERMITTED' });
    }
    const { items } = await bare.store.listAudit({ limit: 10, type: 'admin.access' });
    expect(items.at(-1)).toMatchObject({ outcome: 'failure', detail: 'GET /admin/new: LABEL_NOT_PERMITTED' });
  });
});

async function stateOf(ids: Ids): Promise<unknown> {
  const [certificate] = await api.store.getCertificates(ids.serial);
  return {
    revoked_at: certificate?.revoked_at,
    otp: await api.store.getOtp(ids.otp),
    device: (await api.store.getDevices(ids.device))[0],
    request: await api.store.getRequest(ids.request),
  };
}

const csv = (holder: Holder, url: string) =>
  api.raw('GET', url, { authorization: `Bearer ${tokenOf(holder)}`, accept: 'text/csv' });

/** The bodies of all pages of a list, or the only one. */
async function everyPage(holder: Holder, url: string): Promise<string> {
  let bodies = '';
  for (let cursor: string | null = ''; cursor !== null;) {
    const separator = url.includes('?') ? '&' : '?';
    const answer = await as(holder, 'GET', cursor === '' ? url : `${url}${separator}cursor=${cursor}`);
    expect(answer.statusCode, url).toBe(200);
    bodies += answer.body;
    const body: unknown = answer.headers['content-type']?.toString().includes('json') === true ? answer.json() : {};
    const next: unknown = Reflect.get(body as object, 'next_cursor');
    cursor = typeof next === 'string' ? next : null;
  }
  return bodies;
}

/** What a stream shows of records that are made after it began. */
async function events(holder: Holder, after: number): Promise<string> {
  const headers = { authorization: `Bearer ${tokenOf(holder)}`, 'last-event-id': String(after) };
  const response = await api.app.inject({ method: 'GET', url: '/admin/events', headers, payloadAsStream: true });
  const stream = response.stream();
  onTestFinished(() => void stream.destroy());
  for (const place of ['devices', 'guests', 'none', 'lab'] as const) await records(place);
  await api.store.audit([event('request.queued', { ca: 'lab', subject: 'the-last-one', request_id: 'the-last-one' })]);
  let text = '';
  for await (const part of stream) {
    text += String(part);
    if (text.includes('the-last-one')) break;
  }
  return text;
}

interface Counts {
  readonly valid: number;
  readonly pending: number;
  readonly issued: number;
}

async function counts(holder: Holder): Promise<Counts> {
  const overview = (await as(holder, 'GET', '/admin/overview')).json() as {
    certificates: { valid: number };
    requests: { pending: { count: number }[] };
  };
  const statistics = (await as(holder, 'GET', '/admin/statistics')).json() as { items: { issued: number }[] };
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);
  return {
    valid: overview.certificates.valid,
    pending: sum(overview.requests.pending.map(({ count }) => count)),
    issued: sum(statistics.items.map(({ issued }) => issued)),
  };
}

const difference = (after: Counts, before: Counts): Counts => ({
  valid: after.valid - before.valid,
  pending: after.pending - before.pending,
  issued: after.issued - before.issued,
});

/** A call with one row: the status of a failed row is that of its code. */
async function bulk(url: string, row: string): Promise<{ statusCode: number; body: string }> {
  const { statusCode, body } = await as('ra', 'POST', url, row, 'application/x-ndjson');
  return { statusCode: body.includes('LABEL_NOT_PERMITTED') ? 403 : statusCode, body };
}
