/** A vitest setup file: @peculiar/x509 needs this polyfill first, and vitest may evaluate the imports of a test file in any order. */
import 'reflect-metadata';
