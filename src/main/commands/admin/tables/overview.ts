/** `estuary admin overview|statistics|history|configuration|events`: what is and what was, at a glance. */
import { value, type Entry } from '../../command.ts';
import { adminCommand, FORMATS } from '../admin-command.ts';
import { records } from '../show.ts';

const seeing = ['admin', 'ra', 'auditor', 'operator'];

export const OVERVIEW_COMMANDS: readonly Entry[] = [
  adminCommand(
    'overview',
    'The state of the service on one page, as far as the caller may see it.',
    FORMATS,
    () => Promise.resolve(records(() => ({ path: '/admin/overview' }))),
    { calls: ['GET /admin/overview'], roles: seeing },
  ),
  adminCommand(
    'statistics',
    'Issuance, renewals and refusals over time.',
    {
      since: value('TIME', 'of this time and later; 7d: of the last week'),
      until: value('TIME', 'of this time and before'),
      by: value('INTERVAL', 'hour, the default, or day', ['hour', 'day']),
      'ca-label': value('LABEL', "a CA's label"),
      ...FORMATS,
    },
    () => import('../statistics.ts'),
    { calls: ['GET /admin/statistics'], roles: seeing },
  ),
  adminCommand(
    'history',
    'All that is known of a device, a requester or a request.',
    {
      device: value('ID', 'of a device, also one that was deleted'),
      requester: value('NAME', 'who asked, as certificates name it'),
      'request-id': value('ID', 'of a request'),
      ...FORMATS,
    },
    () =>
      Promise.resolve(
        records((values) => ({
          path: '/admin/history',
          query: { device: values.device, requester: values.requester, request_id: values['request-id'] },
        })),
      ),
    { calls: ['GET /admin/history'], roles: ['admin', 'ra', 'auditor'] },
  ),
  adminCommand(
    'configuration',
    'The configuration in force, without its secrets.',
    FORMATS,
    () => Promise.resolve(records(() => ({ path: '/admin/configuration' }))),
    { calls: ['GET /admin/configuration'], roles: ['admin', 'operator'] },
  ),
  adminCommand(
    'events',
    'What happens, as it happens, until it is ended.',
    { json: FORMATS.json },
    () => import('../events.ts'),
    { calls: ['GET /admin/events'], roles: seeing },
  ),
];
