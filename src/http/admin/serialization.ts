/** Answers as text, by their route schemas: what a schema does not describe is left out. */
import SerializerSelector from '@fastify/fast-json-stringify-compiler';
import type { FastifySerializerCompiler } from 'fastify';
import type { TSchema } from 'typebox';

const compile = SerializerSelector()();

/**
 * As Fastify would compile schemas by itself, but each when it is first needed. There are some four hundred, most of them of refusals that
 * never come: compiling them all took longer than the rest of the admin listener.
 */
export const serializerCompiler: FastifySerializerCompiler<TSchema> = ({ httpStatus = '', ...route }) => {
  let serialize: ReturnType<typeof compile> | undefined;
  return (value: unknown) => (serialize ??= compile({ httpStatus, ...route }))(value);
};
