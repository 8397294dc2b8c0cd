/**
 * DER in and out (X.690): a strict reader and a small writer, for the hot path. Values are subarrays of the input,
 * never copies. Every malformed input throws {@link DerError}; nothing else is thrown on outside data.
 */
export * from './element.ts';
export * from './values.ts';
export * from './writer.ts';
