/** Revokes many certificates or disables many devices, after a preview. */
import { useState } from 'preact/hooks';
import { adminPath, ApiError, call, text, toApiError } from '../api/client.ts';
import type { Certificate, Device, Page, QueuedRequest, RequestPage } from '../api/types.ts';
import { parseCsv, writeCsv } from '../shared/csv.ts';
import { Confirm } from '../ui/dialog.tsx';
import { useLoad } from '../ui/load.ts';
import { notify } from '../ui/notices.tsx';
import { Show } from '../ui/states.tsx';
import { RejectionField } from '../ui/text-fields.tsx';
import { counted } from '../shared/words.ts';
import type { Selection } from './filter-words.ts';
import { ReasonField } from './revoke.tsx';

/** Names in a preview. */
const SHOWN = 10;
/** Rows of a call, and devices of a page. */
const [ROWS, PAGE] = [10_000, 1000];

interface BulkProps {
  readonly filter: Selection;
  readonly onClose: () => void;
  readonly done: () => void;
}

interface Count {
  readonly count: number;
  readonly remaining: number;
}

const revoke = (body: object, signal?: AbortSignal): Promise<Count> =>
  call('/admin/certificates/revoke', { method: 'POST', body, signal });

/** Revokes all valid certificates of a selection. @returns how many there were */
export async function revokeAll(filter: Selection, reason: string): Promise<number> {
  const { count } = await revoke({ filter, dry_run: true });
  for (let remaining = count; remaining > 0;) ({ remaining } = await revoke({ filter, count: remaining, reason }));
  return count;
}

export function BulkRevoke({ filter, onClose, done }: BulkProps) {
  const [reason, setReason] = useState('unspecified');
  const { loaded } = useLoad(`revoke ${JSON.stringify(filter)}`, async (signal) => {
    const query = { ...filter, status: 'valid', limit: SHOWN };
    const [{ count }, { items }] = await Promise.all([
      revoke({ filter, dry_run: true }, signal),
      call<Page<Certificate>>('/admin/certificates', { query, signal }),
    ]);
    return { count, names: items.map(({ subject, serial }) => (subject === '' ? serial : subject)) };
  });
  const count = loaded.state === 'ready' ? loaded.value.count : 0;
  return (
    <Confirm
      title="Revoke these certificates?"
      verb={`Revoke ${counted(count, 'certificate')}`}
      danger
      disabled={count === 0}
      onClose={onClose}
      run={async () => {
        notify(`Revoked: ${counted(await revokeAll(filter, reason), 'certificate')}.`);
        done();
      }}
    >
      <Show of={loaded} lines={3}>
        {({ names }) => (
          <>
            <p>
              {count === 0
                ? 'No valid certificate matches.'
                : 'They can no longer authenticate, and will be in the next CRLs. You can undo only a hold.'}
            </p>
            <Sample names={names} count={count} />
          </>
        )}
      </Show>
      <ReasonField reason={reason} choose={setReason} />
    </Confirm>
  );
}

interface DecisionProps {
  readonly decision: 'approve' | 'reject';
  readonly requests: readonly QueuedRequest[];
  readonly onClose: () => void;
  readonly done: () => void;
}

