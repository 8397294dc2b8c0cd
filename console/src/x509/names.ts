/** Formats names for display. */
import { characters, hex, isText, oid, within, type Element } from './der.ts';

const ATTRIBUTES: Readonly<Record<string, string | undefined>> = {
  '2.5.4.3': 'CN',
  '2.5.4.5': 'serialNumber',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '0.9.2342.19200300.100.1.1': 'UID',
  '0.9.2342.19200300.100.1.25': 'DC',
  '1.2.840.113549.1.9.1': 'emailAddress',
};

/** A distinguished name in the form of RFC 4514. */
export function distinguishedName(name: Element | undefined): string {
  const parts = within(name).map((set) =>
    within(set)
      .map((pair) => {
        const [type, value] = within(pair);
        if (type === undefined || value === undefined) return '';
        const id = oid(type);
        const shown = isText(value) ? characters(value).replace(/([,+"\\<>;])/g, '\\$1') : `#${hex(value.content)}`;
        return `${ATTRIBUTES[id] ?? id}=${shown}`;
      })
      .join('+'),
  );
  return parts.reverse().join(',');
}

function address(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  return (hex(bytes).match(/.{4}/g) ?? []).map((group) => group.replace(/^0{1,3}/, '')).join(':');
}

/** An otherName in the form of records: `upn:a@example.com`. */
function otherName(name: Element): string {
  const [type, tagged] = within(name);
  const [value] = within(tagged);
  if (type === undefined || value === undefined) return 'other name';
  switch (oid(type)) {
    case '1.3.6.1.4.1.311.20.2.3':
      return `upn:${characters(value)}`;
    case '1.3.6.1.5.5.7.8.7':
      return `srv:${characters(value)}`;
    case '1.3.6.1.5.5.7.8.4': {
      const [module, serial] = within(value);
      return `hardware_module:${module === undefined ? '' : oid(module)}:${serial === undefined ? '' : hex(serial.content)}`;
    }
    case '1.3.6.1.5.5.7.8.3': {
      const parts = within(value);
      const assigner = parts.find(({ tag }) => tag === 0x06);
      const identifier = parts.find(isText);
      return `permanent_identifier:${assigner === undefined ? '' : oid(assigner)}:${identifier === undefined ? '' : characters(identifier)}`;
    }
    default:
      return `other:${oid(type)}:${hex(value.raw)}`;
  }
}

/** A GeneralName in the form of records: `DNS:a`. */
export function generalName(name: Element): string {
  switch (name.tag & 0x1f) {
    case 0:
      return otherName(name);
    case 1:
      return `email:${characters(name)}`;
    case 2:
      return `DNS:${characters(name)}`;
    case 4:
      return distinguishedName(within(name)[0]);
    case 6:
      return `URI:${characters(name)}`;
    case 7:
      return `IP:${address(name.content)}`;
    case 8:
      return `registered_id:${oid(name)}`;
    default:
      return hex(name.content);
  }
}
