/** Messages name `[[ca]]` and `[[label]]` tables by their labels. */
import { describe, expect, test } from 'vitest';
import { findings, keysWithLabels } from '../../src/config/problem.ts';

const TABLES = {
  ca: [{ label: 'devices' }, { label: 'twice' }, { label: 'twice' }, {}, { label: 7 }, { label: 'no/label' }, 'none'],
  label: [{ name: 'guests', ca: 'devices' }],
};

describe('the keys of a table', () => {
  test.each([
    ['ca[0].file.private_key', 'ca[devices].file.private_key'],
    ['label[0].profile.validity_days', 'label[guests].profile.validity_days'],
    ['is true, and so is ca[0].default', 'is true, and so is ca[devices].default'],
    ['the label of another table', 'the label of another table'],
    ['ca[1].chain', 'ca[1].chain'],
    ['ca[2].chain', 'ca[2].chain'],
    ['ca[3].label', 'ca[3].label'],
    ['ca[4].label', 'ca[4].label'],
    ['ca[5].label', 'ca[5].label'],
    ['ca[6]', 'ca[6]'],
    ['ca[7]', 'ca[7]'],
    ['serverkeygen.keys[0].id', 'serverkeygen.keys[0].id'],
    ['cmc.ra_certificates[0]', 'cmc.ra_certificates[0]'],
  ])('%s → %s', (key, named) => {
    expect(keysWithLabels(TABLES)(key)).toBe(named);
  });

  test('a document without such tables, or with something else in their place, names nothing', () => {
    for (const tables of [{}, { ca: 'x', label: 7 }]) expect(keysWithLabels(tables)('ca[0].chain')).toBe('ca[0].chain');
  });
});

test('a finding is reported once, at its first place, and others of its key stay', () => {
  const one = { key: 'ca[0].certificate', message: 'cannot be read' };
  const other = { key: 'ca[0].certificate', message: 'expired' };
  expect(findings([one, other, one], TABLES)).toEqual([
    { key: 'ca[devices].certificate', message: 'cannot be read' },
    { key: 'ca[devices].certificate', message: 'expired' },
  ]);
});
