// A second implementation of docs/token.md, written from that page alone.
// It checks files of fixed cases:  node verify.mjs native.json cursors.json handles.json
import { createDecipheriv, createHash, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';

// Refused is thrown where the page says that something is rejected or refused.
// Every other error is a fault in the file or in this script, and never counts
// as a rejection.
class Refused extends Error {}
const refuse = (why) => { throw new Refused(why); };
const must = (ok, why) => { if (!ok) throw new Error(why); };

// ---- Bytes

// cat joins bytes, ASCII texts and arrays of these.
const cat = (...parts) => Buffer.concat(parts.flat().map((p) => (typeof p === 'string' ? Buffer.from(p, 'latin1') : p)));
const sha256 = (...parts) => createHash('sha256').update(cat(...parts)).digest();
const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32BE(n); return b; };
const i64 = (n) => { const b = Buffer.alloc(8); b.writeBigInt64BE(n); return b; };
const frame = (bytes) => cat(u32(bytes.length), bytes);

function utf8(text) {
  must(typeof text === 'string' && text.isWellFormed(), 'the file has something else where a text belongs');
  return Buffer.from(text, 'utf8');
}

function hex(text) {
  must(typeof text === 'string' && /^([0-9a-f]{2})*$/.test(text), `not lower-case hex: ${text}`);
  return Buffer.from(text, 'hex');
}

// Node's decoder is lenient: it skips padding, white space and foreign
// characters, reads the standard alphabet too, and ignores left-over bits. All
// of these texts differ from the one that the bytes are written as.
function base64url(text) {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : refuse('not the one base64url text of its bytes');
}

// decodeUTF8 keeps a byte order mark, with which no JSON text begins.
function decodeUTF8(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refuse('not valid UTF-8');
  }
}

// ---- Keys

function checkSecret(secret) {
  must(secret.length >= 32 && secret.length <= 1024, 'a secret has 32 to 1024 bytes');
  must(secret.some((b) => b !== secret[0]), 'all bytes of the secret are the same');
  return secret;
}

function parseKeyText(text) {
  const prefix = 'tripseal_key1_';
  must(typeof text === 'string' && text.startsWith(prefix), `a key's text begins with ${prefix}`);
  const bytes = base64url(text.slice(prefix.length));
  must(bytes.length >= 4, "the key's text is too short");
  const secret = bytes.subarray(0, -4);
  must(sha256('tripseal/1 key checksum', secret).subarray(0, 4).equals(bytes.subarray(-4)), "the key's checksum is wrong");
  return checkSecret(secret);
}

// An empty salt and none are the same in HKDF: HMAC pads both to a block of zeros.
const hkdf = (secret, info, n) => Buffer.from(hkdfSync('sha256', secret, '', info, n));
const keyID = (secret) => hkdf(secret, 'tripseal/1 key id', 4);
const stateKey = (secret) => hkdf(secret, 'tripseal/1 state aes-256-gcm', 32);
const cursorKey = (secret) => hkdf(secret, 'tripseal/1 cursor aes-256-gcm', 32);
const handleKey = (secret) => hkdf(secret, 'tripseal/1 handle aes-256-gcm', 32);

// ---- The token

function openToken(token, secret, prefix = 'ms1.', key = stateKey(secret)) {
  must(typeof token === 'string', 'the token is not a text');
  if (!token.startsWith(prefix)) refuse(`the prefix is not ${prefix}`);
  const bytes = base64url(token.slice(4));
  if (bytes.length < 4 + 12 + 16) refuse('the token is too short');
  const id = bytes.subarray(0, 4);
  if (!id.equals(keyID(secret))) refuse('the key id is not in the ring');
  const gcm = createDecipheriv('aes-256-gcm', key, bytes.subarray(4, 16), { authTagLength: 16 });
  gcm.setAAD(cat(prefix, id));
  gcm.setAuthTag(bytes.subarray(-16));
  const plaintext = gcm.update(bytes.subarray(16, -16));
  try {
    return cat(plaintext, gcm.final());
  } catch {
    return refuse('the tag is wrong');
  }
}

// ---- The record

