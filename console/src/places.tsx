/** The pages: where they are, who may see them, and which key leads there. */
import type { ComponentType } from 'preact';
import type { Role } from './api/types.ts';
import { Overview } from './pages/overview.tsx';
import { Tokens } from './pages/tokens.tsx';

export interface Place {
  readonly path: string;
  readonly title: string;
  /** Any of them; an administrator may see all. */
  readonly roles: readonly Role[];
  /** `g` and this one goes there. */
  readonly key: string;
  /** @param id what follows in the link: one thing of the list */
  readonly page: ComponentType<{ readonly id: string | undefined }>;
}

export const PLACES: readonly Place[] = [
  { path: '', title: 'Overview', roles: ['ra', 'auditor', 'operator'], key: 'o', page: Overview },
  { path: 'tokens', title: 'Tokens', roles: ['ra'], key: 't', page: Tokens },
];
