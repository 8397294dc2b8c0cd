/** Folders of tests. */
import { rmSync } from 'node:fs';

/**
 * Removes a folder. A program that was just ended may still write there, so it tries again for up to a minute: Node's
 * `rmSync` rounds a delay below a second to none.
 */
export function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 1000 });
}
