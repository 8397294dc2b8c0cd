/** Every error code there is: nothing else compiles. docs/reference/errors.md is made of this. */
import { ADMIN_ERRORS } from './admin.ts';
import { AUTHENTICATION_ERRORS } from './authentication.ts';
import { CA_ERRORS } from './ca.ts';
import { REQUEST_ERRORS } from './certificate-request.ts';
import { GENERATED_KEY_ERRORS } from './generated-keys.ts';
import { HTTP_ERRORS } from './http.ts';
import { SERVICE_ERRORS } from './service.ts';

export const ERRORS = {
  ...HTTP_ERRORS,
  ...AUTHENTICATION_ERRORS,
  ...REQUEST_ERRORS,
  ...GENERATED_KEY_ERRORS,
  ...CA_ERRORS,
  ...ADMIN_ERRORS,
  ...SERVICE_ERRORS,
} as const;

type Errors = typeof ERRORS;

/** Stable: tests, the admin API and the audit log rely on them. */
export type ErrorCode = keyof Errors;

type OneOf<T> = T extends readonly (infer Each)[] ? Each : T;

export type ErrorStatus = OneOf<Errors[ErrorCode]['status']>;

export type CodeOf<Status extends number> = {
  [Code in ErrorCode]: Status extends OneOf<Errors[Code]['status']> ? Code : never;
}[ErrorCode];
