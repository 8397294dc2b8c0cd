/** A small disk of the test's own: a file system in a file, which can become full, or readable only. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const run = (command: string, ...args: string[]): void => {
  execFileSync(command, args, { stdio: 'pipe', timeout: 60_000 });
};

export class Disk {
  #image: string;
  readonly #folder: string;
  #repairs = 0;

  private constructor(image: string, folder: string) {
    this.#image = image;
    this.#folder = folder;
  }

  /**
   * @param folder where it is mounted; exists
   * @param mib its size; the file has holes
   * @throws {Error} where this machine mounts nothing
   */
  static make(image: string, folder: string, mib: number): Disk {
    const file = openSync(image, 'w', 0o600);
    ftruncateSync(file, mib * 2 ** 20);
    closeSync(file);
    run('mkfs.ext4', '-q', '-m', '0', '-F', image);
    const disk = new Disk(image, folder);
    disk.mount();
    return disk;
  }

  mount(): void {
    run('mount', '-o', 'loop', this.#image, this.#folder);
  }

  unmount(): void {
    run('umount', this.#folder);
  }

  /** Takes all room that is left, and gives it back. */
  fill(): void {
    // As much as there is, then whatever a block less would leave.
    for (const size of ['1G', '64M', '1M', '4K'])
      for (let n = 0; n < 4096; n++) if (!this.#take(`filler-${size}-${n}`, size)) break;
  }

  #take(name: string, size: string): boolean {
    try {
      run('fallocate', '-l', size, join(this.#folder, name));
      return true;
    } catch {
      return false;
    }
  }

  empty(): void {
    run('sh', '-c', 'rm -f "$0"/filler-*', this.#folder);
  }

  /** What the kernel does after an error of the device: nothing can be written any more, also by those who have files open. */
  breakDown(): void {
    run('mount', '-o', 'remount,abort', this.#folder);
    try {
      // The abort is carried out with the next change.
      run('touch', join(this.#folder, 'filler-probe'));
    } catch {
      // As it should be.
    }
  }

  /** What an administrator does then. Nobody may have a file open there. */
  repair(): void {
    this.unmount();
    this.#detach();
    // Forced: otherwise it considers the file system clean and keeps the abort flag. Exit code 1: errors were corrected.
    const { status, stdout, stderr } = spawnSync('e2fsck', ['-y', '-f', this.#image], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    if (status !== 0 && status !== 1) throw new Error(`e2fsck: ${status} ${stdout}${stderr}`);
    this.mount();
    this.empty();
  }

  /**
   * Continues with a copy. A process that made a mount namespace in the meantime (a container, Dogtag) still has this file system
   * mounted, and would share the broken one with the next mount.
   */
  #detach(): void {
    const copy = `${this.#image.replace(/\.\d+$/, '')}.${++this.#repairs}`;
    run('cp', '--sparse=always', this.#image, copy);
    rmSync(this.#image);
    this.#image = copy;
  }

  remove(): void {
    this.unmount();
    rmSync(this.#image, { force: true });
  }
}
