// A server on the official TypeScript SDK, of revision 2025-11-25, whose streams can be resumed:
// node resumable.mjs [--port N]
//
// The tool "poll" closes its stream and goes on; the tool "cut" loses its connection. Both say something before and
// after that, as does every other tool. The tool "acted" tells how often each of them was called in this session.
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { Server } from '@modelcontextprotocol/server';

const { values: flags } = parseArgs({ options: { port: { type: 'string', default: '0' } } });

// Events keeps what was sent, so that a client can come back for it.
class Events {
  all = [];
  async storeEvent(stream, message) {
    this.all.push({ stream, message });
    return `${stream}_${this.all.length}`;
  }
  async getStreamIdForEventId(id) { return this.all[Number(id.split('_').pop()) - 1]?.stream; }
  async replayEventsAfter(id, { send }) {
    const stream = await this.getStreamIdForEventId(id);
    for (let i = Number(id.split('_').pop()); i < this.all.length; i++) {
      const event = this.all[i];
      if (event.stream === stream && event.message.jsonrpc) await send(`${stream}_${i + 1}`, event.message);
    }
    return stream;
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const sockets = new Map(); // from the tool of a request to the socket of its answer

function newServer() {
  const acted = {};
  const server = new Server({ name: 'resumable', version: '1' }, { capabilities: { tools: {}, logging: {} } });
  server.setRequestHandler('tools/list', async () => ({ tools: ['poll', 'cut', 'other', 'acted'].map((name) => ({ name, inputSchema: { type: 'object' } })) }));
  server.setRequestHandler('tools/call', async ({ params }, ctx) => {
    const text = (said) => ({ content: [{ type: 'text', text: said }] });
    if (params.name === 'acted') return text(JSON.stringify(acted));
    acted[params.name] = (acted[params.name] ?? 0) + 1;
    const say = (data) => ctx.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } });
    await say('before');
    await pause(100); // until the event has left
    if (params.name === 'poll') ctx.http.closeSSE();
    if (params.name === 'cut') sockets.get('cut').destroy();
    await pause(100);
    await say('after');
    await pause(300);
    return text('done');
  });
  return server;
}

const sessions = new Map();
const web = createServer(async (req, res) => {
  let body = '';
  for await (const chunk of req) body += chunk;
  const message = body && JSON.parse(body);
  if (message.method === 'tools/call') sockets.set(message.params.name, res.socket);
  let transport = sessions.get(req.headers['mcp-session-id']);
  if (!transport && message.method === 'initialize') {
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => `${crypto.randomUUID()}-${process.env.CANARY ?? ''}`,
      onsessioninitialized: (id) => { sessions.set(id, transport); },
      eventStore: new Events(), retryInterval: 50,
    });
    await newServer().connect(transport);
  }
  if (!transport) return res.writeHead(404).end();
  await transport.handleRequest(req, res, message || undefined);
});
web.listen(Number(flags.port), '127.0.0.1', () => console.log(`serving http://127.0.0.1:${web.address().port}/mcp`));
