// Prints what a Node program could see in JSON-RPC messages. See main.go.
import { createInterface } from 'node:readline';

const places = {
  params: ['requestState', 'cursor', 'inputResponses'],
  result: ['requestState', 'nextCursor', 'inputRequests'],
};

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

function spellings(name) {
  const cut = name.split('\0')[0];
  return [cut, cut.replace(/[_-]/g, '')].flatMap((text) => [text, text.toLowerCase(), text.toUpperCase(), text.toUpperCase().toLowerCase()]);
}

function alike(name, wanted) {
  const known = new Set(spellings(wanted));
  return spellings(name).some((text) => known.has(text));
}

function look(message) {
  if (!isObject(message)) return null;
  const seen = { method: [], found: [] };
  for (const [outer, value] of Object.entries(message)) {
    if (alike(outer, 'method')) seen.method.push(typeof value === 'string' ? value : 'not a text');
    for (const [place, names] of Object.entries(places)) {
      if (!alike(outer, place) || !isObject(value)) continue;
      for (const [inner, content] of Object.entries(value)) {
        for (const name of names) {
          if (alike(inner, name)) seen.found.push([`${place}.${name}`, isObject(content) ? { keys: Object.keys(content) } : content]);
        }
      }
    }
  }
  return seen;
}

for await (const line of createInterface({ input: process.stdin })) {
  let seen = null;
  try {
    seen = look(JSON.parse(new TextDecoder().decode(Buffer.from(line, 'base64')))); // as fetch does: without a byte order mark
  } catch {
    // it is not JSON
  }
  console.log(JSON.stringify(seen));
}
