/**
 * Random histories of holders against a simple model of their states, which knows only the table of docs/guides/fleet.md.
 * `ESTUARY_FLEET_STEPS=5000` is the nightly size, and `ESTUARY_FLEET_SEED` another history.
 */
import { expect, test } from 'vitest';
import type { FleetRules } from '../../src/store/holder-derivation.ts';
import { certificateRow, opened, reservation, T0, temporaryPaths } from '../store/support.ts';
import { expectedState, type Held } from '../support/fleet-model.ts';
import { Random } from '../support/random.ts';

const STEPS = Number(process.env['ESTUARY_FLEET_STEPS'] ?? 600);
const SEED = Number(process.env['ESTUARY_FLEET_SEED'] ?? 57);
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const LIFETIME = 10 * DAY;
/** Steps between two comparisons. */
const LOOK = 10;

const FORGET = 20 * DAY;
const RULES: FleetRules = {
  ...{ forget: FORGET, expected: () => true, requiresDevices: () => false, authorities: new Set() },
  window: ({ not_after }) => ({ start: not_after - 3 * DAY, end: not_after - DAY }),
  reports: false,
};

test(`after each of ${STEPS} random steps, every holder is in the state that the table gives it`, async () => {
  const store = await opened(temporaryPaths());
  const random = new Random(SEED);
  const certificates: (Held & { readonly fingerprint: string })[] = [];
  const rejected = new Map<string, number[]>();
  const seen = new Set<string>();
  let now = T0;

  const issue = async (name: string, renewed?: Held): Promise<void> => {
    const intent = reservation({ created_at: now, subject: `CN=${name}` });
    const row = certificateRow(intent, { sans: [], not_before: now, not_after: now + LIFETIME });
    await store.reserve(intent, []);
    await store.recordCertificate(row, []);
    const issued = { with: renewed && { serial: renewed.serial }, renews: renewed !== undefined };
    await store.applyFleetChanges({ certificates: [{ ...row, issued }] }, RULES, now);
    const { serial, fingerprint_sha256: fingerprint } = row;
    const times = { at: now, notAfter: row.not_after, window: RULES.window({ ...row, issued_at: now }) };
    certificates.push({ name, serial, fingerprint, ...times, renewed, revoked: false, uses: [] });
  };
  const use = async (held: (typeof certificates)[number]): Promise<void> => {
    const connected = Math.max(held.at, held.uses.at(-1)?.connected ?? 0, now - random.between(0, 5 * MINUTE));
    held.uses.push({ at: now, connected });
    const times = { first_used_at: now, last_used_at: now, connected_at: connected };
    const connection = { tls_version: 'TLSv1.3', names_label: true, chains: [] } as const;
    const one = { serial: held.serial, fingerprints: [held.fingerprint], ...times, ...connection };
    await store.recordUses({ uses: [one], issued: [], renewalInfo: [] });
  };
  const reject = async ({ name, serial }: Held): Promise<void> => {
    rejected.set(name, [...(rejected.get(name) ?? []), now]);
    const rejection = { at: now, code: 'SAN_MISMATCH', message: 'no', certificate: { serial } };
    await store.applyFleetChanges({ rejections: [rejection] }, RULES, now);
  };
  const revoke = async (held: Held): Promise<void> => {
    if (held.revoked) return;
    held.revoked = true;
    const revocation = { ca: 'devices', serial: held.serial, revoked_at: now, reason: 'superseded' };
    await store.revokeCertificate({ ...revocation, invalidity_date: null }, []);
    await store.applyFleetChanges({ certificates: [{ ca: 'devices', serial: held.serial }] }, RULES, now);
  };
  const step = async (): Promise<void> => {
    const alive = certificates.filter(({ notAfter, revoked }) => !revoked && notAfter >= now);
    const held = random.pick(alive);
    const dice = random.between(0, 20);
    if (held === undefined || dice < 3) await issue(`device-${random.between(0, 30)}`);
    else if (dice < 9) await use(held);
    else if (dice < 15) await issue(held.name, held);
    else if (dice < 16) await issue(`${held.name}-renamed`, held);
    else if (dice < 18) await reject(held);
    else await revoke(held);
  };

  for (let n = 0; n < STEPS; n++) {
    now += random.pick([1, 20_000, 2 * MINUTE, HOUR, 9 * HOUR]) ?? 1;
    await step();
    if (n % LOOK !== 0) continue;
    now += random.pick([1, DAY, 5 * DAY, 0.5 * DAY]) ?? 1;
    while (await store.deriveDueHolders(RULES, now));
    const { items } = await store.listHolders({ limit: 1000 });
    const names = new Set(certificates.map(({ name }) => name));
    const states = [...names].flatMap((name) => {
      const facts = { all: certificates, rejections: rejected.get(name) ?? [], forget: FORGET };
      const state = expectedState(name, facts, now);
      return state === undefined ? [] : [`${name} ${state}`];
    });
    const listed = items.map(({ subject, state }) => `${subject?.slice('CN='.length) ?? ''} ${state}`);
    expect(listed.sort(), `step ${n}, seed ${SEED}`).toEqual(states.sort());
    for (const { state } of items) seen.add(state);
  }
  expect([...seen].sort()).toEqual(['due', 'expired', 'failing', 'late', 'ok', 'stuck']);
});
