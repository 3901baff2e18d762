// Opens one token with the TypeScript SDK's codec, over and over. The first
// line of standard input is the case; every further line is a count, answered
// with the nanoseconds that this many took.
import { createInterface } from 'node:readline';
import { createRequestStateCodec } from '@modelcontextprotocol/server';

let given, codec;
for await (const line of createInterface({ input: process.stdin })) {
  if (given === undefined) {
    given = JSON.parse(line);
    codec = createRequestStateCodec({ key: Buffer.from(given.key, 'hex'), bind: () => given.bind });
    continue;
  }
  let payload;
  const start = process.hrtime.bigint();
  for (let i = 0; i < Number(line); i++) payload = await codec.verify(given.token, {});
  const took = process.hrtime.bigint() - start;
  process.stdout.write((payload === given.state ? took : 'the state differs') + '\n');
}
