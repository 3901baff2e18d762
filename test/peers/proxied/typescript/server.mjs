// A server on the official TypeScript SDK, without its codec:
// node server.mjs [--port N] [--answers json|sse] [--stdio]
//
// It does what ../go/main.go does. It uses the low-level Server, because McpServer does not
// page its lists.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, inputRequired, inputResponse, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const { values: flags } = parseArgs({
  options: { port: { type: 'string', default: '0' }, answers: { type: 'string', default: 'sse' }, stdio: { type: 'boolean' } },
});

const prefix = 'test_input_required_result_';
const names = ['capabilities', 'elicitation', 'list_roots', 'multi_round', 'multiple_inputs', 'request_state', 'sampling', 'tampered_state'];
const page = 3;

const form = (message, field, type) =>
  inputRequired.elicit({ message, requestedSchema: { type: 'object', properties: { [field]: { type } }, required: [field] } });
const sample = (text) => inputRequired.createMessage({ maxTokens: 100, messages: [{ role: 'user', content: { type: 'text', text } }] });
// The Go client cannot read a question without params.
const roots = { ...inputRequired.listRoots(), params: {} };
const nameForm = () => form('What is your name?', 'name', 'string');

// Round has the answers of one round.
class Round {
  constructor(responses) { this.responses = responses ?? {}; }
  form(key, field, type) {
    const response = inputResponse(this.responses, key);
    const value = response.kind === 'elicit' && response.action === 'accept' ? response.content?.[field] : undefined;
    return typeof value === type ? value : undefined;
  }
  sample(key) {
    const { content } = this.responses[key] ?? {};
    const first = Array.isArray(content) ? content[0] : content;
    return first?.type === 'text' ? first.text : undefined;
  }
  roots(key) { return Array.isArray(this.responses[key]?.roots) ? this.responses[key].roots.map((root) => root.uri) : undefined; }
  refused() { return Object.values(this.responses).some((answer) => ['decline', 'cancel'].includes(answer?.action)); }
}

// play is what all the fixtures do. It returns a text or questions, and the value for the
// next state.
function play(name, value, r, can) {
  if (r.refused()) return ['nothing was done'];
  switch (name) {
    case 'elicitation': {
      const given = r.form('user_name', 'name', 'string');
      return [given ? `Hello, ${given}!` : { user_name: nameForm() }];
    }
    case 'sampling':
      return [r.sample('capital_question') || { capital_question: sample('What is the capital of France?') }];
    case 'list_roots': {
      const uris = r.roots('client_roots');
      return [uris ? `${uris.length} roots: ${uris.join(' ')}` : { client_roots: roots }];
    }
    case 'multiple_inputs': {
      const [given, greeting, uris] = [r.form('user_name', 'name', 'string'), r.sample('greeting'), r.roots('client_roots')];
      if (given && greeting && uris) return [`${greeting} ${given}, with ${uris.length} roots`];
      return [{ user_name: nameForm(), greeting: sample('Generate a greeting'), client_roots: roots }, 'all three'];
    }
    case 'multi_round': {
      const [color, given] = [r.form('step2', 'color', 'string'), r.form('step1', 'name', 'string')];
      if (color) return [`${value} likes ${color}`];
      if (given) return [{ step2: form('Step 2: What is your favorite color?', 'color', 'string') }, given];
      return [{ step1: form('Step 1: What is your name?', 'name', 'string') }, 'step 1'];
    }
    case 'capabilities': {
      const questions = {};
      let answered = true;
      if (can.elicitation) {
        questions.user_name = nameForm();
        answered = Boolean(r.form('user_name', 'name', 'string'));
      }
      if (can.sampling) {
        questions.greeting = sample('Generate a greeting');
        answered = answered && Boolean(r.sample('greeting'));
      }
      return [Object.keys(questions).length === 0 || answered ? 'thank you' : questions];
    }
    case 'prompt': {
      const given = r.form('user_context', 'context', 'string');
      return [given ? `With this in mind: ${given}` : { user_context: form('What context should the prompt use?', 'context', 'string') }];
    }
  }
  if (!['request_state', 'tampered_state', 'test://asks'].includes(name)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `${name} is unknown`);
  const ok = r.form('confirm', 'ok', 'boolean');
  if (ok !== undefined && value) return [`state-ok: ${value}, ${ok}`];
  return [{ confirm: form('Please confirm', 'ok', 'boolean') }, 'asked'];
}

