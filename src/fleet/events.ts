/** What is reported of holders that enter a state (docs/guides/fleet.md). */
import type { AuditEvent } from '../audit/event.ts';
import type { EnteredHolder, ListedHolder } from '../store/holder-list.ts';
import { type HolderState, isReported } from '../store/holder-state.ts';
import { formatOptionalTimestamp, formatTimestamp } from '../timestamp.ts';

/** A holder as the admin API and the notifications show it. */
export const shownHolder = (holder: ListedHolder) => ({
  state: holder.state,
  since: formatTimestamp(holder.since),
  ca: holder.ca,
  subject: holder.subject,
  sans: holder.sans === null ? null : [...holder.sans],
  device: holder.device,
  serial: holder.serial,
  not_after: formatOptionalTimestamp(holder.not_after),
  window_end: formatOptionalTimestamp(holder.window_end),
  last_used_at: formatOptionalTimestamp(holder.last_used_at),
  first_used_at: formatOptionalTimestamp(holder.first_used_at),
  renewal_info_at: formatOptionalTimestamp(holder.renewal_info_at),
  tls_version: holder.tls_version,
  last_code: holder.last_code,
  last_message: holder.last_message,
  last_failed_at: formatOptionalTimestamp(holder.last_failed_at),
});

export function holderEvent(entered: EnteredHolder): AuditEvent {
  const { state, ca, serial, subject, device, issuer } = entered;
  return {
    type: typeOf(state),
    outcome: 'failure',
    ...(issuer === null ? {} : { ca: issuer }),
    ...(ca === null || ca === issuer ? {} : { label: ca }),
    ...(serial === null ? {} : { serial }),
    ...(device === null ? {} : { device }),
    holder: shownHolder(entered),
    detail: `${subject ?? device ?? ''} at ${ca ?? ''}: ${state}`,
  };
}

/** @param label empty: none */
export function countEvent(label: string, state: HolderState, count: number): AuditEvent {
  const at = label === '' ? {} : { ca: label };
  return { type: typeOf(state), outcome: 'failure', ...at, count, detail: `${count} holders at ${label}: ${state}` };
}

function typeOf(state: HolderState): `holder.${Extract<HolderState, 'expired' | 'failing' | 'stuck' | 'late'>}` {
  if (isReported(state)) return `holder.${state}`;
  throw new Error(`${state} is not reported`);
}
