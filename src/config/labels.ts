/** All labels of the configuration: each CA's own, and further ones. */
import type { CaConfig, Config } from './schema.ts';

export interface ConfiguredLabel {
  /** Key of its table: `ca[0]`, or `label[0]`. */
  readonly key: string;
  /** Key of its name: `ca[0].label`, or `label[0].name`. */
  readonly nameKey: string;
  /** For a further label: its own profile and rules, with the CA's key. */
  readonly table: CaConfig;
  /** The CA of a further label; undefined for a CA's own label. */
  readonly of: CaConfig | undefined;
}

/** The CAs' labels first. Omits further labels of unknown CAs. */
export function labelsOf({ ca, label }: Pick<Config, 'ca' | 'label'>): ConfiguredLabel[] {
  const own = ca.map((table, index) => {
    const key = `ca[${index}]`;
    return { key, nameKey: `${key}.label`, table, of: undefined };
  });
  const further = label.flatMap(({ name, ca: wanted, ...rules }, index) => {
    const of = ca.find((table) => table.label === wanted);
    if (of === undefined) return [];
    const key = `label[${index}]`;
    return [{ key, nameKey: `${key}.name`, table: withRules(of, { label: name, ...rules }), of }];
  });
  return [...own, ...further];
}

/** A label's own rules, which do not default to the CA's. */
type Rules = Pick<CaConfig, 'label'> & Omit<Config['label'][number], 'name' | 'ca'>;

function withRules(of: CaConfig, rules: Rules): CaConfig {
  const own: Mutable<CaConfig> = { ...of };
  delete own.csrattrs;
  delete own.authorization;
  return { ...own, ...rules };
}

type Mutable<T> = T extends unknown ? { -readonly [K in keyof T]: T[K] } : never;
