/** Derives holders and their states, from their certificates and from what is known of them (docs/guides/fleet.md). */
import { readSans } from './certificate-store.ts';
import { DEVICE_ID } from './device-store.ts';
import { EARLIEST_WITHOUT_END } from './holder-list.ts';
import { type DerivedState, holderState, type HolderState, isReported, NOT_LISTED } from './holder-state.ts';
import { type Database, insertInto, type Operation } from './port.ts';
import type { WindowedCertificate } from './renewal-store.ts';
import { inStatus } from './request-state.ts';
import { requestedWith } from './use-store.ts';

/** What the configuration decides. */
export interface FleetRules {
  /** Milliseconds after which an expired holder is forgotten; 0: never. */
  readonly forget: number;
  /** Whether holders are expected to renew at a label; null: any. */
  readonly expected: (label: string | null) => boolean;
  readonly requiresDevices: (label: string) => boolean;
  /** Hex SHA-256 of the certificates of configured registration authorities. */
  readonly authorities: ReadonlySet<string>;
  readonly window: (row: WindowedCertificate) => { readonly start: number; readonly end: number };
  /** Whether states that holders enter are reported. */
  readonly reports: boolean;
}

/** Certificates of a holder that are looked at, newest first: a holder with more revoked ones in a row has none. */
const LOOKED_AT = 20;
const [WAITING_LOOK, FORGOTTEN_LOOK] = [30_000, 604_800_000];

const NEWEST = `SELECT u.holder, u.renewed_serial, u.renewed_ca, u.first_used_at, u.first_failed_at, u.reported, u.issued_at, c.ca, c.label,
    c.serial, c.fingerprint_sha256, c.subject, c.sans, c.not_before, c.not_after, c.requester, c.device, c.device_key, c.revoked_at
  FROM certificate_use AS u JOIN certificate AS c ON c.serial = u.serial AND c.ca = u.ca
  WHERE u.holder = ? ORDER BY u.issued_at DESC, c.position DESC LIMIT ${LOOKED_AT}`;

type Held = Omit<WindowedCertificate, 'sans'> & {
  readonly sans: string;
  readonly holder: string;
  readonly renewed_serial: string | null;
  readonly renewed_ca: string | null;
  readonly first_used_at: number | null;
  readonly first_failed_at: number | null;
  readonly reported: string;
};

interface HolderRow {
  readonly key: string;
  readonly label: string | null;
  readonly device: string | null;
  readonly device_key: string | null;
  readonly serial: string | null;
  readonly ca: string | null;
  readonly subject: string | null;
  readonly sans: string;
  readonly issued_at: number | null;
  readonly ends: number;
  readonly window_end: number | null;
  readonly state: HolderState | null;
  readonly since: number | null;
  readonly next_at: number | null;
  readonly last_failed_at: number | null;
  readonly last_code: string | null;
  readonly last_message: string | null;
  readonly request_id: string | null;
  readonly entered_at: number | null;
  readonly reported_at: number | null;
}

const HOLDER_COLUMNS =
  'key, label, device, device_key, serial, ca, subject, sans, issued_at, ends, window_end, state, since, next_at, last_failed_at, last_code, last_message, request_id, entered_at, reported_at';
const PUT = `${insertInto('holder', HOLDER_COLUMNS)} ON CONFLICT (key) DO UPDATE SET
  ${HOLDER_COLUMNS.split(', ')
    .slice(1)
    .map((name) => `${name} = excluded.${name}`)
    .join(', ')}`;

const NOBODY: Omit<HolderRow, 'key'> = {
  ...{ label: null, device: null, device_key: null, serial: null, ca: null, subject: null, sans: '[]' },
  ...{ issued_at: null, ends: EARLIEST_WITHOUT_END, window_end: null, state: null, since: null, next_at: null },
  ...{ last_failed_at: null, last_code: null, last_message: null, request_id: null },
  ...{ entered_at: null, reported_at: null },
};

