// A client on the official TypeScript SDK whose streams are closed and cut: node resumable.mjs URL, for the server
// test/peers/proxied/typescript/resumable.mjs. It prints what it sees, which must be the same with a proxy in between.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url] = process.argv.slice(2);
let resumed = 0; // how often a stream was resumed
let cutNext = false; // whether to cut the next stream after its first bytes

const transport = new StreamableHTTPClientTransport(new URL(url), {
  reconnectionOptions: { initialReconnectionDelay: 50, maxReconnectionDelay: 500, reconnectionDelayGrowFactor: 1.5, maxRetries: 20 },
  async fetch(address, init) {
    if (new Headers(init?.headers).get('last-event-id')) resumed++;
    if (!cutNext || init?.method !== 'POST') return fetch(address, init);
    cutNext = false;
    const connection = new AbortController();
    const answer = await fetch(address, { ...init, signal: connection.signal });
    const reader = answer.body.getReader();
    let read = false;
    const body = new ReadableStream({
      async pull(controller) {
        if (read) {
          connection.abort();
          controller.error(new TypeError('the connection was cut'));
          return;
        }
        controller.enqueue((await reader.read()).value);
        read = true;
      },
    });
    return new Response(body, { status: answer.status, headers: answer.headers });
  },
});
const client = new Client({ name: 'e2e', version: '1.0.0' }, { versionNegotiation: { mode: 'legacy' } });
let said = [];
client.setNotificationHandler('notifications/message', async ({ params }) => { said.push(params.data); });
await client.connect(transport);

const call = async (name, what) => {
  [said, resumed] = [[], 0];
  const result = await client.callTool({ name, arguments: {} }, { timeout: 30_000 });
  assert.equal(result.content[0].text, 'done');
  assert.ok(resumed > 0, `${what}: the stream was not resumed`);
  console.log(`${what}: ${said.join(', ')}, done`);
};
await call('poll', 'closed by the server');
await call('cut', 'cut at the server');
cutNext = true;
await call('other', 'cut at the client');
const acted = JSON.parse((await client.callTool({ name: 'acted', arguments: {} })).content[0].text);
assert.deepEqual(acted, { poll: 1, cut: 1, other: 1 }, 'a tool acted twice');
await transport.terminateSession();
await client.close();
console.log('each tool acted once');
