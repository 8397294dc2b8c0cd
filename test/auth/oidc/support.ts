import type { OidcSettings } from '../../../src/auth/oidc/oidc-sign-in.ts';

/** `[admin.oidc]` for a provider that no test calls, unless `more` changes its address. */
export const oidcSettings = (more: Partial<OidcSettings> = {}): OidcSettings => ({
  issuer: 'https://idp.example',
  client_id: 'console',
  client_secret: { reveal: () => Buffer.from('secret') },
  scopes: ['openid'],
  redirect_url: 'https://est.example/auth/oidc/callback',
  name_claim: 'name',
  roles_claim: 'groups',
  roles: {},
  ca: undefined,
  ...more,
});
