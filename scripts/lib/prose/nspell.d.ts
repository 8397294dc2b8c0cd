/** The part of nspell that spelling.ts uses; the package has no types. */
declare module 'nspell' {
  interface Speller {
    correct(word: string): boolean;
    suggest(word: string): string[];
  }
  export default function nspell(dictionary: { readonly aff: Uint8Array; readonly dic: Uint8Array }): Speller;
}
