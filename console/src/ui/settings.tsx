/** Settings for times, kept in this browser. */
import { signal } from '@preact/signals';
import { ownZone, timeStyle, timeZone, type TimeStyle } from '../shared/preferences.ts';
import { Dialog } from './dialog.tsx';
import { Field } from './fields.tsx';
import { Switch } from './switch.tsx';
import { exactTime } from './time.ts';

export const settingsOpen = signal(false);

const STYLES: readonly (readonly [TimeStyle, string])[] = [
  ['relative', '5 minutes ago'],
  ['absolute', 'Date and time'],
];

export function Settings() {
  if (!settingsOpen.value) return null;
  const others = Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC' && zone !== ownZone);
  return (
    <Dialog title="Settings" onClose={() => (settingsOpen.value = false)}>
      <div class="dialog-body">
        <div class="field">
          <span class="label">Times in lists</span>
          <Switch name="times" legend="Times in lists" of={STYLES} value={timeStyle} />
        </div>
        <Field label="Time zone" name="zone" hint={`Now: ${exactTime(new Date().toISOString(), timeZone.value)}`}>
          {(attributes) => (
            <select {...attributes} onChange={(event) => (timeZone.value = event.currentTarget.value)}>
              {[...new Set(['UTC', ownZone]), ...others].map((zone) => (
                <option key={zone} value={zone} selected={zone === timeZone.value}>
                  {zone === ownZone && zone !== 'UTC' ? `${zone} (this computer)` : zone}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <form method="dialog" class="dialog-end">
        <button type="submit" class="primary">
          Close
        </button>
      </form>
    </Dialog>
  );
}
