/** Checks on further labels (docs/guides/names.md). */
import { driverOf } from '../../ca/drivers.ts';
import { labelsOf } from '../labels.ts';
import type { Config } from '../schema.ts';
import { finding, type Finding } from '../findings.ts';

/** Checks on `[[label]]` tables, and between labels of one CA. */
export function* furtherLabelChecks(config: Config): Generator<Finding> {
  const { ca, label } = config;
  for (const [index, { ca: wanted }] of label.entries()) {
    const key = `label[${index}].ca`;
    const of = ca.find((one) => one.label === wanted);
    if (of === undefined) yield finding(key, `"${wanted}" is not a CA (the label of one of the [[ca]] tables)`, 'ca');
    else if (driverOf(of).remote !== undefined)
      yield finding(
        key,
        `"${wanted}" has the remote driver "${of.driver}", which has one profile only (a CA whose key this server has)`,
      );
  }
  yield* renewalLabelChecks(config);
}

function* renewalLabelChecks(config: Config): Generator<Finding> {
  const labels = labelsOf(config);
  for (const { key, table, of } of labels) {
    const { label: own } = of ?? table;
    const siblings = labels.filter((one) => (one.of ?? one.table).label === own).map((one) => one.table.label);
    for (const wanted of table.profile.renewal_labels ?? [])
      if (!siblings.includes(wanted))
        yield finding(
          `${key}.profile.renewal_labels`,
          `"${wanted}" is not a label of the same CA (${siblings.join(', ')})`,
          'label',
          `${key}.ca`,
        );
  }
}
