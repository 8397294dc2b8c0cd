/** What the console needs to know about the server: its labels, and where devices reach it. */
import { computed, effect, signal } from '@preact/signals';
import { call } from '../api/client.ts';
import type { Service } from '../api/types.ts';
import { caller, may } from './session.ts';

export const service = signal<Service | undefined>(undefined);

/** The labels that the user may name; undefined before they are loaded. */
export const labels = computed(() => service.value?.labels);

async function findService(): Promise<void> {
  service.value = await call<Service>('/admin/service').catch(() => service.value);
}

/** Starts once, and loads again for each user who signs in. */
export function keepService(): void {
  effect(() => {
    if (caller.value.state === 'in' && may('ra', 'auditor', 'operator')) void findService();
  });
}
