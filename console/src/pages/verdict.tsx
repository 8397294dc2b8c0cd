/** What the server would do with a request: a dry run. */
import { adminPath, call } from '../api/client.ts';
import type { RequestPage, RequestVerdictRecord, Verdict } from '../api/types.ts';
import { Badge, Facts, Moment, Names, Panel } from '../ui/bits.tsx';
import { useEvents } from '../ui/events.ts';
import { useLoad } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';

const WORDS: Readonly<Record<Verdict['verdict'], string>> = {
  issue: 'A certificate would be issued.',
  queue: 'It would need an approval.',
  refuse: 'It would be rejected.',
};

export function VerdictFacts({ of, words = WORDS[of.verdict] }: { readonly of: Verdict; readonly words?: string }) {
  return (
    <>
      <p>
        <Badge of={of.verdict === 'refuse' ? 'rejected' : of.verdict} /> {words}
      </p>
      <Facts
        of={[
          of.code !== undefined && ['Rule', <code>{of.code}</code>],
          of.message !== undefined && ['Why', of.message],
          ['Subject', of.subject],
          ['Other names', <Names of={of.sans} />],
          of.verdict !== 'refuse' && ['Would expire', <Moment at={of.not_after} />],
        ]}
      />
    </>
  );
}

/** The server authenticated the requester before it queued the request. */
export function RequestVerdict({ request: { id, status } }: { readonly request: RequestPage }) {
  const { loaded, again } = useLoad(`verdict ${id} ${status}`, (signal) =>
    call<RequestVerdictRecord>(adminPath('requests', id, 'check'), { signal }),
  );
  useEvents(['request.*', 'config.*'], again);
  if (loaded.state === 'failed' && loaded.error.status === 409)
    return (
      <Panel title="What the policy says">
        <p>
          <Badge of="unknown" /> The result is known only at the next request of the device.
        </p>
        <p class="fine">
          {sentence(loaded.error.message)} The request passed all checks when it arrived. The server checks it again
          before it signs.
        </p>
      </Panel>
    );
  return (
    <Panel title="What the policy says">
      <Show of={loaded} again={again} lines={3}>
        {(verdict) => (
          <>
            <VerdictFacts of={verdict} words={wordsOf(verdict)} />
            <Facts of={[['Approvals', `${verdict.approvals.given} of ${verdict.approvals.needed}`]]} />
          </>
        )}
      </Show>
    </Panel>
  );
}

const wordsOf = ({ verdict, approvals: { given, needed } }: RequestVerdictRecord): string => {
  if (verdict === 'refuse') return 'It would be rejected, even if approved.';
  const missing = needed - given;
  if (missing <= 0) return 'It is issued at the next request of the device.';
  return missing === 1 ? 'With one approval it would be issued.' : `With ${missing} approvals it would be issued.`;
};

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
