/**
 * Releases of Estuary that do not exist: copies of the built server with a change of the schema, expanded in one and contracted in the next.
 * A column of `otp_use`, which every enrollment with a one-time password writes and every repeated one reads, is given another name.
 */
import { cpSync, globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './root.ts';

/** The column is there twice, and triggers keep both in step: whichever a program writes, the other has it. */
const EXPAND = `
ALTER TABLE otp_use ADD COLUMN answered_at bigint;
UPDATE otp_use SET answered_at = issued_at;
CREATE FUNCTION otp_use_in_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    NEW.answered_at := coalesce(NEW.answered_at, NEW.issued_at);
    NEW.issued_at := NEW.answered_at;
  ELSIF NEW.issued_at IS DISTINCT FROM OLD.issued_at THEN
    NEW.answered_at := NEW.issued_at;
  ELSE
    NEW.issued_at := NEW.answered_at;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER otp_use_in_step BEFORE INSERT OR UPDATE ON otp_use FOR EACH ROW EXECUTE FUNCTION otp_use_in_step();`;

const CONTRACT = `
DROP TRIGGER otp_use_in_step ON otp_use;
DROP FUNCTION otp_use_in_step();
ALTER TABLE otp_use DROP COLUMN issued_at;`;

/** Programs: the one that is built, one that expands and uses the new column alone, and one that contracts. */
export interface Releases {
  readonly expanding: string;
  readonly contracting: string;
  /** Versions of the schema: of the program that is built, and of the two. */
  readonly versions: readonly [now: number, expanded: number, contracted: number];
}

/** @param dir where they are made. @param now the version of the schema */
export function makeReleases(dir: string, now: number): Releases {
  const expand = { sql: EXPAND, serves: now };
  return {
    expanding: release(join(dir, 'expanding'), [expand]),
    contracting: release(join(dir, 'contracting'), [expand, { sql: CONTRACT, serves: now + 1 }]),
    versions: [now, now + 1, now + 2],
  };
}

/** @returns the path of its program */
function release(folder: string, added: readonly object[]): string {
  const dist = join(folder, 'dist');
  cpSync(join(ROOT, 'dist'), dist, { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const change = (text: RegExp, changed: (...found: string[]) => string): void => {
    const files = globSync('*.js', { cwd: dist }).map((name) => join(dist, name));
    const found = files.filter((file) => text.test(readFileSync(file, 'utf8')));
    if (found.length === 0) throw new Error(`no file of the build contains ${text.source}`);
    for (const file of found) writeFileSync(file, readFileSync(file, 'utf8').replace(text, changed));
  };
  change(/otp_id, issued_at, CASE/, () => 'otp_id, answered_at AS issued_at, CASE');
  change(/\(issued_at > @since OR \(issued_at IS NULL/, () => '(answered_at > @since OR (answered_at IS NULL');
  change(/UPDATE otp_use SET issued_at/, () => 'UPDATE otp_use SET answered_at');
  // The migrations of PostgreSQL are objects, those of SQLite are strings.
  change(
    /(var MIGRATIONS = \[\s*\{.+?serves: \d+\s*\})\s*\];/su,
    (_, list) => `${list}, ...${JSON.stringify(added)}];`,
  );
  return join(dist, 'server.js');
}