// parseRecord returns the claims in the shape of the file's.
function parseRecord(record) {
  let at = 0;
  const take = (n) => {
    if (record.length - at < n) refuse('the record is cut short');
    at += n;
    return record.subarray(at - n, at);
  };
  const uint = (n) => take(n).readUIntBE(0, n);
  const digest = () => take(16).toString('hex');

  if (uint(1) !== 0x53) refuse('the purpose is not "S"');
  if (uint(1) !== 1) refuse('the version is not known');
  const flags = uint(1);
  if (flags & ~15) refuse('a flag is not known');
  const issued = uint(6), lifetime = uint(5), age = uint(5), round = uint(2);
  if (lifetime < 1) refuse('the lifetime is 0');
  if (round < 1) refuse('the round is 0');
  const claims = { issued, expires: issued + lifetime, flow_start: issued - age, round };
  claims.flow = digest(); // no digest, but of the same size
  claims.request_digest = digest();
  claims.arguments_digest = digest();
  if (flags & 2) claims.audience_digest = digest();
  if (flags & 4) claims.principal_digest = digest();

  claims.questions = [];
  const count = uint(1);
  if (count > 64) refuse('there are more than 64 questions');
  for (let i = 0; i < count; i++) {
    const kind = uint(1), length = uint(1);
    if (kind < 1 || kind > 4) refuse('a kind of question is not known');
    if (length > 128) refuse('the key of a question is too long');
    const question = { key: decodeUTF8(take(length)), kind };
    if (claims.questions.some((q) => q.key === question.key)) refuse('two questions have the same key');
    claims.questions.push(question);
  }

  const rest = take(record.length - at);
  if (flags & 1) claims.state = rest.toString('hex');
  else if (rest.length > 0) refuse('there are bytes after the last question, and no state');
  else if (flags & 8) refuse('package elicit wrote a state, and there is none');
  if (flags & 8) claims.elicit = true;
  return claims;
}

// ---- The digests

// argumentsDigest is D of the text's bytes. Arguments that are absent
// (undefined), empty or null count as {}.
function argumentsDigest(bytes) {
  let stream = bytes === undefined || bytes.length === 0 ? cat('z') : streamOf(bytes);
  if (stream.equals(cat('z'))) stream = cat('o', u32(0));
  return sha256(stream);
}

// requestDigests returns the digests of a request in the shape of the claims.
function requestDigests(request, flowHex) {
  const { method, target, arguments: args, audience, principal } = request;
  if (audience === '' || principal === '') refuse('an empty audience or principal does not exist');
  const flow = hex(flowHex);
  const short = (...parts) => sha256(...parts).subarray(0, 16).toString('hex');
  const absent = args === undefined || method === 'resources/read';
  const r = sha256('ms1r', flow, frame(utf8(method)), frame(utf8(target)));
  const d = argumentsDigest(absent ? undefined : utf8(args));
  const digests = {
    request_digest: r.subarray(0, 16).toString('hex'),
    arguments_digest: d.subarray(0, 16).map((byte, i) => byte ^ r[16 + i]).toString('hex'),
  };
  if (audience !== undefined) digests.audience_digest = short('ms1s', frame(utf8(audience)));
  if (principal !== undefined) digests.principal_digest = short('ms1p', flow, frame(utf8(principal)));
  return digests;
}

// verify opens a token for a request and returns its claims. It does all that
// the page asks for but the checks of time and policy.
function verify(token, secret, request) {
  const claims = parseRecord(openToken(token, secret));
  const digests = requestDigests(request, claims.flow);
  for (const name of ['request_digest', 'arguments_digest', 'audience_digest', 'principal_digest']) {
    if (claims[name] !== digests[name]) refuse(`the ${name} is not that of the request`);
  }
  return claims;
}

// ---- The arguments' stream: a strict reader of JSON that writes it on the way