const SUCCESSORS = `SELECT u.holder, u.issued_at, u.last_used_at, c.revoked_at
  FROM (${requestedWith('*', '?', '?')}) AS u JOIN certificate AS c ON c.serial = u.serial AND c.ca = u.ca`;
const COUNT = `INSERT INTO holder_count (label, state, n) VALUES (@label, @state, @n)
  ON CONFLICT (label, state) DO UPDATE SET n = holder_count.n + excluded.n`;

const DEVICES = `SELECT key, ${DEVICE_ID} AS id, ca, enabled, not_after, created_at FROM device WHERE key = ANY(@keys)`;

const DEVICE = 'device ';
/** Begins the key of a certificate of a CA, of a registration authority or of this server: these have no holder. */
export const NO_HOLDER = 'other ';
/** The key of a device as the holder of no certificate. */
export const deviceHolder = (key: string): string => `${DEVICE}${key}`;

interface StoredDevice {
  readonly key: string;
  readonly id: string;
  readonly ca: string | null;
  readonly enabled: number;
  readonly not_after: number | null;
  readonly created_at: number;
}

interface Successor {
  readonly holder: string | null;
  readonly issued_at: number | null;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
}

interface Renewed {
  readonly serial: string;
  readonly ca: string;
  readonly connected_at: number | null;
}

/** What is read of several holders at once. */
interface Facts {
  /** By the ID of the certificate that was renewed. */
  readonly successors: ReadonlyMap<string, readonly Successor[]>;
  readonly renewed: readonly Renewed[];
  readonly queued: ReadonlyMap<string, number>;
  readonly devices: ReadonlyMap<string, StoredDevice>;
}

type Derived = Omit<HolderRow, 'entered_at' | 'reported_at'> & { readonly reported: string };

