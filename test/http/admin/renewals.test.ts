/** The campaigns of the admin API: which filters may start one. */
import { expect, test } from 'vitest';
import { adminFixture, DAY, failure, NOW } from './support.ts';

test('a campaign with an unknown label is rejected, also as a dry run', async () => {
  const api = await adminFixture();
  const by = new Date(NOW + DAY).toISOString();
  for (const field of ['ca', 'label'])
    for (const query of ['', '?dry_run=true'])
      expect(
        failure(await api.call('POST', `/admin/renewals${query}`, { by, filter: { [field]: 'nowhere' } })),
      ).toMatchObject({
        statusCode: 400,
        code: 'FIELD_INVALID',
        message: `filter.${field} must be the label of a configured CA, not nowhere`,
      });
  expect((await api.call('POST', '/admin/renewals', { by, filter: { ca: 'devices' } })).statusCode).toBe(201);
});
