/** Describes the profile of a CA in sentences. */

type Values = ReadonlyMap<string, unknown>;

/** Describes some keys. It returns undefined if the keys set no rule. */
type Sentence = readonly [keys: readonly string[], say: (value: (key: string) => unknown) => string | undefined];

const listed = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);
const all = (value: unknown): string => listed(value).join(', ');
const days = (value: unknown): string => (value === 1 ? '1 day' : `${String(value)} days`);

const DEVICES: Readonly<Record<string, string | undefined>> = {
  required: 'Only registered devices get certificates.',
};

const SENTENCES: readonly Sentence[] = [
  [
    ['approval', 'approvals'],
    (value) =>
      value('approval') !== 'manual'
        ? 'Certificates are issued immediately.'
        : value('approvals') === 1
          ? 'An administrator must approve each request.'
          : `${String(value('approvals'))} administrators must approve each request.`,
  ],
  [['devices'], (value) => DEVICES[String(value('devices'))]],
  [
    ['profile.validity_days', 'profile.max_validity_days'],
    (value) =>
      `A certificate is valid for ${days(value('profile.validity_days'))}, and at most for ${days(value('profile.max_validity_days'))}.`,
  ],
  [
    ['profile.renewal_grace_days'],
    (value) =>
      value('profile.renewal_grace_days') === 0
        ? 'It can be renewed until it expires.'
        : `It can be renewed until ${days(value('profile.renewal_grace_days'))} after it expires.`,
  ],
  [['profile.key_types'], (value) => `Key types: ${all(value('profile.key_types'))}.`],
  [
    ['profile.key_usage', 'profile.extended_key_usage'],
    (value) =>
      `Key usage: ${[...listed(value('profile.key_usage')), ...listed(value('profile.extended_key_usage'))].join(', ') || 'anything'}.`,
  ],
  [
    ['profile.subject.required', 'profile.subject.allowed', 'profile.subject.template'],
    (value) => {
      const template = value('profile.subject.template');
      if (typeof template === 'string') return `The subject is ${template}.`;
      const required = all(value('profile.subject.required'));
      const allowed = all(value('profile.subject.allowed'));
      return [
        required === '' ? 'The subject may be any name' : `The subject must have ${required}`,
        allowed === '' ? '' : `, with only ${allowed}`,
        '.',
      ].join('');
    },
  ],
  [
    ['profile.san.allowed', 'profile.san.required', 'profile.san.max', 'profile.san.wildcards'],
    (value) => {
      const allowed = all(value('profile.san.allowed'));
      if (allowed === '') return 'Other names are not allowed.';
      const required = all(value('profile.san.required'));
      return [
        `Other names: at most ${String(value('profile.san.max'))}, of the types ${allowed}`,
        required === '' ? '' : `; one of ${required} is required`,
        value('profile.san.wildcards') === true ? '; wildcards are allowed.' : '; no wildcards.',
      ].join('');
    },
  ],
  [
    ['profile.san.add'],
    (value) =>
      listed(value('profile.san.add')).length === 0 ? undefined : `Added names: ${all(value('profile.san.add'))}.`,
  ],
  [
    ['profile.allow_subject_change'],
    (value) =>
      value('profile.allow_subject_change') === true ? 'A renewal may change the names.' : 'A renewal keeps the names.',
  ],
];

/** Whether a value sets no rule. */
const isNothing = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0);

/** @param values The values of one `[[ca]]` table by key. */
export function profileInWords(values: Values): {
  readonly words: readonly string[];
  /** Rules that have no sentence. */
  readonly further: readonly (readonly [key: string, value: string])[];
} {
  const covered = new Set(SENTENCES.flatMap(([keys]) => keys));
  const words = SENTENCES.filter(([[key = '']]) => values.has(key) || key.endsWith('.required')).flatMap(
    ([, say]) => say((key) => values.get(key)) ?? [],
  );
  const further = [...values]
    .filter(([key, value]) => key.startsWith('profile.') && !covered.has(key) && !isNothing(value))
    .map(
      ([key, value]) =>
        [key.slice('profile.'.length), typeof value === 'string' ? value : JSON.stringify(value)] as const,
    );
  return { words, further };
}
