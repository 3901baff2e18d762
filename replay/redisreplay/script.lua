-- KEYS: the use, its result, the epoch
-- ARGV: the operation, the call's id, and what the operation needs
local op, call = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- since returns when this server began to forget nothing, or nil on a replica. It makes a new epoch
-- if there is none, or if the epoch is not of this server as it is now.
local function since(caller, durable)
  local info = redis.call('INFO', 'replication')
  if not info:find('role:master', 1, true) then return nil end
  local server = durable == '1' and 'durable' or info:match('master_replid:(%x+)')
  local here = ' ' .. server .. ' ' .. redis.call('INFO', 'stats'):match('evicted_keys:(%d+)')
  local epoch = redis.call('GET', KEYS[3])
  local began = epoch and epoch:match('^(%d+) ')
  if not began or epoch ~= began .. here then
    began = string.format('%.0f', math.max(now, caller)) -- the later, because one of the clocks may be behind
    redis.call('SET', KEYS[3], began .. here)
  end
  return tonumber(began)
end

if op == 'look' then return {since(tonumber(ARGV[2]), ARGV[3]) or -1} end

-- A use is the letter s and the id of a call, or a letter, the id of a call, its tag, and the end
-- of its lease. The letter is r for a call that runs, and d for one that is done.
local used = redis.call('GET', KEYS[1])
local kind, holder, tag, lease
if used then
  kind, holder, tag, lease = used:sub(1, 1), used:sub(2, 17), used:sub(18, 49), tonumber(used:sub(50)) or 0
end
local function running(newtag, newlease)
  return 'r' .. call .. newtag .. string.format('%.0f', now + newlease)
end

if op == 'spend' or op == 'begin' then
  local newtag, newlease = ARGV[8], tonumber(ARGV[9])
  if not used then
    local began = since(tonumber(ARGV[3]), ARGV[4])
    if not began then return -1 end
    if tonumber(ARGV[5]) < began + ARGV[6] then return {began} end
    redis.call('SET', KEYS[1], op == 'spend' and 's' .. call or running(newtag, newlease), 'PX', ARGV[7])
    return 1
  end
  if op == 'spend' then return kind == 's' and holder == call and 1 or 4 end
  if kind ~= 'r' and kind ~= 'd' or tag ~= newtag then return 4 end
  if kind == 'd' then return redis.call('GET', KEYS[2]) or 6 end
  if now < lease then return holder == call and 1 or 2 end
  if ARGV[10] ~= '1' then return 5 end
  redis.call('SET', KEYS[1], running(newtag, newlease), 'KEEPTTL')
  return 1
end

if kind == 'd' and holder == call and op == 'end' then return 1 end -- this end was sent again
if kind ~= 'r' or holder ~= call or now >= lease then return -2 end
if op == 'renew' then
  redis.call('SET', KEYS[1], running(tag, tonumber(ARGV[3])), 'KEEPTTL')
elseif op == 'free' then
  redis.call('DEL', KEYS[1])
else
  local keep = math.min(tonumber(ARGV[3]), redis.call('PTTL', KEYS[1]))
  if keep > 0 and #ARGV[4] > 0 then redis.call('SET', KEYS[2], ARGV[4], 'PX', keep) end
  redis.call('SET', KEYS[1], 'd' .. call .. tag, 'KEEPTTL')
end
return 1
