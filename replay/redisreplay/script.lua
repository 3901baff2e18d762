-- KEYS: the use, the epoch, and for a call its result
-- ARGV: the operation, the call's id, and what the operation needs
local op, call = ARGV[1], ARGV[2]
local used = redis.call('GET', KEYS[1])

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A use is the letter s and the id of a call, or a letter, the id of a call, its tag, and the end
-- of its lease. The letter is r for a call that runs, and d for one that is done.
local function run(newtag, newlease, ...)
  redis.call('SET', KEYS[1], 'r' .. call .. newtag .. string.format('%.0f', clock() + newlease), ...)
  return 1
end

-- An operation on a token that is not used needs to know since when this server has forgotten
-- nothing. It makes a new epoch if there is none, or if the epoch is not of this server as it is now.
if not used and (op == 'look' or op == 'spend' or op == 'begin') then
  local info, stats = redis.call('INFO', 'replication'), redis.call('INFO', 'stats')
  if not info:find('role:master', 1, true) then return -1 end
  local epoch = redis.call('GET', KEYS[2]) or ''
  local began, server, evicted = epoch:sub(1, 13), epoch:sub(15, 68), epoch:sub(70)
  if #epoch < 83 or not tonumber(began) or not stats:find(evicted .. '\r', 1, true)
    or ARGV[4] ~= '1' and not info:find(server, 1, true) then
    began = string.format('%013.0f', math.max(clock(), ARGV[3])) -- the later, because one of the clocks may be behind
    redis.call('SET', KEYS[2], began .. ' ' .. info:match('master_replid:%x+') .. ' ' .. stats:match('evicted_keys:%d+'))
  end
  if op == 'look' or tonumber(ARGV[5]) < tonumber(began) then return {tonumber(began)} end
  if op == 'begin' then return run(ARGV[7], ARGV[8], 'PX', ARGV[6]) end
  redis.call('SET', KEYS[1], 's' .. call, 'PX', ARGV[6])
  return 1
end

used = used or ''
local kind, holder, tag, lease = used:sub(1, 1), used:sub(2, 17), used:sub(18, 49), tonumber(used:sub(50)) or 0
if op == 'spend' then return kind == 's' and holder == call and 1 or 4 end
if op == 'begin' then
  if kind ~= 'r' and kind ~= 'd' or tag ~= ARGV[7] then return 4 end
  if kind == 'd' then return redis.call('GET', KEYS[3]) or 6 end
  if clock() < lease then return holder == call and 1 or 2 end
  return ARGV[9] == '1' and run(tag, ARGV[8], 'KEEPTTL') or 5
end

if kind == 'd' and holder == call and op == 'end' then return 1 end -- this end was sent again
if kind ~= 'r' or holder ~= call or clock() >= lease then return -2 end
if op == 'renew' then return run(tag, ARGV[3], 'KEEPTTL') end
if op == 'free' then return redis.call('DEL', KEYS[1]) end
local keep = math.min(ARGV[3], redis.call('PTTL', KEYS[1]))
if keep > 0 and #ARGV[4] > 0 then redis.call('SET', KEYS[3], ARGV[4], 'PX', keep) end
redis.call('SET', KEYS[1], 'd' .. call .. tag, 'KEEPTTL')
return 1
