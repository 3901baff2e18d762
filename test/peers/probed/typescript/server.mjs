// A server on the official TypeScript SDK, for the probe to attack:
// node server.mjs [--port N] KIND
//
// Three kinds, as the SDK's page "input_required" and the comments in its types show them:
//
//   plain  without a codec: the state crosses the wire as the handler wrote it.
//   codec  with createRequestStateCodec in its default use: an HMAC and ten minutes.
//   bound  the same, with the binding that the comment on its option `bind` shows: the method
//          and the authenticated client. It names neither the tool nor the arguments.
//
// The page says that the SDK protects no state by itself, that what comes back is under the
// attacker's control, and that the codec signs and does not encrypt.
//
// The SDK's documented use: the codec and its hook, requireBearerAuth with a verifier, and how
// a question is asked. The handler's own: what the state contains, and that it is believed.
// McpServer does not page its lists.
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
  acceptedContent, createMcpHandler, createRequestStateCodec, inputRequired, inputResponse, McpServer, OAuthError, OAuthErrorCode, requireBearerAuth,
} from '@modelcontextprotocol/server';
import * as z from 'zod/v4';

const { values: { port }, positionals: [kind] } = parseArgs({ options: { port: { type: 'string', default: '0' } }, allowPositionals: true });

const newCodec = (options) => createRequestStateCodec({ key: crypto.getRandomValues(new Uint8Array(32)), ...options });
const codec = {
  plain: () => undefined,
  codec: () => newCodec(),
  bound: () => newCodec({ bind: (ctx) => JSON.stringify([ctx.mcpReq.method, ctx.http?.authInfo?.clientId ?? '']) }),
}[kind]();

const Confirmation = z.object({ ok: z.boolean() });
const text = (said) => ({ content: [{ type: 'text', text: said }] });

// remembered returns what the handler wrote into the state. The codec's hook checks the state
// and then hands over its payload. Without the hook, the state is the text as it came.
function remembered(ctx) {
  const state = ctx.mcpReq.requestState();
  return typeof state === 'string' ? JSON.parse(state) : state;
}

async function ask(env, build, ctx) {
  const state = { step: 'confirm', env };
  return inputRequired({
    inputRequests: {
      confirm: inputRequired.elicit({ message: `Really do this to ${env}, build ${build}?`, requestedSchema: Confirmation }),
    },
    requestState: codec ? await codec.mint(state, ctx) : JSON.stringify(state),
  });
}

// confirmed returns a handler that asks before it does something.
const confirmed = (done) => async ({ env, build }, ctx) => {
  const response = inputResponse(ctx.mcpReq.inputResponses, 'confirm');
  if (response.kind !== 'elicit') return ask(env, build, ctx);
  if (!acceptedContent(ctx.mcpReq.inputResponses, 'confirm', Confirmation)?.ok) return text('nothing was done');
  // The handler believes what came back. Without a state the argument counts, as in the SDK's
  // example mrtr.
  return text(`${done} ${remembered(ctx)?.env ?? env} build ${build}`);
};

// The SDK builds a server for every request.
function newServer() {
  const server = new McpServer(
    { name: `typescript-${kind}`, version: '1' },
    codec ? { requestState: { verify: codec.verify } } : {},
  );
  const inputSchema = z.object({ env: z.string(), build: z.int() });
  server.registerTool('deploy', { description: 'Deploys a build.', inputSchema }, confirmed('deployed'));
  server.registerTool('rollback', { description: 'Rolls a build back.', inputSchema }, confirmed('rolled back'));
  return server;
}

// verifier knows two bearer tokens.
const verifier = {
  async verifyAccessToken(token) {
    const user = { 'alice-token': 'alice', 'bob-token': 'bob' }[token];
    if (!user) throw new OAuthError(OAuthErrorCode.InvalidToken, 'unknown token');
    return { token, clientId: user, scopes: [], expiresAt: Math.floor(Date.now() / 1000) + 3600 };
  },
};

const gate = requireBearerAuth({ verifier });
const handler = createMcpHandler(newServer);
const serve = toNodeHandler({
  async fetch(request, options) {
    if (new URL(request.url).pathname !== '/mcp') return new Response(null, { status: 404 });
    const authInfo = await gate(request);
    return authInfo instanceof Response ? authInfo : handler.fetch(request, { ...options, authInfo });
  },
});
const [fromHere, byThisOrigin] = [localhostHostValidation(), localhostOriginValidation()];
const web = createServer((req, res) => {
  if (fromHere(req, res) && byThisOrigin(req, res)) void serve(req, res);
});
web.listen(Number(port), '127.0.0.1', () => console.log(`serving http://127.0.0.1:${web.address().port}/mcp`));
