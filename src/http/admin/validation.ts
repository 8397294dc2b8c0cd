/** Validates requests against their route schemas; messages name the field. */
import type { FastifySchemaCompiler } from 'fastify';
import { IsInteger, IsObject, IsString, type Static, type TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import { badRequest, type EstuaryError } from '../../errors.ts';
import { TIMESTAMP_RULE } from './values.ts';

/**
 * Bodies are not coerced: "1" is not 1. In query strings, integers are parsed where the schema has them, and an empty
 * value counts as absent, except where the schema has a least length of 0. A schema is compiled on first use: all of them take a tenth of a start's time.
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  let compiled: Validator | undefined;
  const forms = httpPart === 'querystring' ? formsOf(schema) : NO_FORMS;
  return (input: unknown) => {
    const validator = (compiled ??= Compile(schema));
    const value = httpPart === 'querystring' ? readQuery(input, forms) : input;
    if (!validator.Check(value))
      return { error: problem(validator.Errors(value), httpPart === 'querystring' ? 'query parameter' : 'field') };
    const malformed = malformedText(value);
    return malformed === undefined ? { value } : { error: malformed };
  };
};

/**
 * A validator for values outside routes, such as bulk rows.
 * @returns the value. @throws EstuaryError 400 `FIELD_INVALID` that names the field
 */
export function validator<T extends TSchema>(schema: T): (value: unknown) => Static<T> {
  const compiled = Compile(schema);
  return (value) => {
    if (!compiled.Check(value)) throw problem(compiled.Errors(value), 'field');
    const malformed = malformedText(value);
    if (malformed !== undefined) throw malformed;
    return value;
  };
}

/** Why a string or a field name in a value is not valid Unicode: JSON can escape half of a surrogate pair. */
function malformedText(value: unknown, path = ''): EstuaryError | undefined {
  if (typeof value === 'string')
    return value.isWellFormed()
      ? undefined
      : badRequest(
          'FIELD_INVALID',
          `${path === '' ? 'the body' : path} must be Unicode text, without an unpaired surrogate`,
        );
  if (typeof value !== 'object' || value === null || !(Array.isArray(value) || isPlain(value))) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const problem = malformedText(name, path) ?? malformedText(inner, prefixed(path, name));
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** Parameters that are integers, and those that can be empty. */
interface Forms {
  readonly integers: ReadonlySet<string>;
  readonly empty: ReadonlySet<string>;
}

const NO_FORMS: Forms = { integers: new Set(), empty: new Set() };

function formsOf(schema: TSchema): Forms {
  if (!IsObject(schema)) return NO_FORMS;
  const named = (is: (property: TSchema) => boolean) =>
    new Set(Object.entries(schema.properties).flatMap(([name, property]) => (is(property) ? [name] : [])));
  return {
    integers: named(IsInteger),
    empty: named((schema) => IsString(schema) && 'minLength' in schema && schema.minLength === 0),
  };
}

function readQuery(input: unknown, { integers, empty }: Forms): unknown {
  if (typeof input !== 'object' || input === null) return input;
  const given = Object.entries(input).filter(([name, value]) => value !== '' || empty.has(name));
  return Object.fromEntries(
    given.map(([name, value]: [string, unknown]) => [
      name,
      integers.has(name) && typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value,
    ]),
  );
}

function problem(errors: readonly TLocalizedValidationError[], kind: string): EstuaryError {
  // An unknown field causes two errors; the one for the object says what it is.
  const error = errors.find(({ keyword }) => keyword !== 'boolean') ?? errors[0];
  return badRequest('FIELD_INVALID', error === undefined ? `a ${kind} is not valid` : sentence(error, kind));
}

function sentence(error: TLocalizedValidationError, kind: string): string {
  const field = error.instancePath.slice(1).replaceAll('/', '.');
  const name = field === '' ? 'the body' : field;
  switch (error.keyword) {
    case 'required':
      return `${error.params.requiredProperties.map((property) => prefixed(field, property)).join(', ')} is required`;
    case 'additionalProperties':
      return `there is no ${kind} ${error.params.additionalProperties.map((property) => quoted(prefixed(field, property))).join(', ')}`;
    case 'type':
      return `${name} must be ${article(String(error.params.type))}`;
    case 'minLength':
      return error.params.limit === 1 ? `${name} must not be empty` : `${name} is too short`;
    case 'maxLength':
      return `${name} must not be longer than ${error.params.limit} characters`;
    case 'enum':
      return `${name} must be one of ${error.params.allowedValues.map(String).join(', ')}`;
    case 'minimum':
      return `${name} must be ${String(error.params.limit)} or more`;
    case 'maximum':
      return `${name} must be ${String(error.params.limit)} or less`;
    case 'format':
      return `${name} ${error.params.format === 'date-time' ? TIMESTAMP_RULE : error.message}`;
    default:
      return `${name} ${error.message}`;
  }
}

const prefixed = (parent: string, property: string): string => (parent === '' ? property : `${parent}.${property}`);
/** A name from the client: truncated and escaped. */
const quoted = (name: string): string => JSON.stringify(name.slice(0, 64));

function article(type: string): string {
  return type === 'string' || type === 'boolean' || type === 'number' ? `a ${type}` : `an ${type}`;
}
