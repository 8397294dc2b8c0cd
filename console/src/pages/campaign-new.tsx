/** Starts a campaign. A preview shows the number of certificates first. */
import { useState } from 'preact/hooks';
import { call, toApiError } from '../api/client.ts';
import type { Campaign, CampaignProgress } from '../api/types.ts';
import { go, link, route } from '../shared/router.ts';
import { Heading, Moment } from '../ui/bits.tsx';
import { Confirm } from '../ui/dialog.tsx';
import { Field, FieldProblem, submitted, valueOf } from '../ui/fields.tsx';
import { notify } from '../ui/notices.tsx';
import { given, LabelField, TextField } from '../ui/text-fields.tsx';
import { selectionInWords, selectionOf } from './filter-words.ts';

const DAY = 86_400_000;

interface Plan {
  readonly body: object;
  readonly counted: CampaignProgress;
}

export function NewCampaign() {
  const known = selectionOf(route.value.query);
  const [problem, setProblem] = useState<string>();
  const [plan, setPlan] = useState<Plan>();
  const preview = async (form: HTMLFormElement) => {
    setProblem(undefined);
    const value = (name: string) => valueOf(form, name);
    const filter = {
      ...known,
      ...given({ ca: value('ca'), subject: value('subject'), san: value('san'), device: value('device') }),
    };
    const by = new Date(Date.now() + Number(value('days')) * DAY).toISOString();
    const body = { filter, by, ...given({ reason: value('reason'), explanation_url: value('explanation_url') }) };
    try {
      const query = { dry_run: 'true' };
      setPlan({ body, counted: await call<CampaignProgress>('/admin/renewals', { method: 'POST', body, query }) });
    } catch (error) {
      setProblem(toApiError(error).message);
    }
  };
  const others = Object.fromEntries(Object.entries(known).filter(([name]) => !FIELDS.has(name)));
  return (
    <>
      <Heading
        title="New campaign"
        lead="Clients that request renewal information replace their certificates by the deadline."
      />
      <form class="form panel" onSubmit={submitted((form) => void preview(form))}>
        <div class="row">
          <LabelField name="ca" label="CA" value={known['ca'] ?? ''} />
          <TextField name="subject" label="Subject" hint="Any part." value={known['subject'] ?? ''} />
        </div>
        <div class="row">
          <TextField name="san" label="Other name" hint="Any part." value={known['san'] ?? ''} />
          <TextField name="device" label="Device" hint="The exact ID." value={known['device'] ?? ''} />
        </div>
        {Object.keys(others).length > 0 && <p>Only certificates: {selectionInWords(others)}</p>}
        <Field label="Days until the deadline" name="days" hint="The renewals are spread evenly until then.">
          {(attributes) => (
            <input {...attributes} type="number" min={0.01} max={3652} step="any" required defaultValue="7" />
          )}
        </Field>
        <TextField name="reason" label="Reason" hint="Shown here and in the audit log." />
        <TextField
          name="explanation_url"
          label="Link to an explanation"
          hint="https://…, for the owners of the clients."
        />
        <FieldProblem of={problem} />
        <div class="actions">
          <a class="button" href={link(['campaigns'])}>
            Cancel
          </a>
          <button type="submit" class="primary">
            Start …
          </button>
        </div>
      </form>
      {plan !== undefined && <Start plan={plan} onClose={() => setPlan(undefined)} />}
    </>
  );
}

const FIELDS: ReadonlySet<string> = new Set(['ca', 'subject', 'san', 'device']);

function Start({ plan: { body, counted }, onClose }: { readonly plan: Plan; readonly onClose: () => void }) {
  const { total, filter, by } = counted;
  const run = async () => {
    const { id } = await call<Campaign>('/admin/renewals', { method: 'POST', body });
    notify('The campaign is started.');
    go(['campaigns', 'id', id]);
  };
  return (
    <Confirm
      title={`Replace ${total.toLocaleString('en')} ${total === 1 ? 'certificate' : 'certificates'}?`}
      verb="Start the campaign"
      onClose={onClose}
      run={run}
    >
      <p>
        <strong>{selectionInWords(filter)}</strong>, until <Moment at={by} />. Certificates that are issued later are
        not included.
      </p>
    </Confirm>
  );
}
