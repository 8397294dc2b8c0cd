import { DRIVERS } from '../../ca/drivers.ts';
import { list, table, variants } from '../keys.ts';
import { labelKeys, labelText } from './label.ts';

export const ca = list(
  variants(
    'driver',
    DRIVERS.map(({ keys }) => keys),
    { description: 'One certificate authority.' },
  ),
  { description: 'The certificate authorities, one table each.', minItems: 1, live: true },
);

/** `[[label]]`: further labels of a CA. */
export const label = list(
  table('A further label of a CA; nothing is taken over from the tables of the CA.', {
    name: labelText('The EST label: the path segment that routes a request here.'),
    ca: labelText('The label of the CA whose key signs; one with a key of ours.'),
    ...labelKeys,
  }),
  {
    description:
      'Further labels of the CAs (docs/guides/names.md): one key, serial numbers, CRL and OCSP, and for each label a separate profile and rules. A certificate of one label neither authenticates nor is renewed at another.',
    default: [],
    live: true,
  },
);
