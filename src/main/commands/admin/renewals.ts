/** `estuary admin renewal …`: replacement campaigns. */
import { argument, type Entry, flag, required, value } from '../command.ts';
import { queryOf, recordCommand } from './admin-command.ts';
import { filters } from './certificates.ts';
import { listCommand } from './list.ts';
import { RENEWALS } from './output.ts';
import { readTime } from './times.ts';

const id = argument('ID of the campaign, as in the list');
const reading = ['admin', 'ra', 'auditor'];
const changing = ['admin', 'ra'];
const dryRun = { 'dry-run': flag('count the matching certificates, and start nothing') };
const START = {
  ...filters,
  by: required('TIME', 'deadline: a time, or a period such as 5d'),
  reason: value('TEXT', 'why'),
  'explanation-url': value('URL', 'a page with details'),
  ...dryRun,
};

export const RENEWAL_COMMANDS: readonly Entry[] = [
  recordCommand(
    'renewal start',
    'Start a campaign: every certificate that matches the filters is replaced by a deadline.',
    {
      call: 'POST /admin/renewals',
      roles: changing,
      options: START,
      body: (values, now) => ({
        filter: queryOf(filters, values, now),
        by: readTime('--by', values.by, now, 1),
        reason: values.reason,
        explanation_url: values['explanation-url'],
      }),
      query: (values, now) => queryOf(dryRun, values, now),
    },
  ),
  listCommand('renewal list', 'List the replacement campaigns.', {
    roles: reading,
    path: '/admin/renewals',
    kind: RENEWALS,
    csv: false,
  }),
  recordCommand('renewal show', 'Show the progress of a campaign, and what is overdue.', {
    call: 'GET /admin/renewals/{id}',
    roles: reading,
    options: { id },
  }),
  recordCommand('renewal stop', 'End a campaign.', {
    call: 'DELETE /admin/renewals/{id}',
    roles: changing,
    options: { id },
    done: (values) => `ended the campaign ${values.id}`,
  }),
];