/** Derives holders, and keeps their counts. */
export function derivation(db: Database) {
  function* readFacts(
    newest: readonly Held[],
    stored: readonly HolderRow[],
    devices: readonly string[],
  ): Operation<Facts> {
    const serials = newest.flatMap(({ renewed_serial }) => renewed_serial ?? []);
    const renewable = new Map(
      newest.flatMap(({ serial, ca, renewed_serial, renewed_ca }) => [
        [idOf(serial, ca), [serial, ca]] as const,
        [idOf(renewed_serial, renewed_ca), [renewed_serial, renewed_ca]] as const,
      ]),
    );
    const ids = stored.flatMap(({ request_id }) => request_id?.split(' ') ?? []);
    const keys = [...newest.flatMap(({ device_key }) => device_key ?? []), ...devices];
    const [renewed, queued, found, ...successors] = yield* db.together([
      db.all<Renewed>('SELECT serial, ca, connected_at FROM certificate_use WHERE serial = ANY(@serials)', { serials }),
      db.all<{ id: string; created_at: number }>(
        `SELECT id, created_at FROM request WHERE id = ANY(@ids) AND ${inStatus(['pending', 'approved'])}`,
        { ids },
      ),
      db.all<StoredDevice>(DEVICES, { keys }),
      ...[...renewable.values()].map(([serial, ca]) => db.all<Successor>(SUCCESSORS, serial, ca)),
    ]);
    return {
      ...{ successors: new Map([...renewable.keys()].map((id, at) => [id, successors[at] ?? []])), renewed },
      queued: new Map(queued.map(({ id, created_at }) => [id, created_at])),
      devices: new Map(found.map((device) => [device.key, device])),
    };
  }

  function* never(
    key: string,
    stored: HolderRow | undefined,
    facts: Facts,
    rules: FleetRules,
    now: number,
  ): Operation<Derived | undefined> {
    const device_key = key.slice(DEVICE.length);
    const device = facts.devices.get(device_key);
    const had =
      stored?.issued_at ??
      ((yield* db.get`SELECT 1 AS found FROM certificate WHERE device_key = ${device_key} LIMIT 1`) === undefined
        ? null
        : now);
    if (device === undefined) return undefined;
    const isListed = had === null && isUsable(device, now) && rules.expected(device.ca);
    const next_at = device.not_after !== null && device.not_after > now ? device.not_after : null;
    return {
      ...{ ...NOBODY, ...stored, key, reported: '' },
      ...{ label: device.ca, device: device.id, device_key, issued_at: had },
      ...(isListed ? { state: 'never' as const, since: device.created_at, next_at } : NOT_LISTED),
    };
  }

  function* replace(
    key: string,
    stored: HolderRow | undefined,
    derived: Derived | undefined,
    now: number,
    rules: FleetRules,
  ) {
    if (derived === undefined) {
      if (stored !== undefined) yield* db.run`DELETE FROM holder WHERE key = ${key}`;
      return;
    }
    const { reported, ...row } = derived;
    const { state } = row;
    const isNew = isReported(state) && !reported.split(' ').includes(state);
    if (isNew && !rules.reports)
      yield* db.run`UPDATE certificate_use SET reported = reported || ${`${state} `} WHERE serial = ${row.serial} AND ca = ${row.ca}`;
    const isKnown = stored?.state === state && stored.serial === row.serial;
    const entered = isKnown ? stored.entered_at : now;
    const entered_at = isNew && rules.reports ? (entered ?? now) : null;
    yield* db.run(PUT, { ...row, entered_at, reported_at: stored?.reported_at ?? null });
  }

  return function* (keys: readonly string[], rules: FleetRules, now: number): Operation<void> {
    if (keys.length === 0) return;
    const of = (key: string) => !key.startsWith(DEVICE);
    const [stored, ...lists] = yield* db.together([
      db.all<HolderRow>(`SELECT ${HOLDER_COLUMNS} FROM holder WHERE key = ANY(@keys)`, { keys }),
      ...keys.filter(of).map((key) => db.all<Held>(NEWEST, key)),
    ]);
    const known = new Map(stored.map((row) => [row.key, row]));
    const held = new Map(lists.flatMap((list) => (list[0] === undefined ? [] : [[list[0].holder, list] as const])));
    const newest = [...held].flatMap(([key, list]) => {
      const own = list.filter(({ fingerprint_sha256 }) => !rules.authorities.has(fingerprint_sha256));
      const first = own.find(({ revoked_at }) => revoked_at === null);
      return first === undefined ? [] : [[key, { ...first, revoked_until: revokedUntil(own, now) }] as const];
    });
    const deviceKeys = keys.filter((key) => !of(key)).map((key) => key.slice(DEVICE.length));
    const facts = yield* readFacts(
      newest.map(([, row]) => row),
      stored,
      deviceKeys,
    );
    const rows = new Map(newest);
    const counts = new Map<string, { label: string; state: string; n: number }>();
    const count = (row: Pick<HolderRow, 'label' | 'state'> | undefined, by: number): void => {
      if (row === undefined || row.state === null) return;
      const { state } = row;
      const label = row.label ?? '';
      const entry = counts.get(`${state} ${label}`) ?? { label, state, n: 0 };
      entry.n += by;
      counts.set(`${state} ${label}`, entry);
    };
    for (const key of keys) {
      const before = known.get(key);
      const row = rows.get(key);
      const derived = of(key)
        ? row && holding(row, before, facts, rules, now)
        : yield* never(key, before, facts, rules, now);
      yield* replace(key, before, derived, now, rules);
      count(before, -1);
      count(derived, 1);
    }
    for (const entry of counts.values()) if (entry.n !== 0) yield* db.run(COUNT, entry);
  };
}

const idOf = (serial: string | null, ca: string | null): string => `${serial} ${ca}`;

const isUsable = ({ enabled, not_after }: StoredDevice, now: number): boolean =>
  enabled === 1 && (not_after === null || not_after > now);