function journal(event, kind, text, ctx, request) {
  if (!process.env.JOURNAL) return;
  const user = ctx.http?.req?.headers.get('x-user') ?? '';
  appendFileSync(process.env.JOURNAL, `${JSON.stringify({ event, kind, text, method: ctx.mcpReq.method, request, user })}\n`);
}

const secret = (value) => `${value}|${crypto.randomUUID()}|${process.env.CANARY ?? ''}`;

// serve plays one round, and returns its result. The function complete makes a result of a text.
function serve(ctx, server, name, given, complete) {
  const request = `${name} ${JSON.stringify(given ?? null)}`;
  const state = ctx.mcpReq.requestState();
  if (state !== undefined) journal('got', 'state', state, ctx, request);
  const can = ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? server.getClientCapabilities() ?? {};
  const [said, value] = play(name.replace(prefix, ''), (state ?? '').split('|')[0], new Round(ctx.mcpReq.inputResponses), can);
  if (typeof said === 'string') return complete(said);
  if (value === undefined) return inputRequired({ inputRequests: said });
  const requestState = secret(value);
  journal('issued', 'state', requestState, ctx, request);
  return inputRequired({ inputRequests: said, requestState });
}

function newServer() {
  const server = new Server({ name: 'typescript-backend', version: '1' }, { capabilities: { tools: {}, prompts: {}, resources: {} } });
  server.setRequestHandler('tools/list', async ({ params }, ctx) => {
    const cursor = params?.cursor;
    if (cursor !== undefined) journal('got', 'cursor', cursor, ctx, '');
    const start = cursor === undefined ? 0 : parseInt(cursor, 10);
    const tools = names.slice(start, start + page).map((name) => ({ name: prefix + name, inputSchema: { type: 'object' } }));
    if (start + page >= names.length) return { tools };
    const nextCursor = secret(start + page);
    journal('issued', 'cursor', nextCursor, ctx, '');
    return { tools, nextCursor };
  });
  server.setRequestHandler('tools/call', async ({ params }, ctx) =>
    serve(ctx, server, params.name, params.arguments, (text) => ({ content: [{ type: 'text', text }] })));
  server.setRequestHandler('prompts/list', async () => ({ prompts: [{ name: `${prefix}prompt` }] }));
  server.setRequestHandler('prompts/get', async ({ params }, ctx) =>
    serve(ctx, server, params.name, params.arguments, (text) => ({ messages: [{ role: 'user', content: { type: 'text', text } }] })));
  server.setRequestHandler('resources/list', async () => ({ resources: [{ uri: 'test://asks', name: 'asks' }] }));
  server.setRequestHandler('resources/read', async ({ params }, ctx) =>
    serve(ctx, server, params.uri, undefined, (text) => ({ contents: [{ uri: params.uri, text }] })));
  return server;
}

if (flags.stdio) {
  serveStdio(newServer);
} else {
  const handler = createMcpHandler(newServer, { responseMode: flags.answers });
  const node = toNodeHandler({
    async fetch(request, options) {
      return new URL(request.url).pathname === '/mcp' ? handler.fetch(request, options) : new Response(null, { status: 404 });
    },
  });
  const [fromHere, byThisOrigin] = [localhostHostValidation(), localhostOriginValidation()];
  const web = createServer((req, res) => {
    if (fromHere(req, res) && byThisOrigin(req, res)) void node(req, res);
  });
  web.listen(Number(flags.port), '127.0.0.1', () => console.log(`serving http://127.0.0.1:${web.address().port}/mcp`));
}
