/** `estuary admin fleet …`: who is about to lose its certificate. */
import { HOLDER_STATES } from '../../../store/holder-state.ts';
import { type Entry, time, value } from '../command.ts';
import { recordCommand } from './admin-command.ts';
import { listCommand } from './list.ts';
import { HOLDERS } from './output.ts';

const FILTERS = {
  state: value('STATE', HOLDER_STATES.join(', '), HOLDER_STATES),
  'ca-label': value('LABEL', "a CA's label"),
  device: value('ID', 'ID of a device'),
  subject: value('TEXT', 'a part of the subject'),
  'expires-before': time('the newest certificate expires before this time, or within a period such as 7d', 1),
  'seen-before': time('not seen since this time, or for a period such as 7d', -1),
};

export const FLEET_COMMANDS: readonly Entry[] = [
  listCommand('fleet list', 'List the holders of certificates, the next expiry first.', {
    roles: ['admin', 'ra', 'auditor'],
    path: '/admin/fleet',
    filters: FILTERS,
    kind: HOLDERS,
    order: 'asc',
    first: 'next expiry first, ',
  }),
  recordCommand('fleet summary', 'Count the holders of certificates by state.', {
    call: 'GET /admin/fleet/summary',
    roles: ['admin', 'ra', 'auditor', 'operator'],
    options: {},
  }),
];
