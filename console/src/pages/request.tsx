/** One request: its requester, what the policy says, what differs from the last certificate, and the decision. */
import { useState } from 'preact/hooks';
import { adminPath, call, order } from '../api/client.ts';
import type { RequestPage } from '../api/types.ts';
import { link } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { Badge, Facts, Heading, Moment, Names, Panel } from '../ui/bits.tsx';
import { Confirm } from '../ui/dialog.tsx';
import { useRecord } from '../ui/load.ts';
import { notify } from '../ui/notices.tsx';
import { Show } from '../ui/states.tsx';
import { RejectionField } from '../ui/text-fields.tsx';
import { Differences } from './differences.tsx';
import { History } from './history.tsx';
import { RequestVerdict } from './verdict.tsx';

export function RequestDetails({ id }: { readonly id: string }) {
  const { loaded, again } = useRecord<RequestPage>(adminPath('requests', id), ['request.*', 'certificate.*']);
  return (
    <>
      {loaded.state !== 'ready' && <Heading title="Request" />}
      <Show of={loaded} again={again}>
        {(request) => <Details request={request} changed={again} />}
      </Show>
    </>
  );
}

/** Whether the policy still decides: it is pending here, or approved and not issued yet. */
const isUndecided = ({ status, ca_reference }: RequestPage): boolean =>
  (status === 'pending' && ca_reference === null) || status === 'approved';

function Details({ request, changed }: { readonly request: RequestPage; readonly changed: () => void }) {
  const [asking, setAsking] = useState<'approve' | 'reject'>();
  const isOpen = request.status === 'pending' && request.ca_reference === null && may('ra');
  const close = () => setAsking(undefined);
  return (
    <>
      <Heading title={request.subject || 'No subject'} lead={<Badge of={request.status} />}>
        {isOpen && (
          <>
            <button type="button" onClick={() => setAsking('reject')}>
              Reject …
            </button>
            <button type="button" class="primary" onClick={() => setAsking('approve')}>
              Approve …
            </button>
          </>
        )}
      </Heading>
      <div class="columns">
        <Panel title="Request">
          <Facts
            of={[
              ['Subject', request.subject],
              ['Other names', <Names of={request.sans} />],
              ['Key', request.key_type],
              ['SHA-256 of the key', <code>{request.spki_sha256 ?? 'the server generates the key'}</code>],
              ['CA', request.ca],
              ['Operation', request.operation],
              ['Received', <Moment at={request.created_at} />],
            ]}
          />
        </Panel>
        <Panel title="Requester">
          <Facts
            of={[
              ['Requester', request.requester],
              ['Authenticated by', request.method],
              ['Certificate issuer', request.requester_issuer],
              ['Certificate names', <Names of={request.requester_sans} />],
              [
                'Device',
                request.device !== null && <a href={link(['devices', 'id', request.device])}>{request.device}</a>,
              ],
            ]}
          />
        </Panel>
        <Panel title="Decision">
          <Facts
            of={[
              ['State', <Badge of={request.status} />],
              ['Decided by', <Names of={request.decided_by} />],
              ['Decided', <Moment at={request.decided_at} />],
              ['Reason', request.reason],
              [
                'Certificate',
                request.serial !== null && (
                  <a href={link(['certificates', request.serial], { ca: request.ca })}>{request.serial}</a>
                ),
              ],
              request.ca_reference !== null && [
                'Upstream request',
                `${request.ca_reference}. The agents of that CA decide.`,
              ],
            ]}
          />
        </Panel>
        {isUndecided(request) && <RequestVerdict request={request} />}
      </div>
      <Differences request={request} />
      <History request={request.id} />
      {asking === 'approve' && <Approve request={request} onClose={close} done={changed} />}
      {asking === 'reject' && <Reject request={request} onClose={close} done={changed} />}
    </>
  );
}

interface DecisionProps {
  readonly request: RequestPage;
  readonly onClose: () => void;
  readonly done: () => void;
}

function Approve({ request, onClose, done }: DecisionProps) {
  const run = async () => {
    const after = await call<RequestPage>(adminPath('requests', request.id, 'approve'), { method: 'POST', body: {} });
    notify(
      after.status === 'pending'
        ? 'Your approval is recorded. Another administrator must approve the request.'
        : 'Approved. The device gets its certificate at its next request.',
    );
    done();
  };
  return (
    <Confirm title="Approve this request?" verb="Approve" onClose={onClose} run={run}>
      <p>
        <strong>{request.requester}</strong> gets a certificate of <strong>{request.ca}</strong> for{' '}
        <strong>{request.subject || 'no subject'}</strong> at its next request. If the CA requires more approvals, other
        administrators must approve, too.
      </p>
      {request.sans.length > 0 && (
        <>
          <p>The certificate also has these names:</p>
          <Names of={request.sans} />
        </>
      )}
    </Confirm>
  );
}

function Reject({ request, onClose, done }: DecisionProps) {
  const [reason, setReason] = useState('');
  const run = async () => {
    await order(adminPath('requests', request.id, 'reject'), { method: 'POST', body: { reason } });
    notify('Rejected.');
    done();
  };
  return (
    <Confirm title="Reject this request?" verb="Reject" danger onClose={onClose} run={run}>
      <p>
        <strong>{request.requester}</strong> gets no certificate. Its next request receives the reason.
      </p>
      <RejectionField hint="The device receives this text." reason={reason} choose={setReason} />
    </Confirm>
  );
}
