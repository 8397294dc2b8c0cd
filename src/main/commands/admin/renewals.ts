/** `estuary admin renewal …`: replacement campaigns. */
import { argument, type Entry, EXIT, required, value } from '../command.ts';
import { adminCommand, FORMATS, records } from './admin-command.ts';
import { CERTIFICATE_FILTERS, CERTIFICATE_TIMES, filters } from './certificates.ts';
import { LIST, lists, readFilters } from './list.ts';
import { RENEWALS } from './output.ts';
import { readTime } from './times.ts';

const id = argument('as the list shows it');
const path = (campaign: string): string => `/admin/renewals/${encodeURIComponent(campaign)}`;
const [reading, changing] = [
  ['admin', 'ra', 'auditor'],
  ['admin', 'ra'],
];

export const RENEWAL_COMMANDS: readonly Entry[] = [
  adminCommand(
    'renewal start',
    'Have every certificate that filters find replaced by a time.',
    {
      ...filters,
      by: required('TIME', 'until when: a time, or from now, such as 5d'),
      reason: value('TEXT', 'why'),
      'explanation-url': value('URL', 'a page that says more'),
      ...FORMATS,
    },
    records((values, now) => ({
      method: 'POST',
      path: '/admin/renewals',
      body: {
        filter: readFilters({ filters: CERTIFICATE_FILTERS, times: CERTIFICATE_TIMES }, { ...values }, now),
        by: readTime('--by', values.by, now, 1),
        ...(values.reason === undefined ? {} : { reason: values.reason }),
        ...(values['explanation-url'] === undefined ? {} : { explanation_url: values['explanation-url'] }),
      },
    })),
    { calls: ['POST /admin/renewals'], roles: changing },
  ),
  adminCommand(
    'renewal list',
    'The replacement campaigns.',
    LIST,
    lists({ path: '/admin/renewals', kind: RENEWALS, filters: {}, csv: false }),
    { calls: ['GET /admin/renewals'], roles: reading },
  ),
  adminCommand(
    'renewal show',
    'How far a campaign is, and what is overdue.',
    { id, ...FORMATS },
    records((values) => ({ path: path(values.id) })),
    { calls: ['GET /admin/renewals/{id}'], roles: reading },
  ),
  adminCommand(
    'renewal stop',
    'End a campaign.',
    { id },
    async (values, { client, out }) => {
      await client.record('DELETE', path(values.id));
      out(`campaign ${values.id} is ended\n`);
      return EXIT.ok;
    },
    { calls: ['DELETE /admin/renewals/{id}'], roles: changing },
  ),
];
