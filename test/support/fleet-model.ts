/** A simple model of the states of holders, which knows only the table of docs/guides/fleet.md. */

export interface Held {
  readonly name: string;
  readonly serial: string;
  /** When it was issued, and its renewal window. */
  readonly at: number;
  readonly window: { readonly start: number; readonly end: number };
  readonly notAfter: number;
  readonly renewed: Held | undefined;
  revoked: boolean;
  readonly uses: { readonly at: number; readonly connected: number }[];
}

interface Facts {
  /** Oldest first. */
  readonly all: readonly Held[];
  /** Times of the holder's rejected renewals. */
  readonly rejections: readonly number[];
  readonly isQueued?: boolean;
  /** Milliseconds after which an expired holder is forgotten. */
  readonly forget: number;
}

const MINUTE = 60_000;

/** What the table says of a holder; undefined: it is in no list. */
export function expectedState(name: string, facts: Facts, now: number): string | undefined {
  const { all, rejections, isQueued = false, forget } = facts;
  const own = all.filter((one) => one.name === name);
  const unexpired = own.filter(({ notAfter }) => notAfter >= now);
  const newest = own.findLast(({ revoked }) => !revoked);
  if (newest === undefined || (unexpired.length > 0 && unexpired.every(({ revoked }) => revoked))) return undefined;
  // It was renewed under another name.
  if (all.some((one) => one.renewed === newest && one.name !== name && !one.revoked)) return undefined;
  const { notAfter, window } = newest;
  if (now > notAfter) return now > notAfter + forget ? undefined : 'expired';
  if (rejections.some((at) => at > newest.at)) return 'failing';
  if (isQueued) return 'waiting';
  if (isStuck(newest, all)) return 'stuck';
  if (now >= window.end) return 'late';
  return now >= window.start ? 'due' : 'ok';
}

function isStuck({ at, renewed, uses }: Held, all: readonly Held[]): boolean {
  if (renewed === undefined || uses.length > 0) return false;
  if (renewed.uses.some(({ connected }) => connected >= at + MINUTE)) return true;
  const successors = all.filter((one) => one.renewed === renewed);
  const lastUse = Math.max(-Infinity, ...successors.flatMap((successor) => successor.uses.map((use) => use.at)));
  return successors.filter((successor) => successor.at > lastUse).length >= 3;
}
