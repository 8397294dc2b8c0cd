/**
 * Carries TCP connections from this machine's loopback into Dogtag's network namespace, which has a loopback of its own
 * and nothing else; TLS goes through untouched.
 *
 * usage: node relay.js PID PORT FILE
 *
 * The first process listens on an ephemeral loopback port here and hands that socket to a second one, started inside the
 * network namespace of the process PID, which connects each connection to PORT there. FILE gets the second one's process
 * id and the port here, once it is ready; then the first one ends.
 */
import { fork } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';

const [first, port, file] = process.argv.slice(2);

if (process.send === undefined) outside();
else inside();

function outside() {
  const server = createServer();
  server.listen(0, '127.0.0.1', () => {
    const child = fork(import.meta.filename, ['', port], {
      execPath: 'nsenter',
      execArgv: [`--net=/proc/${first}/ns/net`, process.execPath],
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    child.once('exit', () => process.exit(1));
    child.once('message', () => {
      writeFileSync(`${file}.new`, `${child.pid} ${server.address().port}\n`);
      renameSync(`${file}.new`, file);
      process.exit(0);
    });
    child.send('listen', server);
  });
}

function inside() {
  process.once('message', (_, server) => {
    server.on('connection', (client) => relay(client, connect(Number(port), '127.0.0.1')));
    process.send('ready');
  });
}

/** Both ways; what ends or breaks on one side ends or breaks on the other. */
function relay(client, target) {
  for (const [from, to] of [
    [client, target],
    [target, client],
  ]) {
    from.pipe(to);
    from.on('error', () => to.resetAndDestroy());
    from.on('close', () => to.destroySoon());
  }
}
