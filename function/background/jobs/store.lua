-- One decision about jobs, atomic; book.py says what each does. KEYS: the prefix of all keys, which
-- has a hash tag, so that a cluster keeps them together. ARGV: what, key, and more.
-- A job is a hash: spec, state, version, changed, ends, tries, token, finisher (the token of who has
-- finished it), lane, owner, call, calls, call_note, and item:N for each target that has been begun.
-- Times are milliseconds of Redis' clock.
-- Sorted sets of keys: queued:LANE by when they count as having come, running by the end of the
-- lease, calls by when the callback is due, ends by when they are over, of:OWNER by when they came.
local prefix, what, key = KEYS[1], ARGV[1], ARGV[2]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local job = prefix .. 'job:' .. key
local running, calls, ends = prefix .. 'running', prefix .. 'calls', prefix .. 'ends'
local LANES = {'interactive', 'standard', 'bulk'}

local function queued(lane) return prefix .. 'queued:' .. lane end
local function record(name) return prefix .. 'job:' .. name end

local function changed(place)
  redis.call('HINCRBY', place, 'version', 1)
  redis.call('HSET', place, 'changed', now)
end

local function ended(state, keep)
  redis.call('HSET', job, 'state', state, 'token', '', 'ends', now + keep)
  redis.call('ZREM', running, key)
  redis.call('ZREM', queued(redis.call('HGET', job, 'lane')), key)
  redis.call('ZADD', ends, now + keep, key)
  if redis.call('HGET', job, 'callback') == '1' then
    redis.call('HSET', job, 'call', 'pending')
    redis.call('ZADD', calls, now, key)
  end
  changed(job)
end

if what == 'open' then -- spec, lane, head start, owner, limit, keep, whether it has a callback
  if redis.call('EXISTS', job) == 1 then return {'old', redis.call('HGETALL', job)} end
  local open = redis.call('ZCARD', running)
  for _, lane in ipairs(LANES) do open = open + redis.call('ZCARD', queued(lane)) end
  if open >= tonumber(ARGV[7]) then return {'full', {}} end
  local over = now + tonumber(ARGV[8])
  redis.call('HSET', job, 'spec', ARGV[3], 'state', 'queued', 'version', 1, 'changed', now,
    'ends', over, 'tries', 0, 'token', '', 'lane', ARGV[4], 'owner', ARGV[6], 'callback', ARGV[9])
  redis.call('ZADD', queued(ARGV[4]), now + tonumber(ARGV[5]), key)
  redis.call('ZADD', prefix .. 'of:' .. ARGV[6], now, key)
  redis.call('ZADD', ends, over, key)
  return {'new', redis.call('HGETALL', job)}
end

if what == 'get' then return redis.call('HGETALL', job) end