function streamOf(bytes) {
  if (bytes.length > 16 << 20) refuse('the text is longer than 16 MiB');
  const text = decodeUTF8(bytes);
  let at = 0;

  const space = () => { while (' \t\n\r'.includes(text[at] ?? 'end')) at++; };
  const accept = (token) => text.startsWith(token, at) && ((at += token.length), true);
  const expect = (token) => accept(token) || refuse(`not JSON: no ${token} at ${at}`);

  function string() { // returns UTF-16 code units, with the escapes resolved
    expect('"');
    let units = '';
    for (let from = at; ; from = at) {
      while (text.charCodeAt(at) >= 0x20 && text[at] !== '"' && text[at] !== '\\') at++;
      units += text.slice(from, at);
      if (accept('"')) return units;
      expect('\\'); // or a control character, or the end
      const plain = '"\\/bfnrt'.indexOf(text[at] ?? 'end');
      const [, code] = /^u([0-9a-fA-F]{4})/.exec(text.slice(at, at + 5)) ?? [];
      if (plain < 0 && !code) refuse(`not JSON: no escape at ${at}`);
      units += code ? String.fromCharCode(parseInt(code, 16)) : '"\\/\b\f\n\r\t'[plain];
      at += code ? 5 : 1;
    }
  }

  function number() {
    const digits = () => {
      const from = at;
      while (text[at] >= '0' && text[at] <= '9') at++;
      return text.slice(from, at) || refuse(`not JSON: no digit at ${at}`);
    };
    const start = at;
    const sign = accept('-') ? '-' : '+';
    const whole = digits();
    if (whole.length > 1 && whole[0] === '0') refuse('not JSON: a leading zero');
    const fraction = accept('.') ? digits() : '';
    let exponent = 0n;
    if (accept('e') || accept('E')) {
      const minus = accept('-') || (accept('+'), false);
      const written = digits();
      if (written.length > 18) refuse('the exponent has more than 18 digits');
      exponent = minus ? -BigInt(written) : BigInt(written);
    }
    if (at - start > 800 && /[.eE]/.test(text.slice(start, at))) refuse('the number has more than 800 characters');
    const all = whole + fraction;
    let first = 0, end = all.length;
    while (first < end && all[first] === '0') first++;
    while (end > first && all[end - 1] === '0') end--;
    exponent += BigInt(all.length - end) - BigInt(fraction.length);
    return cat('n', sign, frame(cat(all.slice(first, end))), i64(first === end ? 0n : exponent));
  }

  // list reads what is between the brackets of an array or object.
  function list(close, depth, item) {
    if (depth > 128) refuse('nested more than 128 deep');
    const items = [];
    space();
    if (accept(close)) return items;
    do { items.push(item()); } while (accept(','));
    expect(close);
    return items;
  }

  // spaced reads something with white space around it.
  const spaced = (read) => { space(); const got = read(); space(); return got; };
  const value = (depth) => spaced(() => bare(depth));

  function member(depth) {
    const units = spaced(string);
    if (!units.isWellFormed()) refuse('a member name with half a surrogate pair');
    const name = utf8(units);
    expect(':');
    return { name, stream: cat(frame(name), value(depth)) };
  }

  function bare(depth) { // depth counts the arrays and objects around it
    if (accept('null')) return cat('z');
    if (accept('false')) return cat('f');
    if (accept('true')) return cat('t');
    if (text[at] === '"') return cat('s', frame(wtf8(string())));
    if (accept('[')) {
      const items = list(']', depth + 1, () => value(depth + 1));
      return cat('a', u32(items.length), items);
    }
    if (!accept('{')) return number();
    const members = list('}', depth + 1, () => member(depth + 1));
    const sorted = members.toSorted((a, b) => Buffer.compare(a.name, b.name));
    if (sorted.some((m, i) => i > 0 && m.name.equals(sorted[i - 1].name))) refuse('two members of one name');
    const alike = members.some((m, i) => members.some((n, k) => k < i && areAlike(m.name.toString(), n.name.toString())));
    return cat(alike ? 'O' : 'o', u32(members.length), (alike ? members : sorted).map((m) => m.stream));
  }

  const stream = value(0);
  return at === text.length ? stream : refuse(`not JSON: text after the value, at ${at}`);
}

