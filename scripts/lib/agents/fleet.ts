/**
 * A fleet of `estuary client` in virtual time. Each agent has its own folder, and is killed at random steps. The server
 * drops responses, restarts, disables devices, starts a replacement campaign and requests other key types; the root gets
 * new keys; disks are full. No agent may lose a working key and certificate.
 */
import { ClientError } from '../../../src/client/client-error.ts';
import { changeOf, parseState } from '../../../src/client/keep/state.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { makeCa, type Issuer } from '../../../test/support/certificates.ts';
import { ClientWorld, DAY, START } from '../../../test/support/client-world.ts';
import { Random } from '../../../test/support/random.ts';

export interface FleetOptions {
  readonly agents: number;
  readonly days: number;
  /** Of a certificate, milliseconds. */
  readonly lifetime: number;
  /** Days between two rollovers of the root. */
  readonly rolloverDays: number;
  readonly seed: number;
}

export interface FleetResult {
  readonly certificates: number;
  readonly requests: number;
  readonly kills: number;
  readonly lostAnswers: number;
  readonly refusals: number;
  /** Steps of agents with a full disk, rejections of disabled devices, certificates that a campaign replaced. */
  readonly fullDisks: number;
  readonly disabled: number;
  readonly replaced: number;
  /** Certificates whose key has another type than the one before. */
  readonly keyTypes: number;
  readonly hooks: number;
  readonly problems: readonly string[];
}

const HOUR = 3_600_000;
/** Interval and length of server outages. */
const OUTAGE_EVERY = 2 * DAY;
const OUTAGE = HOUR;
const SHARE = { killed: 0.1, lost: 0.1, busy: 0.1, full: 0.03 };
/** Of the certificate's lifetime: a device is disabled for that long, from its renewal on. */
const DISABLED = 1 / 24;
/** One device of so many is disabled once. */
const DISABLED_EVERY = 5;
const KEY_TYPES = [OID.ed25519, undefined];
/** More than the steps of an enrollment. */
const STEPS = 80;

type Cas = ClientWorld['cas'];

export async function runFleet(options: FleetOptions): Promise<FleetResult> {
  const cas = await rollovers(options);
  const total = {
    certificates: 0,
    requests: 0,
    kills: 0,
    lostAnswers: 0,
    refusals: 0,
    fullDisks: 0,
    disabled: 0,
    replaced: 0,
    keyTypes: 0,
    hooks: 0,
  };
  const problems: string[] = [];
  for (let agent = 0; agent < options.agents; agent++) {
    const result = await runAgent(options, cas, new Random(options.seed + agent), agent % DISABLED_EVERY === 0);
    for (const name of COUNTED) total[name] += result[name];
    problems.push(...result.problems.map((problem) => `agent ${agent}: ${problem}`));
  }
  return { ...total, problems };
}

const COUNTED = [
  'fullDisks',
  'disabled',
  'replaced',
  'keyTypes',
  'certificates',
  'requests',
  'kills',
  'lostAnswers',
  'refusals',
  'hooks',
] as const;

/** The CAs of each period: the new root with what links it to the one before (RFC 4210 §4.4). */
async function rollovers({ days, rolloverDays }: FleetOptions): Promise<readonly Cas[]> {
  const root = (generation: number, issuer?: Issuer): Promise<Issuer> =>
    makeCa('CN=Root', { slot: `root ${generation}`, notBefore: START - DAY, ...(issuer && { issuer }) });
  const periods: Cas[] = [];
  let before = await root(0);
  for (let generation = 0; generation * rolloverDays <= days; generation++) {
    const issuer = generation === 0 ? before : await root(generation);
    const links = generation === 0 ? [] : [before, await root(generation, before), await root(generation - 1, issuer)];
    periods.push({ issuer, listed: [issuer, ...links].map(({ der }) => parseCertificate(der)) });
    before = issuer;
  }
  return periods;
}

