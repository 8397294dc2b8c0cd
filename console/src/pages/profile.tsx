/** The profile of a CA in sentences, from the active configuration. */
import type { Configuration } from '../api/types.ts';
import { Facts, Panel } from '../ui/bits.tsx';
import { useRecord } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';
import { profileInWords } from './profile-words.ts';

export function Profile({ label }: { readonly label: string }) {
  const { loaded, again } = useRecord<Configuration>('/admin/configuration', ['config.*']);
  return (
    <Panel title="Profile">
      <Show of={loaded} again={again} lines={4}>
        {({ keys }) => <Words keys={keys} label={label} />}
      </Show>
    </Panel>
  );
}

function Words({ keys, label }: Pick<Configuration, 'keys'> & { readonly label: string }) {
  const table = keys
    .find(({ key, value }) => /^ca\[[^\]]+\]\.label$/.test(key) && value === label)
    ?.key.slice(0, -'label'.length);
  if (table === undefined) return <p class="fine">This label uses the profile of its CA.</p>;
  const own = keys
    .filter(({ key }) => key.startsWith(table))
    .map(({ key, value }) => [key.slice(table.length), value] as const);
  const { words, further } = profileInWords(new Map(own));
  return (
    <>
      <ul class="words">
        {words.map((word) => (
          <li key={word}>{word}</li>
        ))}
      </ul>
      {further.length > 0 && <Facts of={further.map(([key, value]) => [key, value])} />}
    </>
  );
}
