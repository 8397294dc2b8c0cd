/** The administrators' roles: at which labels they hold, and what an OpenID provider's claims give (docs/guides/administrators.md). */
import { expect, test } from 'vitest';
import { oidcIdentity, rolesAt, type AdminIdentity } from '../../src/auth/administrators.ts';
import { oidcSettings } from './oidc/support.ts';

test('a grant with labels holds at these labels only, and not for records without a label', () => {
  const grants: AdminIdentity['grants'] = [
    { roles: ['ra'], labels: ['devices'] },
    { roles: ['auditor'], labels: undefined },
  ];
  expect(rolesAt({ grants }, 'devices')).toEqual(['ra', 'auditor']);
  expect(rolesAt({ grants }, 'lab')).toEqual(['auditor']);
  expect(rolesAt({ grants }, undefined)).toEqual(['auditor']);
});

const SETTINGS = oidcSettings({ roles: { team: { roles: ['ra'], labels: ['devices'] }, boss: {} } });

test('only claims of the configured provider, with a value that has roles, make an administrator', () => {
  const admin = (values: readonly string[], issuer = SETTINGS.issuer): AdminIdentity | undefined =>
    oidcIdentity(SETTINGS, { issuer, subject: 'ada', name: undefined, values });
  expect(admin(['team', 'others'])).toMatchObject({ roles: ['ra'], grants: [{ roles: ['ra'], labels: ['devices'] }] });
  expect(admin(['boss'])?.roles).toEqual(['admin']);
  expect(admin(['team'], 'https://other.example')).toBeUndefined();
  for (const values of [[], ['others'], ['constructor', '__proto__']]) expect(admin(values)).toBeUndefined();
});
