// The TypeScript SDK's client goes through the deploy flow, on both revisions:
// node client.mjs URL
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

for (const mode of [{ pin: '2026-07-28' }, 'legacy']) {
  const asked = [];
  const client = new Client({ name: 'e2e', version: '1.0.0' }, {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode },
  });
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params.message);
    const field = Object.keys(params.requestedSchema.properties)[0];
    return { action: 'accept', content: { [field]: field === 'ok' ? true : 'eu' } };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2]), {
    requestInit: { headers: { Authorization: 'Bearer alice-token' } },
  }));
  const result = await client.callTool({ name: 'deploy', arguments: { service: 'frontend', version: '1.4.2' } });
  assert.equal(result.content[0].text, 'deployed frontend 1.4.2 in eu, 10% of traffic');
  assert.deepEqual(asked, ['Really do this to frontend 1.4.2?', 'In which region?']);
  await client.close();
  console.log(`TypeScript client, ${mode.pin ?? mode}: ${result.content[0].text}`);
}
