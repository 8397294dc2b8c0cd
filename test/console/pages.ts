/** The console's pages: their links, who may see them, and what is on them when they are there. */
import type { OneRole } from './world.ts';

export interface ConsolePage {
  readonly name: string;
  readonly hash: string;
  /** The heading. */
  readonly title: string;
  readonly roles: readonly OneRole[];
  /** Of those that stand in the navigation: the second key after `g`. */
  readonly key?: string;
}

export const PAGES: readonly ConsolePage[] = [
  { name: 'overview', hash: '', title: 'Overview', roles: ['ra', 'auditor', 'operator'], key: 'o' },
  { name: 'requests', hash: 'requests', title: 'Requests', roles: ['ra', 'auditor'], key: 'r' },
  { name: 'certificates', hash: 'certificates', title: 'Certificates', roles: ['ra', 'auditor'], key: 'c' },
  { name: 'fleet', hash: 'fleet', title: 'Fleet', roles: ['ra', 'auditor'], key: 'e' },
  { name: 'tokens', hash: 'tokens', title: 'Tokens', roles: ['ra'], key: 't' },
  { name: 'token-new', hash: 'tokens/new', title: 'New token', roles: ['ra'] },
  { name: 'token-bulk', hash: 'tokens/bulk', title: 'Import tokens', roles: ['ra'] },
  { name: 'devices', hash: 'devices', title: 'Devices', roles: ['ra', 'auditor'], key: 'd' },
  { name: 'device', hash: 'devices/id/press-1', title: 'press-1', roles: ['ra', 'auditor'] },
  { name: 'device-new', hash: 'devices/new', title: 'New device', roles: ['ra'] },
  { name: 'device-import', hash: 'devices/import', title: 'Import devices', roles: ['ra'] },
  { name: 'campaigns', hash: 'campaigns', title: 'Campaigns', roles: ['ra', 'auditor'], key: 'm' },
  { name: 'campaign-new', hash: 'campaigns/new?subject=press', title: 'New campaign', roles: ['ra'] },
  { name: 'find', hash: 'find?q=press', title: 'Results for “press”', roles: ['ra', 'auditor'] },
  { name: 'policy', hash: 'policy', title: 'Policy', roles: ['ra'], key: 'p' },
  { name: 'audit', hash: 'audit', title: 'Audit', roles: ['auditor'], key: 'a' },
  { name: 'audit-chain', hash: 'audit/verify', title: 'Audit chain', roles: ['auditor'] },
  { name: 'cas', hash: 'cas', title: 'CAs', roles: ['operator'], key: 's' },
  { name: 'ca', hash: 'cas/devices', title: 'devices', roles: ['operator'] },
  { name: 'notifications', hash: 'notifications', title: 'Notifications', roles: ['operator'], key: 'n' },
  { name: 'lockouts', hash: 'lockouts', title: 'Lockouts', roles: ['operator'], key: 'l' },
  { name: 'configuration', hash: 'configuration', title: 'Configuration', roles: ['operator'], key: 'f' },
];
