/** `check --fleet`: what a configuration does to the holders of certificates. */
import { loadConfig, type LoadedService } from '../../config/load.ts';
import { describe, EstuaryError } from '../../errors.ts';
import { checkFleet, type Entry, type FleetReport } from '../fleet-check/fleet-check.ts';
import { openConfiguredStoreForReading } from '../open-store.ts';
import { type CommandContext, CommandError, EXIT, type Values } from './command.ts';
import type { CHECK } from './options.ts';

/** Somebody could no longer renew, or would no longer trust the server. */
const STRANDED = 3;
/** Holders that the text names for each code. */
const NAMED = 10;

/** @throws ConfigError; CommandError if the store cannot be read */
export async function runFleetCheck(
  { config, against, json }: Pick<Values<typeof CHECK>, 'config' | 'against' | 'json'>,
  context: CommandContext,
): Promise<number> {
  const now = context.now();
  const next = await loadConfig(config, context.env, now);
  const former = against === undefined ? undefined : await loadConfig(against, context.env, now);
  const report = await checked(next, former, now).catch((error: unknown) => {
    if (!(error instanceof EstuaryError)) throw error;
    throw new CommandError(`the store cannot be read: ${describe(error)}`);
  });
  context.out(json ? `${JSON.stringify(report)}\n` : inText(report));
  return report.stranded.length + report.untrusting.length === 0 ? EXIT.ok : STRANDED;
}

async function checked(next: LoadedService, former: LoadedService | undefined, now: number): Promise<FleetReport> {
  const { config, material } = former ?? next;
  const store = await openConfiguredStoreForReading(config, material);
  return checkFleet(store, next, former, now).finally(() => store.close());
}

function inText({ checked, not_judged, ...lists }: FleetReport): string {
  const groups = (['stranded', 'untrusting', 'unknown', 'recovered'] as const).flatMap((kind) =>
    [...Map.groupBy(lists[kind], ({ code }) => code)].map(([code, entries]) => group(`${kind}: ${code}`, entries)),
  );
  const keys = not_judged.length === 0 ? [] : [`not judged: ${not_judged.join(', ')}\n`];
  const count = `${checked} ${checked === 1 ? 'holder' : 'holders'} checked, ${lists.stranded.length} stranded, ${lists.untrusting.length} untrusting\n`;
  return [...groups, ...keys, count].join('');
}

function group(title: string, entries: readonly Entry[]): string {
  const lines = entries.slice(0, NAMED).map(({ ca, subject, sans, serial, message }) => {
    const name = [subject, ...sans].filter((part) => part !== '').join(' ');
    return `  ${ca}  ${name}  ${serial}: ${message}\n`;
  });
  const more = entries.length > NAMED ? [`  … and ${entries.length - NAMED} more\n`] : [];
  return [`${title} (${entries.length})\n`, ...lines, ...more].join('');
}