if what == 'changed' then -- key and version, again and again
  local found = {}
  for at = 3, #ARGV, 2 do
    if redis.call('HGET', record(ARGV[at]), 'version') ~= ARGV[at + 1] then
      found[#found + 1] = ARGV[at]
      found[#found + 1] = redis.call('HGETALL', record(ARGV[at]))
    end
  end
  return found
end

if what == 'of' then -- owner or '', start, count
  local list = ARGV[3] == '' and ends or prefix .. 'of:' .. ARGV[3]
  local found = {}
  for _, name in ipairs(redis.call('ZREVRANGE', list, ARGV[4], ARGV[4] + ARGV[5] - 1)) do
    found[#found + 1] = redis.call('HGETALL', record(name))
  end
  return found
end

if what == 'take' then -- token, lease, lanes
  local name = redis.call('ZRANGEBYSCORE', running, '-inf', now, 'LIMIT', 0, 1)[1]
  if not name then
    local first, from
    for at = 5, #ARGV do
      local head = redis.call('ZRANGE', queued(ARGV[at]), 0, 0, 'WITHSCORES')
      if head[1] and (not first or tonumber(head[2]) < first) then
        name, first, from = head[1], tonumber(head[2]), queued(ARGV[at])
      end
    end
    if not name then return {} end
    redis.call('ZREM', from, name)
  end
  local place = record(name)
  redis.call('HSET', place, 'state', 'running', 'token', ARGV[3])
  redis.call('HINCRBY', place, 'tries', 1)
  redis.call('ZADD', running, now + tonumber(ARGV[4]), name)
  changed(place)
  return redis.call('HGETALL', place)
end

if what == 'end' then -- keep
  local state = redis.call('HGET', job, 'state')
  if not state then return {'', {}} end
  if state == 'queued' or state == 'running' then
    ended('cancelled', tonumber(ARGV[3]))
  elseif state ~= 'deleted' then
    for _, name in ipairs(redis.call('HKEYS', job)) do
      if string.sub(name, 1, 5) == 'item:' then redis.call('HDEL', job, name) end
    end
    redis.call('HSET', job, 'state', 'deleted')
    redis.call('ZREM', calls, key)
    changed(job)
  end
  return {state, redis.call('HGETALL', job)}
end

if what == 'call' then -- lease
  local name = redis.call('ZRANGEBYSCORE', calls, '-inf', now, 'LIMIT', 0, 1)[1]
  if not name then return {} end
  redis.call('ZADD', calls, now + tonumber(ARGV[3]), name)
  redis.call('HINCRBY', record(name), 'calls', 1)
  return redis.call('HGETALL', record(name))
end

if what == 'called' then -- state, note, again
  if not redis.call('ZSCORE', calls, key) then return {0} end
  redis.call('HSET', job, 'call', ARGV[3], 'call_note', ARGV[4])
  if ARGV[3] == 'pending' then
    redis.call('ZADD', calls, now + tonumber(ARGV[5]), key)
  else
    redis.call('ZREM', calls, key)
  end
  changed(job)
  return {1}
end

if what == 'over' then -- count
  local found = {}
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, ARGV[3])) do
    found[#found + 1] = redis.call('HGETALL', record(name))
  end
  return found
end

if what == 'forget' then
  local owner, lane = unpack(redis.call('HMGET', job, 'owner', 'lane'))
  if owner then
    redis.call('ZREM', prefix .. 'of:' .. owner, key)
    redis.call('ZREM', queued(lane), key)
  end
  redis.call('ZREM', running, key)
  redis.call('ZREM', calls, key)
  redis.call('ZREM', ends, key)
  redis.call('DEL', job)
  return {1}
end

if what == 'ahead' then
  local mine
  for _, lane in ipairs(LANES) do mine = mine or redis.call('ZSCORE', queued(lane), key) end
  if not mine then return {} end
  local ahead = 0
  for _, lane in ipairs(LANES) do
    ahead = ahead + redis.call('ZCOUNT', queued(lane), '-inf', '(' .. mine)
  end
  return {ahead}
end

if what == 'counts' then
  local waiting = 0
  for _, lane in ipairs(LANES) do waiting = waiting + redis.call('ZCARD', queued(lane)) end
  return {waiting, redis.call('ZCARD', running), redis.call('ZCARD', calls)}
end

-- The targets as they are now, from so many words on.
local function targets(from)
  for at = from, #ARGV do redis.call('HSET', job, 'item:' .. (at - from), ARGV[at]) end
end

-- What follows is for who works on it: token, and more.
if what == 'finish' and ARGV[3] ~= '' and redis.call('HGET', job, 'finisher') == ARGV[3] then
  return {1}
end
if ARGV[3] == '' or redis.call('HGET', job, 'token') ~= ARGV[3] then return {0} end
if what == 'renew' then -- lease
  redis.call('ZADD', running, now + tonumber(ARGV[4]), key)
elseif what == 'mark' then -- place, item
  redis.call('HSET', job, 'item:' .. ARGV[4], ARGV[5])
  changed(job)
elseif what == 'finish' then -- state, keep, targets
  targets(6)
  redis.call('HSET', job, 'finisher', ARGV[3])
  ended(ARGV[4], tonumber(ARGV[5]))
elseif what == 'release' then -- again, whether it was a try, targets if they are told
  targets(6)
  redis.call('HSET', job, 'state', 'queued', 'token', '')
  if ARGV[5] == '0' then redis.call('HINCRBY', job, 'tries', -1) end
  redis.call('ZADD', running, now + tonumber(ARGV[4]), key)
  changed(job)
end
return {1}
