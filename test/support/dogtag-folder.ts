/** What `scripts/dogtag up` leaves behind for the tests. */
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export const DOGTAG_FOLDER =
  process.env['ESTUARY_DOGTAG_DIR'] ??
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'estuary', 'dogtag');

export interface DogtagDescription {
  /** `https://localhost:…`, this machine's end of the relay into Dogtag's network. */
  readonly url: string;
  /** Path of the CA's certificate, PEM. */
  readonly ca: string;
  /** Path of the certificate of an agent of CA and KRA, PEM. */
  readonly agent_certificate: string;
  /** Path of the agent's key, PEM. */
  readonly agent_key: string;
  /** Where its files are. */
  readonly tree: string;
  /** The first process inside. */
  readonly pid: number;
}

/** @throws Error when Dogtag was not started */
export function readDescription(): DogtagDescription {
  const value: unknown = JSON.parse(readFileSync(join(DOGTAG_FOLDER, 'dogtag.json'), 'utf8'));
  const fields = new Map<string, unknown>(Object.entries(value ?? {}));
  const text = (name: string): string => {
    const found = fields.get(name);
    if (typeof found !== 'string') throw new TypeError(`dogtag.json: no ${name}`);
    return found;
  };
  return {
    url: text('url'),
    ca: text('ca'),
    agent_certificate: text('agent_certificate'),
    agent_key: text('agent_key'),
    tree: text('tree'),
    pid: Number(fields.get('pid')),
  };
}

/** Why there is no Dogtag to test with; undefined when there is. */
export function missingDogtag(): string | undefined {
  if (process.getuid?.() !== 0) return 'a real Dogtag needs root';
  try {
    process.kill(readDescription().pid, 0);
    return undefined;
  } catch {
    return 'no Dogtag runs (scripts/dogtag up, or scripts/test)';
  }
}
