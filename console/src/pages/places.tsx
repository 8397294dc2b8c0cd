/** The pages with their path, roles and key. */
import type { ComponentType } from 'preact';
import type { Role } from '../api/types.ts';
import { Audit } from './audit.tsx';
import { Campaigns } from './campaigns.tsx';
import { Cas } from './cas.tsx';
import { Certificates } from './certificates.tsx';
import { Configuration } from './configuration.tsx';
import { Devices } from './devices.tsx';
import { Fleet } from './fleet.tsx';
import { Lockouts } from './lockouts.tsx';
import { Notifications } from './notifications.tsx';
import { Overview } from './overview.tsx';
import { Policy } from './policy.tsx';
import { Requests } from './requests.tsx';
import { Tokens } from './tokens.tsx';

export interface Place {
  readonly path: string;
  readonly title: string;
  /** Any of them; an administrator may see all. */
  readonly roles: readonly Role[];
  /** Opens the page after `g`. */
  readonly key: string;
  /** @param id the second part of the path: one record of the list */
  readonly page: ComponentType<{ readonly id: string | undefined }>;
}

export const PLACES: readonly Place[] = [
  { path: '', title: 'Overview', roles: ['ra', 'auditor', 'operator'], key: 'o', page: Overview },
  { path: 'requests', title: 'Requests', roles: ['ra', 'auditor'], key: 'r', page: Requests },
  { path: 'certificates', title: 'Certificates', roles: ['ra', 'auditor'], key: 'c', page: Certificates },
  { path: 'fleet', title: 'Fleet', roles: ['ra', 'auditor'], key: 'e', page: Fleet },
  { path: 'tokens', title: 'Tokens', roles: ['ra'], key: 't', page: Tokens },
  { path: 'devices', title: 'Devices', roles: ['ra', 'auditor'], key: 'd', page: Devices },
  { path: 'campaigns', title: 'Campaigns', roles: ['ra', 'auditor'], key: 'm', page: Campaigns },
  { path: 'policy', title: 'Policy', roles: ['ra'], key: 'p', page: Policy },
  { path: 'audit', title: 'Audit', roles: ['auditor'], key: 'a', page: Audit },
  { path: 'cas', title: 'CAs', roles: ['operator'], key: 's', page: Cas },
  { path: 'notifications', title: 'Notifications', roles: ['operator'], key: 'n', page: Notifications },
  { path: 'lockouts', title: 'Lockouts', roles: ['operator'], key: 'l', page: Lockouts },
  { path: 'configuration', title: 'Configuration', roles: ['operator'], key: 'f', page: Configuration },
];
