/** What the server would do with a request, asked without doing it. */
import { call } from '../api/client.ts';
import type { RequestPage, Verdict } from '../api/types.ts';
import { Badge, Facts, Moment, Names, Panel } from '../ui/bits.tsx';
import { useLoad } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';

const WORDS: Readonly<Record<Verdict['verdict'], string>> = {
  issue: 'A certificate would be issued.',
  queue: 'It would wait for an approval.',
  refuse: 'It would be refused.',
};

export function VerdictFacts({ of }: { readonly of: Verdict }) {
  return (
    <>
      <p>
        <Badge of={of.verdict} /> {WORDS[of.verdict]}
      </p>
      <Facts
        of={[
          of.code !== undefined && ['Rule', <code>{of.code}</code>],
          of.message !== undefined && ['Why', of.message],
          ['Subject', of.subject],
          ['Other names', <Names of={of.sans} />],
          of.verdict !== 'refuse' && ['Would end', <Moment at={of.not_after} />],
        ]}
      />
    </>
  );
}

/** For whom the check takes the sender; undefined: it has to show its certificate, which the queue does not keep. */
function senderOf({ device, method, requester }: RequestPage): Readonly<Record<string, string>> | undefined {
  if (device !== null) return { device };
  if (method === 'otp') return { client_id: requester };
  return method === 'gssapi' ? { principal: requester } : undefined;
}

export function RequestVerdict({ request }: { readonly request: RequestPage }) {
  const as = senderOf(request);
  const isCsr = request.csr.includes('CERTIFICATE REQUEST');
  if (as === undefined || !isCsr)
    return (
      <Panel title="What the policy says">
        <p class="fine">
          It passed every check when it came. What it would come to now can be asked on the page Policy, with the
          requester’s certificate.
        </p>
      </Panel>
    );
  return <Asked request={request} as={as} />;
}

function Asked({ request, as }: { readonly request: RequestPage; readonly as: Readonly<Record<string, string>> }) {
  const { loaded, again } = useLoad(`verdict ${request.id}`, (signal) =>
    call<Verdict>('/admin/check', { method: 'POST', body: { ca: request.ca, csr: request.csr, as }, signal }),
  );
  return (
    <Panel title="What the policy says">
      <Show of={loaded} again={again} lines={3}>
        {(verdict) => <VerdictFacts of={verdict} />}
      </Show>
    </Panel>
  );
}
