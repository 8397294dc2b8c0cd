/** What a change of the configuration does to the holders of certificates (docs/guides/change-policy.md). */
import { changedKeys } from '../../config/diff.ts';
import type { LoadedService } from '../../config/load.ts';
import type { HeldCertificate, HolderRow } from '../../store/held-certificates.ts';
import type { Store } from '../../store/store.ts';
import { certifies, isSameLeaf, readGiven, serverChain, type ServerChain } from './server-trust.ts';
import { type Reason, Simulation, type Verdict } from './simulation.ts';

export interface Entry extends Reason {
  /** The label. */
  readonly ca: string;
  readonly device: string | null;
  readonly subject: string;
  readonly sans: readonly string[];
  readonly serial: string;
}

export interface FleetReport {
  /** Holders. */
  readonly checked: number;
  readonly stranded: readonly Entry[];
  readonly recovered: readonly Entry[];
  readonly untrusting: readonly Entry[];
  readonly unknown: readonly Entry[];
  /** Changed keys. */
  readonly not_judged: readonly string[];
}

/** Both before and after a change; `before` is absent without `--against`. */
interface Sides {
  readonly before: Simulation | undefined;
  readonly after: Simulation;
}

/** @throws EstuaryError 500 or 503 from the store, or for an unusable configuration */
export async function checkFleet(
  store: Store,
  next: LoadedService,
  former: LoadedService | undefined,
  now: number,
): Promise<FleetReport> {
  const after = await Simulation.create(next, store, now);
  const before = former && (await Simulation.create(former, store, now));
  const untrusting =
    former && before && (await trustJudge(store, serverChain(former, before), serverChain(next, after), now));
  let checked = 0;
  const found = {
    stranded: [] as Entry[],
    recovered: [] as Entry[],
    untrusting: [] as Entry[],
    unknown: [] as Entry[],
  };
  for (let at: number | null = 0; at !== null;) {
    const page = await store.listHeldCertificates(at);
    at = page.next;
    for (const holder of page.holders) {
      const { isJudged, ...entries } = await judge(holder, { before, after }, now);
      if (!isJudged) continue;
      checked++;
      for (const kind of ['stranded', 'recovered', 'unknown'] as const)
        if (entries[kind] !== undefined) found[kind].push(entries[kind]);
      const judgment = untrusting?.(holder);
      if (judgment !== undefined) found[judgment.kind].push(judgment.entry);
    }
  }
  return { checked, ...found, not_judged: former === undefined ? [] : notJudged(former, next) };
}

/** The newest certificate, and every older valid one that authenticated after its replacement. */
function judgedOf({ certificates: [newest, ...older] }: HolderRow, now: number): readonly HeldCertificate[] {
  return [
    newest,
    ...older.filter(
      ({ not_after, last_used_at, replaced_at }) =>
        not_after >= now && last_used_at !== null && replaced_at !== null && last_used_at > replaced_at,
    ),
  ].filter(({ der }) => der.length > 0);
}

interface Judgment extends Partial<Readonly<Record<'stranded' | 'recovered' | 'unknown', Entry>>> {
  readonly isJudged: boolean;
}

async function judge(holder: HolderRow, { before, after }: Sides, now: number): Promise<Judgment> {
  const verdicts = await Promise.all(
    judgedOf(holder, now).map(async (held) => ({
      held,
      old: await before?.renewal(held, holder.label),
      new: await after.renewal(held, holder.label),
    })),
  );
  const couldRenew = verdicts.some(({ old }) => old?.kind === 'renews');
  if (holder.state === null && !couldRenew) return { isJudged: false };
  const lost = verdicts.find((verdict) => verdict.new.kind === 'rejected' && verdict.old?.kind !== 'rejected');
  if (lost?.new.kind === 'rejected') return { isJudged: true, stranded: entryOf(holder, lost.held, lost.new) };
  const [gained] = verdicts.filter(({ old }) => old?.kind === 'rejected');
  const isRecovered = gained !== undefined && verdicts.every((verdict) => verdict.new.kind === 'renews');
  const uncertain = verdicts.flatMap((verdict) => {
    const reason = unknownReason(verdict.held, verdict.new, { before, after });
    return reason === undefined ? [] : [entryOf(holder, verdict.held, reason)];
  });
  return {
    isJudged: true,
    ...(isRecovered && gained.old?.kind === 'rejected' ? { recovered: entryOf(holder, gained.held, gained.old) } : {}),
    ...(uncertain[0] === undefined ? {} : { unknown: uncertain[0] }),
  };
}

function unknownReason(held: HeldCertificate, verdict: Verdict, { before, after }: Sides): Reason | undefined {
  if (verdict.kind === 'unknown') return verdict;
  const rises = after.minVersion === 'TLSv1.3' && before?.minVersion !== 'TLSv1.3';
  if (verdict.kind !== 'renews' || held.tls_version !== null || !rises) return undefined;
  return { code: 'TLS_VERSION_UNKNOWN', message: 'The server has not seen which TLS version the device uses.' };
}

function entryOf(
  { label, device, subject, sans }: Pick<HolderRow, 'label' | 'device' | 'subject' | 'sans'>,
  { serial }: Pick<HeldCertificate, 'serial'>,
  { code, message }: Reason,
): Entry {
  return { ca: label, device, subject, sans, serial, code, message };
}

/** @returns finds a holder whose answers of cacerts no longer certify the server certificate, or who was given none */
async function trustJudge(
  store: Pick<Store, 'listGivenChains'>,
  before: ServerChain | undefined,
  after: ServerChain | undefined,
  now: number,
) {
  /** By number of the answer. */
  const known = new Map<number, { readonly before: boolean; readonly after: boolean }>();
  for (const { position, der } of await store.listGivenChains()) {
    const given = readGiven(der);
    known.set(position, {
      before: before !== undefined && (await certifies(given, before, now)),
      after: after !== undefined && (await certifies(given, after, now)),
    });
  }
  // The same certificate may be sent without those above it.
  const changes = !isSameLeaf(before, after);
  return (holder: HolderRow): { readonly kind: 'untrusting' | 'unknown'; readonly entry: Entry } | undefined => {
    const [newest] = holder.certificates;
    const chains = holder.chains.flatMap((chain) => known.get(chain) ?? []);
    if (chains.length === 0) {
      if (!changes) return undefined;
      const message = 'The device was never given the CA certificates over a connection with its certificate.';
      return { kind: 'unknown', entry: entryOf(holder, newest, { code: 'CACERTS_NOT_GIVEN', message }) };
    }
    if (chains.some(({ after }) => after) || !chains.some(({ before }) => before)) return undefined;
    const message = 'No CA certificate that the device was given certifies the new server certificate.';
    return { kind: 'untrusting', entry: entryOf(holder, newest, { code: 'SERVER_CERTIFICATE_UNTRUSTED', message }) };
  };
}

/** Keys that decide about a simplereenroll, and are judged. */
const JUDGED = /^(ca|label)\b|^tls\.(min_version|certificate|private_key|automatic|client_auth)\b/;
/** Keys that change nothing for a device that renews. */
const WITHOUT_EFFECT =
  /^(profile|log|audit|admin|store|retention|requests|notifications|publication|otp|auth|gssapi|cmc|serverkeygen|fleet)\b|^est\.(csrattrs_require_mtls|fullcmc|fullcmc_require_mtls|serverkeygen)\b/;

const notJudged = (before: LoadedService, after: LoadedService): readonly string[] =>
  changedKeys(before.config, after.config).filter((key) => !JUDGED.test(key) && !WITHOUT_EFFECT.test(key));
