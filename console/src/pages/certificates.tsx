/** Lists all issued certificates, with filters. */
import { useState } from 'preact/hooks';
import type { Certificate } from '../api/types.ts';
import { link, route } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { Badge, Heading, Time } from '../ui/bits.tsx';
import type { Filter } from '../ui/fields.tsx';
import { RecordList, Table, type Column, type TableProps } from '../ui/table.tsx';
import { BulkRevoke } from './bulk.tsx';
import { certificateLink } from './certificate-link.ts';
import { CertificateDetails } from './certificate.tsx';
import { isSelective, type Selection, selectionOf } from './filter-words.ts';

const FILTERS: readonly Filter[] = [
  { name: 'subject', label: 'Subject', placeholder: 'any part' },
  { name: 'san', label: 'Other names', placeholder: 'any part of one' },
  { name: 'serial', label: 'Serial number', placeholder: 'exact, hex' },
  { name: 'fingerprint_sha256', label: 'Fingerprint', placeholder: 'SHA-256, hex' },
  { name: 'requester', label: 'Requester', placeholder: 'exact' },
  { name: 'device', label: 'Device', placeholder: 'exact ID' },
  { name: 'status', label: 'State', options: ['valid', 'revoked', 'expired'] },
  { name: 'ca', label: 'CA', kind: 'label' },
  { name: 'issued_after', label: 'Issued after', kind: 'date' },
  { name: 'expires_before', label: 'Expires before', kind: 'date' },
];

const CERTIFICATE_COLUMNS: readonly Column<Certificate>[] = [
  {
    head: 'Subject',
    kind: 'name',
    cell: (certificate) => <a href={certificateLink(certificate)}>{certificate.subject || 'no subject'}</a>,
  },
  { head: 'State', kind: 'status', cell: ({ status }) => <Badge of={status} /> },
  { head: 'Other names', cell: ({ sans }) => sans.map(shortName).join(', '), wide: true, kind: 'name' },
  { head: 'Requester', cell: ({ requester }) => requester, kind: 'name', extra: true },
  { head: 'CA', cell: ({ ca, label }) => label ?? ca, wide: true },
  { head: 'Issued', cell: ({ not_before }) => <Time at={not_before} />, wide: true, sorted: true },
  { head: 'Expires', cell: ({ not_after }) => <Time at={not_after} /> },
  { head: 'Serial number', cell: ({ serial }) => <code>{serial}</code>, extra: true },
  { head: 'Device', cell: ({ device }) => device, extra: true },
  { head: 'Authenticated by', cell: ({ method }) => method, extra: true },
  { head: 'Revoked', cell: ({ revoked_at }) => <Time at={revoked_at} />, extra: true },
  { head: 'Reason', cell: ({ reason }) => reason, extra: true },
];

export function CertificateTable({ caption, items }: Pick<TableProps<Certificate>, 'caption' | 'items'>) {
  return (
    <Table caption={caption} columns={CERTIFICATE_COLUMNS} items={items} id={({ ca, serial }) => `${ca} ${serial}`} />
  );
}

/** Most names are DNS names, so lists leave out the type. */
const shortName = (name: string): string => name.replace(/^DNS:/, '');

export function Certificates({ id }: { readonly id: string | undefined }) {
  const [isRevoking, setRevoking] = useState(false);
  const [version, setVersion] = useState(0);
  if (id !== undefined) return <CertificateDetails serial={id} />;
  const selection = selectionOf(route.value.query);
  return (
    <>
      <Heading title="Certificates" lead="All issued certificates." />
      <RecordList<Certificate>
        caption="Certificates"
        path="/admin/certificates"
        query={{ order: 'desc', ...route.value.query }}
        filters={FILTERS}
        columns={CERTIFICATE_COLUMNS}
        id={({ ca, serial }) => `${ca} ${serial}`}
        file="certificates.csv"
        version={version}
        tools={
          may('ra') &&
          isSelective(selection) && <SelectionTools selection={selection} revoke={() => setRevoking(true)} />
        }
        events={['certificate.*']}
        empty="No certificate matches."
      />
      {isRevoking && (
        <BulkRevoke filter={selection} onClose={() => setRevoking(false)} done={() => setVersion((n) => n + 1)} />
      )}
    </>
  );
}

/** Actions on all certificates that match the filters. */
function SelectionTools({ selection, revoke }: { readonly selection: Selection; readonly revoke: () => void }) {
  return (
    <>
      <a class="button" href={link(['campaigns', 'new'], selection)}>
        Replace …
      </a>
      <button type="button" onClick={revoke}>
        Revoke …
      </button>
    </>
  );
}
