/** What a profile of Dogtag does with a request, as Dogtag itself describes it to its agents. */
import { EstuaryError, failed, isUnavailable } from '../../errors.ts';
import { readAnswer } from './answers.ts';
import { textOf } from './json.ts';
import type { Replicas } from './replicas.ts';

/**
 * Whether a profile issues at once: one with an authenticator does, or refuses; one without leaves every request to the
 * agents. It is asked each time, since an administrator there may change it at any time.
 *
 * @throws EstuaryError 500 `CA_PROFILE_UNREADABLE` when the agent may not read it; 503
 */
export async function issuesAtOnce(replicas: Replicas, profile: string): Promise<boolean> {
  try {
    return await replicas.read((replica) =>
      replica.session(async (call) => {
        // Profiles are shown in a session with a login only.
        readAnswer(await call({ method: 'GET', path: '/ca/rest/account/login' }));
        const shown = readAnswer(await call({ method: 'GET', path: `/ca/rest/profiles/${profile}` }));
        const authenticator = textOf(shown, 'authenticatorId') ?? '';
        return authenticator.trim() !== '';
      }),
    );
  } catch (error) {
    if (!(error instanceof EstuaryError) || isUnavailable(error)) throw error;
    throw failed('CA_PROFILE_UNREADABLE', 'The CA does not say whether it issues at once.', {
      detail: `the profile ${profile}: ${error.detail ?? error.message}`,
      cause: error,
    });
  }
}
