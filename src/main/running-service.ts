/** What a started service can be told, whether it is one process or a supervisor with its workers. */
export interface RunningService {
  /** Applies what can change live; on a failure the old state stays in force. Never throws. */
  reload(): Promise<void>;
  /** Stops accepting, lets requests in flight finish within `server.shutdown_grace`, closes everything. */
  stop(): Promise<void>;
}
