/** The process that writes the database for all processes of a service, a child of their supervisor (writer-keeper.ts). */
import { serve } from '../../process/serve.ts';
import { isWriterStart, WriterServer } from './writer-server.ts';

let writer: WriterServer | undefined;

serve({
  init(payload) {
    if (!isWriterStart(payload)) throw new TypeError('not what a writer starts with');
    writer = new WriterServer(payload);
    return writer.listen();
  },
  methods: {
    drop: (name) => writer?.drop(String(name)),
  },
  close: () => writer?.close(),
});
