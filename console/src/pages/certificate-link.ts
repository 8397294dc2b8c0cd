import type { Certificate } from '../api/types.ts';
import { link } from '../shared/router.ts';

/** To one certificate's page. */
export const certificateLink = ({ serial, ca }: Pick<Certificate, 'serial' | 'ca'>): string =>
  link(['certificates', serial], { ca });
