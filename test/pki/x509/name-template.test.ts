/** Patterns and templates of names. Templates are parsed first and values inserted after. */
import { describe, expect, test } from 'vitest';
import { formatGeneralName } from '../../../src/pki/x509/general-name.ts';
import {
  NamePattern,
  NoFittingValue,
  SanTemplate,
  SubjectTemplate,
  type PlaceholderValues,
} from '../../../src/pki/x509/name-template.ts';
import { InputError } from '../../../src/pki/input-error.ts';
import { formatName } from '../../../src/pki/x509/name.ts';

type Values = Readonly<Record<string, string | readonly string[]>>;

const valuesOf =
  (values: Values): PlaceholderValues =>
  (name) =>
    [values[name] ?? []].flat();

/** What it comes to; why it cannot. */
function outcome(work: () => string): string {
  try {
    return work();
  } catch (error) {
    if (error instanceof NoFittingValue || error instanceof InputError) return error.constructor.name;
    throw error;
  }
}

describe('in a pattern the value is quoted', () => {
  test.each<[string, Values, string, boolean]>([
    ['dev-[0-9]+', {}, 'dev-1', true],
    ['dev-[0-9]+', {}, 'dev-1.evil', false],
    ['dev-[0-9]+', {}, 'xdev-1', false],
    ['a|b', {}, 'ab', false],
    ['a|b', {}, 'b', true],
    ['a', {}, 'a\n', false],
    ['{id}', { id: 'a.b' }, 'a.b', true],
    ['{id}', { id: 'a.b' }, 'axb', false],
    ['{id}', { id: '.*' }, 'admin', false],
    ['{id}', { id: 'a|admin' }, 'admin', false],
    ['{id}', { id: 'a)|(admin' }, 'admin', false],
    ['{id}', { id: '\\' }, '\\', true],
    ['{id}', { id: 'a-b' }, 'a-b', true],
    ['{id}', { id: '[a-z]' }, 'q', false],
    ['{id}\\.example\\.com', { id: 'a' }, 'a.example.com', true],
    ['{id}\\.example\\.com', { id: 'a' }, 'a.example.com.evil', false],
    ['{id}', {}, '', false],
    ['{id}', { id: '' }, '', false],
    ['x|{id}', {}, 'x', false],
    ['{cert.dns}', { 'cert.dns': ['a', 'b'] }, 'b', true],
    ['{cert.dns}', { 'cert.dns': ['a', 'b'] }, 'ab', false],
    ['x{cert.dns}y', { 'cert.dns': ['a', 'b'] }, 'xby', true],
    ['[0-9]{2,3}', {}, '12', true],
    ['\\p{Lu}{2}', {}, 'AB', true],
    ['[{id}]', {}, 'd', true],
    ['\\{id\\}', {}, '{id}', true],
    ['\\u{61}', {}, 'a', true],
  ])('%s of %j: %j: %s', (pattern, values, value, expected) => {
    expect(new NamePattern(pattern).matches(value, valuesOf(values))).toBe(expected);
  });

  test('what is compared in lower case is compared with the value in lower case', () => {
    expect(new NamePattern('{id}').matches('a', valuesOf({ id: 'A' }), true)).toBe(true);
    expect(new NamePattern('{id}').matches('a', valuesOf({ id: 'A' }))).toBe(false);
  });

  test.each(['{nobody}', '{cert.nothing}', '{cert.}', '{device.}', '{ID}'])('%s is no placeholder', (pattern) => {
    expect(() => new NamePattern(pattern)).toThrow(InputError);
  });
  test.each(['(', 'a)|(b', '{id}(', '[{id}'])('%s is not a regular expression', (pattern) => {
    expect(() => new NamePattern(pattern)).toThrow(SyntaxError);
  });
});

describe('a template of a subject', () => {
  test.each<[string, Values, string]>([
    ['CN={id},O=Example', { id: 'a' }, 'CN=a,O=Example'],
    ['CN={id},O=Example', { id: 'a,O=Evil' }, 'CN=a\\,O=Evil,O=Example'],
    ['CN={id}', { id: 'a+UID=b' }, 'CN=a\\+UID=b'],
    ['CN={id}', { id: '#0403616263' }, 'CN=\\#0403616263'],
    ['CN={id}', { id: ' a ' }, 'CN=\\ a\\ '],
    ['CN={id}', { id: '{realm}', realm: 'R' }, 'CN={realm}'],
    ['CN={id}', { id: 'XaX' }, 'CN=XaX'],
    ['CN=X{id}X{realm}', { id: 'a', realm: 'R' }, 'CN=XaXR'],
    ['serialNumber={cert.serialNumber}+CN={id}', { id: 'a', 'cert.serialNumber': '7' }, 'serialNumber=7+CN=a'],
    ['C={device.country},CN={id}', { id: 'a', 'device.country': 'DE' }, 'C=DE,CN=a'],
    ['CN=static', {}, 'CN=static'],
    ['CN={id}', {}, 'NoFittingValue'],
    ['CN={id}', { id: '' }, 'NoFittingValue'],
    ['CN={id}', { id: ['a', 'b'] }, 'NoFittingValue'],
    ['CN={id}', { id: 'a\u202eb' }, 'NoFittingValue'],
    ['CN={id}', { id: 'a\u0000b' }, 'NoFittingValue'],
    ['CN={id}', { id: 'a'.repeat(65) }, 'NoFittingValue'],
    ['C={device.country}', { 'device.country': 'Germany' }, 'NoFittingValue'],
    ['serialNumber={id}', { id: 'a_b' }, 'NoFittingValue'],
    ['CN={nobody}', {}, 'InputError'],
    ['CN={id', {}, 'InputError'],
    ['{id}=a', {}, 'InputError'],
    ['CN={id},{realm}', {}, 'InputError'],
    ['', {}, 'InputError'],
  ])('%s of %j: %s', (template, values, expected) => {
    const work = (): string => formatName(new SubjectTemplate(template).fill(valuesOf(values)));
    const sorted = (text: string): string => text.split('+').sort().join('+');
    expect(sorted(outcome(work))).toBe(sorted(expected));
  });
});

