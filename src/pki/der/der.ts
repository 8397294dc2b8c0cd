/**
 * DER (X.690): a strict reader and a small writer, for the hot path. Values are subarrays of the input, never copies.
 * Malformed input throws {@link DerError} and nothing else.
 */
export * from './element.ts';
export * from './reader.ts';
export * from './values.ts';
export * from './writer.ts';
