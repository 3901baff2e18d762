// Makes and opens tokens with the TypeScript SDK's request-state codec. The program reads
// one JSON object per line from standard input, and answers each with one JSON object on a
// line.
import { createInterface } from 'node:readline';
import { createRequestStateCodec } from '@modelcontextprotocol/server';

async function answer(asked) {
  const codec = createRequestStateCodec({
    key: Buffer.from(asked.key, 'hex'),
    ...(asked.bind === null ? {} : { bind: () => asked.bind }),
  });
  if (asked.op === 'mint') return { Token: await codec.mint(JSON.parse(asked.payload), {}) };
  let payload;
  try {
    payload = await codec.verify(asked.token, {});
  } catch (error) {
    return { Rejected: String(error.message) };
  }
  return { State: payload };
}

for await (const line of createInterface({ input: process.stdin })) {
  let reply;
  try {
    reply = await answer(JSON.parse(line));
  } catch (error) {
    reply = { Error: String(error) };
  }
  process.stdout.write(JSON.stringify(reply) + '\n');
}
