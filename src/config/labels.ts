/** Every label of the configuration: each CA's own, and the further ones. */
import type { CaConfig, Config } from './schema.ts';

export interface ConfiguredLabel {
  /** Its table: `ca[0]`, or `label[0]`. */
  readonly key: string;
  /** The key with its name: `ca[0].label`, or `label[0].name`. */
  readonly nameKey: string;
  /** Of a further label: its own profile and rules, on the CA's key. */
  readonly table: CaConfig;
  /** The CA of a further label; undefined: it is a CA's own. */
  readonly of: CaConfig | undefined;
}

/** Those of the CAs first. A further label of a CA that is not there is left out. */
export function labelsOf({ ca, label }: Pick<Config, 'ca' | 'label'>): ConfiguredLabel[] {
  const own = ca.map((table, index) => {
    const key = `ca[${index}]`;
    return { key, nameKey: `${key}.label`, table, of: undefined };
  });
  const further = label.flatMap(({ name, ca: wanted, ...rules }, index) => {
    const of = ca.find((one) => one.label === wanted);
    if (of === undefined) return [];
    const key = `label[${index}]`;
    return [{ key, nameKey: `${key}.name`, table: withRules(of, { label: name, ...rules }), of }];
  });
  return [...own, ...further];
}

/** What a label says for itself; what is absent there is not the CA's. */
type Rules = Pick<CaConfig, 'label'> & Omit<Config['label'][number], 'name' | 'ca'>;

function withRules(of: CaConfig, rules: Rules): CaConfig {
  const own: Mutable<CaConfig> = { ...of };
  delete own.csrattrs;
  delete own.authorization;
  return { ...own, ...rules };
}

/** Of each kind of CA. */
type Mutable<T> = T extends unknown ? { -readonly [K in keyof T]: T[K] } : never;
