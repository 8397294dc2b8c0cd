export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string | undefined;
}