async function runAgent(
  { days, lifetime, rolloverDays }: FleetOptions,
  cas: readonly Cas[],
  random: Random,
  isDisabledOnce: boolean,
): Promise<FleetResult> {
  const [first] = cas;
  if (first === undefined) throw new Error('no CA');
  const world = new ClientWorld(first.issuer);
  const problems = new Set<string>();
  const counts = { kills: 0, lostAnswers: 0, refusals: 0, fullDisks: 0, disabled: 0, replaced: 0 };
  world.lifetime = lifetime;
  const campaign = START + (days / 2) * DAY;
  let enabledAt: number | undefined;
  world.suggest = () => {
    const issued = world.live?.certificate.notBefore.getTime() ?? Infinity;
    if (world.now < campaign || issued > campaign) return undefined;
    counts.replaced += 1;
    return { start: campaign, end: campaign + 6 * HOUR, retryAfter: 6 * 3600 };
  };
  world.decide = () => {
    if (isDisabledOnce && world.live !== undefined) enabledAt ??= world.now + lifetime * DISABLED;
    if (world.now < (enabledAt ?? 0)) {
      counts.disabled += 1;
      return new ClientError('disabled', 'DEVICE_DISABLED', '403 (device not registered)', { status: 403 });
    }
    if ((world.now - START) % OUTAGE_EVERY < OUTAGE && world.now > START + OUTAGE) {
      counts.refusals += 1;
      return new ClientError('later', 'SERVER_UNREACHABLE', 'nobody listens');
    }
    const drawn = random.next();
    if (drawn < SHARE.lost) {
      counts.lostAnswers += 1;
      return 'lose';
    }
    if (drawn > SHARE.lost + SHARE.busy) return 'issue';
    counts.refusals += 1;
    return new ClientError('later', 'SERVER_UNAVAILABLE', '503', { retryAfter: 30 });
  };
  world.hook = () => {
    const { announced } = parseState(world.text('state.json'));
    if (announced === changeOf(world.live?.version ?? 0, world.text('ca.pem'))) problems.add('a hook without a change');
  };
  const end = START + days * DAY;
  while (world.now < end) {
    world.cas = cas[Math.floor((world.now - START) / (rolloverDays * DAY))] ?? first;
    const keyType = KEY_TYPES[Math.floor((world.now - START) / (7 * DAY)) % KEY_TYPES.length];
    world.attributes = keyType === undefined ? [] : [{ oid: keyType, values: [] }];
    world.isDiskFull = random.next() < SHARE.full;
    if (world.isDiskFull) counts.fullDisks += 1;
    world.lives = random.next() < SHARE.killed ? Math.floor(random.next() * STEPS) : Infinity;
    const hadOne = world.live !== undefined;
    const { next } = await world.step();
    world.assertWhole();
    const killed = world.lives < 0;
    if (killed) counts.kills += 1;
    const after = world.live;
    if (after !== undefined && hadOne && after.certificate.notAfter.getTime() < world.now)
      problems.add('a certificate was over');
    world.now = killed ? world.now + 1000 + random.next() * 60_000 : Math.max(next, world.now + 1000);
  }
  // Pending requests complete.
  world.lives = Infinity;
  world.isDiskFull = false;
  world.decide = () => 'issue';
  world.now = Math.max(world.now, end);
  await world.until(world.now + HOUR);
  const live = world.live?.certificate;
  if (live === undefined || live.notAfter.getTime() < world.now) problems.add('no valid certificate in the end');
  for (const { serialNumber } of world.issued)
    if (!world.hooks.includes(serialNumber)) problems.add(`no hook for ${serialNumber}`);
  const keyTypes = world.issued.filter(
    ({ publicKey }, n) => n > 0 && world.issued[n - 1]?.publicKey.keyType !== publicKey.keyType,
  ).length;
  const certificates = world.issued.length;
  return {
    ...counts,
    certificates,
    keyTypes,
    requests: world.requests.length,
    hooks: world.hooks.length,
    problems: [...problems],
  };
}