/** When the last one expires, if all that have not expired are revoked: until then, the holder is in no list. */
function revokedUntil(held: readonly Held[], now: number): number | undefined {
  const unexpired = held.filter(({ not_after }) => not_after >= now);
  if (unexpired.length === 0 || unexpired.some(({ revoked_at }) => revoked_at === null)) return undefined;
  return Math.max(...unexpired.map(({ not_after }) => not_after));
}

/** The holder of a certificate; its state is null if it is in no list. undefined: nobody is expected to renew. */
function holding(
  newest: Held & { readonly revoked_until: number | undefined },
  stored: HolderRow | undefined,
  facts: Facts,
  rules: FleetRules,
  now: number,
): Derived | undefined {
  const { holder, renewed_serial, renewed_ca, reported, revoked_until, first_failed_at, ...certificate } = newest;
  const label = newest.label ?? newest.ca;
  if (holder.startsWith(NO_HOLDER) || !rules.expected(label)) return undefined;
  const window = rules.window({
    ...certificate,
    sans: readSans(newest.sans, `certificate ${newest.ca} ${newest.serial}`),
  });
  const before = stored?.serial === newest.serial && stored.ca === newest.ca ? stored : undefined;
  const queued = (stored?.request_id?.split(' ') ?? []).filter((id) => facts.queued.has(id));
  const queued_at = queued.length === 0 ? null : Math.min(...queued.flatMap((id) => facts.queued.get(id) ?? []));
  const renewed =
    renewed_serial === null || renewed_ca === null ? {} : { renewed: renewal(renewed_serial, renewed_ca, facts) };
  const device = facts.devices.get(newest.device_key ?? '');
  const isDenied =
    revoked_until !== undefined ||
    (rules.requiresDevices(label) && newest.device_key !== null && (device === undefined || !isUsable(device, now)));
  const isReplaced = facts.successors
    .get(idOf(newest.serial, newest.ca))
    ?.some((successor) => successor.holder !== holder && successor.revoked_at === null);
  const derived: DerivedState =
    isDenied || isReplaced === true
      ? NOT_LISTED
      : holderState(
          { newest: { ...newest, window, ...renewed }, failed_at: first_failed_at, queued_at },
          now,
          rules.forget,
        );
  // It is since its first such connection.
  const since = derived.state === 'stuck' && before?.state === 'stuck' ? before.since : derived.since;
  const further = [
    ...(derived.state === 'waiting' ? [now + WAITING_LOOK] : []),
    ...(revoked_until === undefined ? [] : [revoked_until + 1]),
    ...(device?.not_after !== undefined && device.not_after !== null && device.not_after > now
      ? [device.not_after]
      : []),
  ];
  return {
    ...NOBODY,
    ...stored,
    ...{ key: holder, label, device: newest.device, device_key: newest.device_key, reported },
    ...{ serial: newest.serial, ca: newest.ca, subject: newest.subject, sans: newest.sans },
    ...{ issued_at: newest.issued_at, ends: newest.not_after, window_end: window.end, state: derived.state, since },
    request_id: queued.length === 0 ? null : queued.join(' '),
    // One in no list is kept until its certificate is purged: another configuration may have let it renew.
    next_at: Math.min(
      derived.next_at ?? (newest.not_after < now ? now + FORGOTTEN_LOOK : newest.not_after + 1),
      ...further,
    ),
  };
}

/** What was seen of a certificate since it was renewed. */
function renewal(serial: string, ca: string, { successors, renewed }: Facts) {
  const all = successors.get(idOf(serial, ca)) ?? [];
  const used = Math.max(-Infinity, ...all.map(({ last_used_at }) => last_used_at ?? -Infinity));
  const found = renewed.find((certificate) => certificate.serial === serial && certificate.ca === ca);
  return {
    connected_at: found?.connected_at ?? null,
    renewals: all.filter(({ issued_at }) => (issued_at ?? 0) > used).length,
  };
}
