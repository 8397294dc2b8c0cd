/** `estuary admin renewal …`: replacement campaigns. */
import { argument, type Entry, EXIT, required, value } from '../command.ts';
import { adminCommand, FORMATS, records } from './admin-command.ts';
import { CERTIFICATE_FILTERS, CERTIFICATE_TIMES, filters } from './certificates.ts';
import { LIST, lists, readFilters } from './list.ts';
import { RENEWALS } from './output.ts';
import { readTime } from './times.ts';

const id = argument('ID of the campaign, as in the list');
const path = (campaign: string): string => `/admin/renewals/${encodeURIComponent(campaign)}`;
const [reading, changing] = [
  ['admin', 'ra', 'auditor'],
  ['admin', 'ra'],
];

export const RENEWAL_COMMANDS: readonly Entry[] = [
  adminCommand(
    'renewal start',
    'Start a campaign: every certificate that matches the filters is replaced by a deadline.',
    {
      ...filters,
      by: required('TIME', 'deadline: a time, or a period such as 5d'),
      reason: value('TEXT', 'why'),
      'explanation-url': value('URL', 'a page with details'),
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
    'List the replacement campaigns.',
    LIST,
    lists({ path: '/admin/renewals', kind: RENEWALS, filters: {}, csv: false }),
    { calls: ['GET /admin/renewals'], roles: reading },
  ),
  adminCommand(
    'renewal show',
    'Show the progress of a campaign, and what is overdue.',
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
      out(`ended the campaign ${values.id}\n`);
      return EXIT.ok;
    },
    { calls: ['DELETE /admin/renewals/{id}'], roles: changing },
  ),
];
