/** The administrators' roles: at which labels they hold, and what an OpenID provider's claims give (docs/guides/administrators.md). */
import { expect, test } from 'vitest';
import { oidcIdentity, rolesAt, type AdminIdentity } from '../../src/auth/administrators.ts';
import type { OidcSettings } from '../../src/auth/oidc/oidc-sign-in.ts';

test('a grant with labels holds at these labels only, and not for records without a label', () => {
  const grants: AdminIdentity['grants'] = [
    { roles: ['ra'], labels: ['devices'] },
    { roles: ['auditor'], labels: undefined },
  ];
  expect(rolesAt({ grants }, 'devices')).toEqual(['ra', 'auditor']);
  expect(rolesAt({ grants }, 'lab')).toEqual(['auditor']);
  expect(rolesAt({ grants }, undefined)).toEqual(['auditor']);
});

const SETTINGS: OidcSettings = {
  issuer: 'https://idp.example',
  client_id: 'console',
  client_secret: { reveal: () => Buffer.alloc(0) },
  scopes: [],
  redirect_url: 'https://est.example/auth/oidc/callback',
  name_claim: 'name',
  roles_claim: 'groups',
  roles: { team: { roles: ['ra'], labels: ['devices'] }, boss: {} },
  ca: undefined,
};

test('only claims of the configured provider, with a value that has roles, make an administrator', () => {
  const admin = (values: readonly string[], issuer = SETTINGS.issuer): AdminIdentity | undefined =>
    oidcIdentity(SETTINGS, { issuer, subject: 'ada', name: undefined, values });
  expect(admin(['team', 'others'])).toMatchObject({ roles: ['ra'], grants: [{ roles: ['ra'], labels: ['devices'] }] });
  expect(admin(['boss'])?.roles).toEqual(['admin']);
  expect(admin(['team'], 'https://other.example')).toBeUndefined();
  for (const values of [[], ['others'], ['constructor', '__proto__']]) expect(admin(values)).toBeUndefined();
});
