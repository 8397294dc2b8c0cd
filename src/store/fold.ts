/** A text as searches compare it: upper and lower case alike. What is no text is compared as nothing. */
export const fold = (text: unknown): string => (typeof text === 'string' ? text.toLowerCase() : '');
