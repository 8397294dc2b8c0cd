/** A part of the service that has something to start or to stop. */
export interface Part {
  /** Called once, before any part starts: takes what another program may have taken. */
  bind?(): Promise<void>;
  /** Called once, after the parts before it have started. */
  start?(): void | Promise<void>;
  /** Called at most once, also where its start failed, or was not reached. */
  stop?(): void | Promise<void>;
}
