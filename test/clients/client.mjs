// The TypeScript SDK's client goes through the deploy flow, and through the booking flow
// if it gets a URL for it, on both revisions: node client.mjs DEPLOY-URL [BOOKING-URL]
//
// With "late", its user answers too late, and it must read what it gets:
// node client.mjs late URL TOOL TEXT [legacy]
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [deploy, booking, ...rest] = process.argv.slice(2);

// call calls a tool as a user who thinks for so many milliseconds, and answers a form by its fields.
async function call(mode, url, tool, answers, thinks = 0) {
  const asked = [];
  const client = new Client({ name: 'e2e', version: '1.0.0' }, {
    capabilities: { elicitation: { form: {} }, sampling: {} },
    versionNegotiation: { mode },
  });
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params.message);
    await new Promise((done) => setTimeout(done, thinks));
    const fields = Object.keys(params.requestedSchema.properties);
    return { action: 'accept', content: Object.fromEntries(fields.map((field) => [field, answers[field]])) };
  });
  client.setRequestHandler('sampling/createMessage', async () => {
    asked.push('sample');
    return { role: 'assistant', model: 'e2e', content: { type: 'text', text: 'Looking forward!' } };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: 'Bearer alice-token' } },
  }));
  const result = await client.callTool(tool);
  await client.close();
  return { result, asked };
}

for (const mode of [{ pin: '2026-07-28' }, 'legacy']) {
  const name = `TypeScript client, ${mode.pin ?? mode}`;
  if (deploy === 'late') {
    if (mode === 'legacy' && !rest.includes(mode)) continue;
    const { result } = await call(mode, booking, { name: rest[0], arguments: {} }, { ok: true }, 1000);
    assert.equal(result.isError, true);
    assert.equal(result.content[0].text, rest[1]);
    console.log(`${name}, too late: ${result.content[0].text}`);
    continue;
  }
  const deployed = await call(mode, deploy, { name: 'deploy', arguments: { service: 'frontend', version: '1.4.2' } }, { ok: true, name: 'eu' });
  assert.equal(deployed.result.content[0].text, 'deployed frontend 1.4.2 in eu, 10% of traffic');
  assert.deepEqual(deployed.asked, ['Really do this to frontend 1.4.2?', 'In which region?']);
  console.log(`${name}: ${deployed.result.content[0].text}`);

  if (!booking) continue;
  const booked = await call(mode, booking, { name: 'book', arguments: { city: 'Rome' } }, { name: 'Ada', bags: 2, flight: 'TS101', ok: true });
  const { text } = booked.result.structuredContent;
  assert.equal(text, 'booked Ada on flight TS101 to Rome for 180');
  assert.equal(booked.asked.length, 3);
  console.log(`${name}: ${text}`);
}
