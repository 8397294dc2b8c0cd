/** What parts of names are found by, which is filled behind what it tells of. Until then, they are found by looking at each. */
export interface SearchStore {
  /** Whether there is anything that {@link indexForSearch} has not been through. */
  isSearchBehind(): Promise<boolean>;
  /** Goes through some more, so many that nobody waits long for it. `true`: there is more. */
  indexForSearch(): Promise<boolean>;
}