/** Approves or rejects selected requests, each for itself. */
export function BulkDecide({ decision, requests, onClose, done }: DecisionProps) {
  const [reason, setReason] = useState('');
  const [decided, setDecided] = useState(0);
  const isApproval = decision === 'approve';
  const verb = isApproval ? 'Approve' : 'Reject';
  const run = async () => {
    const [failed, waiting]: [string[], string[]] = [[], []];
    for (const { id, subject } of requests) {
      const body = isApproval ? {} : { reason };
      await call<RequestPage>(adminPath('requests', id, decision), { method: 'POST', body }).then(
        ({ status }) => {
          if (status === 'pending') waiting.push(id);
        },
        (error: unknown) => {
          failed.push(`${subject}: ${toApiError(error).message}`);
        },
      );
      setDecided((n) => n + 1);
    }
    done();
    const words = `${isApproval ? 'Approved' : 'Rejected'}: ${counted(requests.length - failed.length, 'request')}.`;
    const others = waiting.length === 0 ? '' : ` ${waiting.length} of them need another administrator.`;
    const [problem] = failed;
    notify(words + others + (problem === undefined ? '' : ` Not decided: ${failed.length}. ${problem}`));
  };
  return (
    <Confirm
      title={`${verb} these requests?`}
      verb={`${verb} ${counted(requests.length, 'request')}`}
      danger={!isApproval}
      onClose={onClose}
      run={run}
    >
      <p>
        {isApproval
          ? 'Each requester gets its certificate at its next request, or after the approval of another administrator.'
          : 'The requesters get no certificates. Their next requests receive the reason.'}
      </p>
      <Sample
        names={requests.map(({ subject, requester }) => `${subject || 'no subject'}, by ${requester}`)}
        count={requests.length}
      />
      {!isApproval && <RejectionField hint="The devices receive this text." reason={reason} choose={setReason} />}
      {decided > 0 && (
        <p role="status">
          {decided} of {counted(requests.length, 'request')} decided
        </p>
      )}
    </Confirm>
  );
}

export function BulkDisable({ filter, onClose, done }: BulkProps) {
  const { loaded } = useLoad(`disable ${JSON.stringify(filter)}`, (signal) => enabledDevices(filter, signal));
  const devices = loaded.state === 'ready' ? loaded.value : [];
  return (
    <Confirm
      title="Disable these devices?"
      verb={`Disable ${counted(devices.length, 'device')}`}
      danger
      disabled={devices.length === 0}
      onClose={onClose}
      run={async () => {
        await disable(devices);
        notify(`Disabled: ${counted(devices.length, 'device')}.`);
        done();
      }}
    >
      <Show of={loaded} lines={3}>
        {(all) => (
          <>
            <p>
              {all.length === 0
                ? 'No enabled device matches.'
                : 'They get no more certificates. Their certificates stay valid.'}
            </p>
            <Sample names={all.map(({ id }) => id)} count={all.length} />
          </>
        )}
      </Show>
    </Confirm>
  );
}

function Sample({ names, count }: { readonly names: readonly string[]; readonly count: number }) {
  return (
    <ul class="names">
      {names.slice(0, SHOWN).map((name, n) => (
        <li key={n}>{name}</li>
      ))}
      {count > SHOWN && <li>and {(count - SHOWN).toLocaleString('en')} more</li>}
    </ul>
  );
}

async function enabledDevices(filter: Selection, signal: AbortSignal): Promise<readonly Device[]> {
  const devices: Device[] = [];
  for (let cursor: string | undefined; ;) {
    const query = { ...filter, enabled: 'true', limit: PAGE, cursor };
    const page = await call<Page<Device>>('/admin/devices', { query, signal });
    devices.push(...page.items);
    if (page.next_cursor === null) return devices;
    cursor = page.next_cursor;
  }
}

/** @throws ApiError with the first rejected row, after all others */
async function disable(devices: readonly Device[]): Promise<void> {
  for (let from = 0; from < devices.length; from += ROWS) {
    const rows = devices.slice(from, from + ROWS).map(({ id, ca }) => [id, ca ?? '', 'false']);
    const csv = writeCsv([['id', 'ca', 'enabled'], ...rows]);
    const answer = await text('/admin/devices', { method: 'POST', csv, query: { mode: 'upsert' }, accept: 'text/csv' });
    const { header, rows: answers } = parseCsv(answer);
    const [code, message] = [header.indexOf('code'), header.indexOf('message')];
    const bad = answers.find((fields) => (fields[code] ?? '') !== '');
    if (bad !== undefined) throw new ApiError(400, bad[code] ?? '', bad[message] ?? '');
  }
}
