/** The certificates that were issued: a search over all of them. */
import type { Certificate } from '../api/types.ts';
import { route } from '../router.ts';
import { Badge, Heading, Time } from '../ui/bits.tsx';
import { Filters, type Filter } from '../ui/fields.tsx';
import { RecordList, type Column } from '../ui/table.tsx';
import { certificateLink } from './certificate-link.ts';
import { CertificateDetails } from './certificate.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'subject', label: 'Subject', placeholder: 'any part' },
  { name: 'san', label: 'Other names', placeholder: 'any part of one' },
  { name: 'serial', label: 'Serial number', placeholder: 'the whole, hex' },
  { name: 'requester', label: 'Requester', placeholder: 'the whole' },
  { name: 'device', label: 'Device', placeholder: 'the whole id' },
  { name: 'ca', label: 'CA' },
  { name: 'status', label: 'State', options: ['valid', 'revoked', 'expired'] },
  { name: 'issued_after', label: 'Issued after', date: true },
  { name: 'expires_before', label: 'Ends before', date: true },
];

export const CERTIFICATE_COLUMNS: readonly Column<Certificate>[] = [
  {
    head: 'Subject',
    kind: 'name',
    cell: (one) => <a href={certificateLink(one)}>{one.subject === '' ? 'no subject' : one.subject}</a>,
  },
  { head: 'State', cell: ({ status }) => <Badge of={status} /> },
  { head: 'Other names', cell: ({ sans }) => <Few of={sans} />, wide: true, kind: 'name' },
  { head: 'Requester', cell: ({ requester }) => requester, wide: true, kind: 'name' },
  { head: 'CA', cell: ({ ca, label }) => label ?? ca, wide: true },
  { head: 'Issued', cell: ({ not_before }) => <Time at={not_before} />, wide: true },
  { head: 'Ends', cell: ({ not_after }) => <Time at={not_after} /> },
];

/** The first ones; all stand on the thing's own page. */
function Few({ of }: { readonly of: readonly string[] }) {
  const rest = of.length - 2;
  return (
    <>
      {of.slice(0, 2).map((name) => (
        <span key={name} class="line" title={name}>
          {name}
        </span>
      ))}
      {rest > 0 && <span class="fine">and {rest} more</span>}
    </>
  );
}

export function Certificates({ id }: { readonly id: string | undefined }) {
  if (id !== undefined) return <CertificateDetails serial={id} />;
  return (
    <>
      <Heading title="Certificates" lead="All that were issued, the newest first." />
      <Filters of={FILTERS} search="Certificates" />
      <RecordList<Certificate>
        caption="Certificates"
        path="/admin/certificates"
        query={{ order: 'desc', ...route.value.query }}
        columns={CERTIFICATE_COLUMNS}
        id={({ ca, serial }) => `${ca} ${serial}`}
        file="certificates.csv"
        events={['certificate.*']}
        empty="No certificate fits this search."
      />
    </>
  );
}