// areAlike says whether two names are the same number, or equal but for upper and lower case. Of
// the flags, i ignores case, and u makes it the simple case folding of Unicode.
const areAlike = (a, b) => areOneNumber(numberOf(a), numberOf(b)) ||
  new RegExp(`^${a.replace(/[^\p{L}\p{M}\p{N}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`)}$`, 'iu').test(b);

const areOneNumber = (m, n) => m !== undefined && n !== undefined &&
  (m.every || n.every || m.float32 === n.float32 || m.float64 === n.float64);

// numberOf reads a name as a number. It returns nothing if the name is none.
function numberOf(name) {
  if (!/^[+-]?[0-9.in]/i.test(name)) return undefined;
  const text = name.replaceAll('_', '');
  const rounded = (float64, float32 = float64) => ({ float64, float32 });
  if (/^null$/i.test(text)) return rounded(0);
  if (/^([+-]?(inf|infinity|nan)|[+-]?0x[0-9a-fxp.+-]*p[0-9a-fxp.+-]*|[0-9.e+-]{33,})$/i.test(text)) return { every: true };
  const parts = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:e([+-]?[0-9]+))?$/i.exec(text);
  if (!parts || !(parts[2] || parts[3])) return undefined;
  const [, sign, whole, fraction = '', exponent = 0] = parts;
  const digits = (whole + fraction).replace(/^0+/, ''), power = Number(exponent) - fraction.length;
  const factor = sign === '-' ? -1 : 1, magnitude = digits.length - 1 + power; // of the first digit
  if (digits === '' || magnitude < -38) return rounded(0);
  if (magnitude >= 38) return rounded(factor * Infinity);
  const float64 = Number(`${digits}e${power}`);
  return rounded(factor * float64, factor * nearestFloat32(digits, power, float64));
}

// nearestFloat32 returns the binary32 that is nearest to digits × 10^power. Math.fround would round
// a second time. This matters if float64 is halfway between two of them.
function nearestFloat32(digits, power, float64) {
  const near = Float32Array.of(float64), other = near.slice();
  new Int32Array(other.buffer)[0] += float64 > near[0] ? 1 : -1;
  if (near[0] + other[0] !== 2 * float64) return near[0];
  const scaled = (n, p) => n * 10n ** BigInt(Math.max(p, 0));
  const exact = scaled(BigInt(digits), power) << 200n, halfway = scaled(BigInt(float64 * 2 ** 200), -power);
  if (exact === halfway) return near[0];
  return (exact > halfway) === (near[0] > float64) ? near[0] : other[0];
}

// wtf8 writes UTF-16 code units as UTF-8, and a surrogate without a partner in
// the three bytes of its code point. Iterating joins the pairs.
function wtf8(units) {
  return units.isWellFormed() ? Buffer.from(units) : cat(Array.from(units, (c) => {
    const n = c.codePointAt(0);
    return c.isWellFormed() ? Buffer.from(c) : Buffer.from([n >> 12 | 0xe0, n >> 6 & 63 | 128, n & 63 | 128]);
  }));
}

// ---- The file

// same compares two values of JSON, and names the first place where they differ.
function same(got, want, where) {
  if (got === null || want === null || typeof got !== 'object' || typeof want !== 'object') {
    must(got === want, `${where}: is ${JSON.stringify(got)}, the file says ${JSON.stringify(want)}`);
    return;
  }
  must(Array.isArray(got) === Array.isArray(want), `${where}: one is an array, the other an object`);
  for (const k of new Set([...Object.keys(got), ...Object.keys(want)])) same(got[k], want[k], `${where}.${k}`);
}

// refusal returns why f refuses, or undefined if it does not.
function refusal(f) {
  try {
    f();
  } catch (e) {
    if (e instanceof Refused) return e.message;
    throw e;
  }
}

function checkVector(v) {
  const secret = checkSecret(hex(v.secret));
  same(parseKeyText(v.key_text).toString('hex'), v.secret, 'secret of key_text');
  same(keyID(secret).toString('hex'), v.key_id, 'key_id');
  same(verify(v.token, secret, v), v.claims, 'claims');
}

function checkDigest(d) {
  must((d.text === undefined) !== (d.text_hex === undefined), 'needs one of text and text_hex');
  must((d.digest === undefined) === (d.refused === true), 'needs one of digest and refused');
  const bytes = d.text === undefined ? hex(d.text_hex) : utf8(d.text);
  if (d.refused) must(refusal(() => argumentsDigest(bytes)), 'is to be refused, and has a digest');
  else same(argumentsDigest(bytes).toString('hex'), d.digest, 'digest');
}

function checkRejected(r) {
  const secret = checkSecret(hex(r.secret));
  const why = refusal(() => verify(r.token, secret, r));
  must(why, 'is to be rejected, and is accepted');
  if (process.env.VERBOSE) console.log(`rejected ${r.name}: ${why}`);
}

// ---- Cursors

// openCursor returns what a cursor says, if it is for the request, half a second
// after the time that the file says it was issued.
function openCursor(v) {
  const record = openToken(v.cursor, checkSecret(hex(v.secret)), 'mc1.', cursorKey(hex(v.secret)));
  if (record.length < 56) refuse('the record is cut short');
  if (record[0] !== 0x43) refuse('the purpose is not "C"');
  if (record[1] !== 1) refuse('the version is not known');
  const who = record[2], issued = record.readUIntBE(3, 6), lifetime = record.readUIntBE(9, 5), page = record.readUInt32BE(14);
  if (who > 2 || lifetime < 1 || page < 1) refuse('a field has a value that it cannot have');
  const length = record.readUInt16BE(54), end = 56 + length;
  if (record.length !== Math.max(128, end) || record.subarray(end).some((b) => b !== 0)) refuse('the padding is not as it must be');
  const service = sha256('mc1s', frame(utf8(v.audience)), frame(utf8(v.epoch)));
  if (!record.subarray(18, 34).equals(service.subarray(0, 16))) refuse('another service');
  const u16 = (n) => Buffer.from([n >> 8, n & 255]);
  const named = (text) => [u16(utf8(text).length), utf8(text)];
  // Who it is for is known to whoever opens it, but for a cursor of everybody's.
  const caller = who === 2 ? 2 : v.user === '' ? 0 : 1;
  const d = argumentsDigest(v.arguments === undefined ? Buffer.alloc(0) : utf8(v.arguments));
  const b = sha256(d.subarray(0, 16), named(v.method), named(v.target), Buffer.from([caller]), utf8(caller === 1 ? v.user : ''));
  if (!record.subarray(34, 50).equals(b.subarray(0, 16))) refuse('another request or user');
  if (!record.subarray(50, 52).equals(d.subarray(16, 18))) must(false, 'the hint at the arguments is wrong');
  const now = v.issued + 500;
  if (issued > now + 60_000) refuse('it is from the future');
  if (now >= issued + lifetime) refuse('it has expired');
  return { who, issued, lifetime, page, position: record.subarray(56, end).toString('hex') };
}

function checkCursor(v) {
  same(openCursor(v), { who: v.who, issued: v.issued, lifetime: v.lifetime, page: v.page, position: v.position }, 'cursor');
}

function checkRejectedCursor(v) {
  must(refusal(() => openCursor(v)), 'is to be rejected, and is accepted');
}

// ---- Handles

// openHandle returns what a handle says, if it is for the caller, half a second after the time
// that the file says it was issued.
function openHandle(v) {
  if (utf8(v.handle).length > 4096) refuse('it is longer than 4096 bytes');
  const record = openToken(v.handle, checkSecret(hex(v.secret)), 'mh1.', handleKey(hex(v.secret)));
  if (record[0] !== 0x48) refuse('the purpose is not "H"');
  if (record[1] !== 1) refuse('the version is not known');
  if (record.length < 63) refuse('the record is cut short');
  const issued = record.readUIntBE(2, 6), lifetime = record.readUIntBE(8, 5);
  if (lifetime < 1) refuse('the lifetime is 0');
  const length = record.readUInt16BE(61), end = 63 + length;
  if (length < 1 || length > 1024) refuse('the id has no length that it may have');
  if (record.length !== Math.max(128, end) || record.subarray(end).some((b) => b !== 0)) refuse('the padding is not as it must be');
  const bound = { audience: ['ms1s', v.audience], kind: ['mh1k', v.kind], user: ['mh1p', v.user] };
  Object.entries(bound).forEach(([name, [label, text]], i) => {
    const digest = sha256(label, frame(utf8(text))).subarray(0, 16);
    if (!record.subarray(13 + 16 * i, 29 + 16 * i).equals(digest)) refuse(`another ${name}`);
  });
  const now = v.issued + 500;
  if (issued > now + 60_000) refuse('it is from the future');
  if (now >= issued + lifetime) refuse('it has expired');
  return { issued, lifetime, id: record.subarray(63, end).toString('hex') };
}

function checkHandle(v) {
  same(openHandle(v), { issued: v.issued, lifetime: v.lifetime, id: v.id }, 'handle');
}

function checkRejectedHandle(r) {
  const why = refusal(() => openHandle(r));
  must(why, 'is to be rejected, and is accepted');
  if (process.env.VERBOSE) console.log(`rejected ${r.name}: ${why}`);
}

// checkAll runs the checks of each section of a file.
function checkAll(path, checks) {
  const file = JSON.parse(readFileSync(path, 'utf8'));
  for (const [section, check] of Object.entries(checks)) {
    must(Array.isArray(file[section]) && file[section].length > 0, `the file has no ${section}`);
    file[section].forEach((entry, i) => {
      try {
        check(entry);
      } catch (e) {
        const name = entry?.name ?? (entry?.text ?? entry?.text_hex ?? '').slice(0, 60);
        throw new Error(`${path} ${section}[${i}] ${JSON.stringify(name)}: ${e.message}`, { cause: e });
      }
    });
  }
  const counts = Object.keys(checks).map((section) => `${file[section].length} ${section}`);
  console.log(`${path}: ${counts.join(', ')}: all as docs/token.md says`);
}

try {
  checkAll(process.argv[2], { vectors: checkVector, digests: checkDigest, rejected: checkRejected });
  checkAll(process.argv[3], { cursors: checkCursor, rejected: checkRejectedCursor });
  checkAll(process.argv[4], { handles: checkHandle, rejected: checkRejectedHandle });
} catch (e) {
  console.error(`verify: ${e.message}`);
  process.exitCode = 1;
}
