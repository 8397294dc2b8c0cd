import { EST_PORT, estUrl, WELL_KNOWN } from '../../../ready-lines.ts';
import { UsageError } from '../command.ts';
import type { Connection } from './connection.ts';

/**
 * Where devices enrol: the admin API does not tell, so that it is a guess where nobody says it.
 *
 * @throws UsageError
 */
export function estUrlOf(
  option: string | undefined,
  { origin, estUrl: known }: Pick<Connection, 'origin' | 'estUrl'>,
): { readonly url: string; readonly isGuessed: boolean } {
  const text = option ?? known;
  if (text === undefined)
    return { url: `https://${new URL(origin).hostname}:${EST_PORT}${WELL_KNOWN}`, isGuessed: true };
  const url = estUrl(text);
  if (url === undefined)
    throw new UsageError(`--est-url: "${text}" is no address of the kind https://est.example.com:9443/.well-known/est`);
  return { url, isGuessed: false };
}