describe('a template of a subjectAltName', () => {
  test.each<[string, Values, string]>([
    ['dns:{id}.example.com', { id: 'a' }, 'DNS:a.example.com'],
    ['dns:{instance}', { instance: 'host.example.com' }, 'DNS:host.example.com'],
    ['dns:*.{id}.example.com', { id: 'a' }, 'DNS:*.a.example.com'],
    ['ip:{cert.ip}', { 'cert.ip': '192.0.2.7' }, 'IP:192.0.2.7'],
    ['email:{primary}@example.com', { primary: 'alice' }, 'email:alice@example.com'],
    ['uri:urn:dev:{device.id}', { 'device.id': 'a-1' }, 'URI:urn:dev:a-1'],
    ['dns:static.example.com', {}, 'DNS:static.example.com'],
    ['upn:{id}@example.com', { id: 'alice' }, 'upn:alice@example.com'],
    ['upn:{id}@example.com', { id: 'a@evil' }, 'NoFittingValue'],
    ['upn:{id}@example.com', { id: 'a\u200b' }, 'NoFittingValue'],
    ['upn:{cert.upn}', { 'cert.upn': 'alice@example.com' }, 'upn:alice@example.com'],
    [
      'hardware_module:1.3.6.1.4.1.9:{device.serial}',
      { 'device.serial': '00AB' },
      'hardware_module:1.3.6.1.4.1.9:00ab',
    ],
    ['hardware_module:1.3.6.1.4.1.9:{id}', { id: 'x' }, 'NoFittingValue'],
    ['hardware_module:{id}:00', { id: '1.3.6.1:00' }, 'NoFittingValue'],
    ['permanent_identifier:{id}:x', { id: '1.3.6.1' }, 'permanent_identifier:1.3.6.1:x'],
    ['permanent_identifier::{id}', { id: '00:11:22' }, 'permanent_identifier::00:11:22'],
    ['permanent_identifier:x{id}:a', { id: '1' }, 'InputError'],
    ['srv:_est.{id}.example.com', { id: 'a' }, 'srv:_est.a.example.com'],
    ['srv:_est.{id}.example.com', { id: 'a.b' }, 'NoFittingValue'],
    ['srv:{id}.example.com', { id: 'est' }, 'InputError'],
    ['registered_id:1.3.6.1.{id}', { id: '7' }, 'registered_id:1.3.6.1.7'],
    ['registered_id:1.3.6.1.{id}', { id: 'a' }, 'NoFittingValue'],
    ['other:1.2.3.4:0c01{id}', { id: '61' }, 'other:1.2.3.4:0c0161'],
    ['other:1.2.3.4:{id}', { id: '0c0161' }, 'other:1.2.3.4:0c0161'],
    ['other:1.2.3.4:{id}', { id: '0c01' }, 'NoFittingValue'],
    ['other:1.3.6.1.4.1.311.20.2.3:{id}', { id: '0c0161' }, 'InputError'],
    ['dns:{id}.example.com', {}, 'NoFittingValue'],
    ['dns:{id}.example.com', { id: ['a', 'b'] }, 'NoFittingValue'],
    ['dns:{id}.example.com', { id: 'a.b' }, 'NoFittingValue'],
    ['dns:{id}.example.com', { id: '*' }, 'NoFittingValue'],
    ['dns:{id}.example.com', { id: 'a_b' }, 'NoFittingValue'],
    ['dns:{id}.example.com', { id: '-a' }, 'NoFittingValue'],
    ['dns:{id}.example.com', { id: 'a'.repeat(64) }, 'NoFittingValue'],
    ['dns:{id}', { id: '*.example.com' }, 'NoFittingValue'],
    ['dns:{id}', { id: '192.0.2.7' }, 'NoFittingValue'],
    ['dns:{id}', { id: 'bücher.example' }, 'NoFittingValue'],
    ['email:{id}@example.com', { id: 'a@evil' }, 'NoFittingValue'],
    ['email:{id}@example.com', { id: 'a b' }, 'NoFittingValue'],
    ['uri:https://example.com/{id}', { id: '../x' }, 'NoFittingValue'],
    ['uri:https://{id}.example.com/', { id: 'evil.test/' }, 'NoFittingValue'],
    ['ip:{id}', { id: 'a' }, 'NoFittingValue'],
    ['{id}', {}, 'InputError'],
    ['directory:{id}', {}, 'InputError'],
    ['dns:', {}, 'InputError'],
    ['dns:{id', {}, 'InputError'],
    ['dns:{nobody}', {}, 'InputError'],
    ['dns:under_score.{id}', {}, 'InputError'],
    ['ip:nowhere', {}, 'InputError'],
  ])('%s of %j: %s', (template, values, expected) => {
    expect(outcome(() => formatGeneralName(new SanTemplate(template).fill(valuesOf(values))))).toBe(expected);
  });
});
