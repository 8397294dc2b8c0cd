/**
 * What was given (a text, a file, a key) is not what it has to be. The message says what is wrong, without a secret; whoever
 * knows where it came from says that, and gives it the code under which an operator or a client gets it.
 */
export class InputError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InputError';
  }
}
