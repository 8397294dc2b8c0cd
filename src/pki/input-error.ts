/**
 * Invalid input (a text, a file, a key). The message says what is wrong and contains no secret. The caller adds the
 * source and the error code.
 */
export class InputError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InputError';
  }
}
