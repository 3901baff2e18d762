// A client on the official TypeScript SDK. It goes through the flows of the servers in
// test/peers/proxied: node client.mjs URL, or node client.mjs COMMAND ARGUMENT… for a server on stdio.
// With REVISION=legacy in the environment it is an older client, whom the server's SDK asks with
// a request of its own, and goes through one flow; over HTTP, with a session and the notifications of its stream.
// If WITHOUT has the word resource, no resource asks.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [target, ...args] = process.argv.slice(2);
const silent = (process.env.WITHOUT ?? '').split(' ').includes('resource');
const legacy = process.env.REVISION === 'legacy';
const prefix = 'test_input_required_result_';
const answers = { name: 'Alice', color: 'blue', context: 'tests', ok: true };

const client = new Client({ name: 'e2e', version: '1.0.0' }, {
  capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
  versionNegotiation: { mode: legacy ? 'legacy' : { pin: '2026-07-28' } },
});
client.setRequestHandler('elicitation/create', async ({ params }) => ({
  action: 'accept',
  content: Object.fromEntries(Object.keys(params.requestedSchema.properties).map((field) => [field, answers[field]])),
}));
client.setRequestHandler('sampling/createMessage', async () => ({ role: 'assistant', model: 'e2e', content: { type: 'text', text: 'Good morning,' } }));
client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///work', name: 'work' }] }));
let announced = 0;
client.setNotificationHandler('notifications/prompts/list_changed', async () => { announced++; });
const transport = target.startsWith('http://')
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, env: process.env });
await client.connect(transport);

const names = new Set();
for (let cursor; ;) {
  const page = await client.listTools(cursor === undefined ? undefined : { cursor });
  for (const tool of page.tools) names.add(tool.name);
  cursor = page.nextCursor;
  if (cursor === undefined) break;
}
assert.equal(names.size, 8);

const call = async (tool, want) => assert.equal((await client.callTool({ name: prefix + tool, arguments: {} })).content[0].text, want);
const retry = (tool, requestState, inputResponses) =>
  client.callTool({ name: prefix + tool, arguments: {}, requestState, inputResponses }, { allowInputRequired: true });

if (legacy) {
  await call('request_state', 'state-ok: asked, true');
  if (target.startsWith('http://')) {
    for (let round = 0; announced === 0; round++) { // the stream may begin after the first call
      assert.ok(round < 100, 'no notification came');
      await client.callTool({ name: `${prefix}request_state`, arguments: { announce: true } });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await transport.terminateSession();
  }
  await client.close();
  console.log(`TypeScript client, older revision: 1 flow${announced ? ', notified' : ''}`);
  process.exit();
}
await call('multi_round', 'Alice likes blue');
await assert.rejects(retry('multi_round', 'Mallory|x|y', { step2: { action: 'accept', content: { color: 'red' } } }), { code: -32602 });
await call('multiple_inputs', 'Good morning, Alice, with 1 roots');
const prompt = await client.getPrompt({ name: `${prefix}prompt` });
assert.equal(prompt.messages[0].content.text, 'With this in mind: tests');
const resource = await client.readResource({ uri: 'test://asks' });
assert.equal(resource.contents[0].text, silent ? 'nothing is asked' : 'state-ok: asked, true');

const { requestState: token } = await client.callTool({ name: `${prefix}request_state`, arguments: {} }, { allowInputRequired: true });
const at = token.length >> 1;
const other = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
const accepted = { confirm: { action: 'accept', content: { ok: true } } };
await assert.rejects(retry('request_state', other, accepted), { code: -32602 });
assert.equal((await retry('request_state', token, accepted)).content[0].text, 'state-ok: asked, true');
await client.close();
console.log(`TypeScript client: ${silent ? 4 : 5} flows, 2 rejections`);
