-- One decision about leased records, atomic; records.py says what each does. in_memory.py does the
-- same inside the process, and tests play random calls through both.
--
-- KEYS: the prefix of all keys, which has a hash tag, so that a cluster keeps them together.
-- ARGV: what records' keys begin with, the list of leases, what, name, token, and more.
-- A record is a hash. Its fields here: state, token and until (who holds it, and to when), tries,
-- version and changed (grow with each change); event and alias of an event, and for how many
-- milliseconds it is kept; lane, owner, ends, callback and calls of a job, finisher (the token of
-- who has finished it), and item:N for each target that was begun. Views keep further ones.
-- Sorted sets of names: the leases by when they run out, of what is taken over then; queued:LANE by
-- when jobs count as having come; calls by when the callback is due; ends by when jobs are forgotten;
-- of:OWNER by when they came. Times are milliseconds of Redis' clock.
local prefix, base, leases = KEYS[1], ARGV[1], KEYS[1] .. ARGV[2]
local what, name, token = ARGV[3], ARGV[4], ARGV[5]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local record, calls, ends = base .. name, prefix .. 'calls', prefix .. 'ends'
local LANES = {'interactive', 'standard', 'bulk'}

local function queue(lane) return prefix .. 'queued:' .. lane end
local function get(key) return redis.call('HGETALL', base .. key) end

-- Set the fields and values that ARGV has from there on.
local function set(from)
  for at = from, #ARGV, 2 do redis.call('HSET', record, ARGV[at], ARGV[at + 1]) end
end

local function changed(key)
  redis.call('HINCRBY', base .. key, 'version', 1)
  redis.call('HSET', base .. key, 'changed', now)
end

local function lease(key, ms)
  redis.call('HSET', base .. key, 'until', now + ms)
  redis.call('ZADD', leases, 'XX', now + ms, key)
  local keep = redis.call('HGET', base .. key, 'keep')
  if keep then redis.call('PEXPIRE', base .. key, keep) end
end

local function close(state, keep)
  redis.call('HSET', record, 'state', state, 'token', '', 'ends', now + keep)
  redis.call('ZREM', leases, name)
  redis.call('ZREM', queue(redis.call('HGET', record, 'lane')), name)
  redis.call('ZADD', ends, now + keep, name)
  if redis.call('HGET', record, 'callback') == '1' then
    redis.call('HSET', record, 'call', 'pending')
    redis.call('ZADD', calls, now, name)
  end
  changed(name)
end

-- The first of a list that is due; it is due again in so many milliseconds.
local function due(list, again)
  local first = redis.call('ZRANGEBYSCORE', list, '-inf', now, 'LIMIT', 0, 1)[1]
  if first and redis.call('EXISTS', base .. first) == 0 then
    redis.call('ZREM', list, first)
    return nil
  end
  if first then redis.call('ZADD', list, now + again, first) end
  return first
end

-- The first job of these lanes, which leaves its queue for the list of leases.
local function dequeued(from)
  local first, at
  for place = from, #ARGV do
    local head = redis.call('ZRANGE', queue(ARGV[place]), 0, 0, 'WITHSCORES')
    if head[1] and (not at or tonumber(head[2]) < at) then
      first, at = head[1], tonumber(head[2])
    end
  end
  if first then
    redis.call('ZREM', queue(redis.call('HGET', base .. first, 'lane')), first)
    redis.call('ZADD', leases, now, first)
  end
  return first
end

if what == 'get' then return get(name) end

if what == 'take' then -- lease, state, lanes
  local first = due(leases, ARGV[6]) or dequeued(8)
  if not first then return {} end
  redis.call('HSET', base .. first, 'state', ARGV[7], 'token', token)
  redis.call('HINCRBY', base .. first, 'tries', 1)
  lease(first, ARGV[6])
  changed(first)
  return {first, get(first)}
end

if what == 'claim' then -- lease, keep, alias, event
  local known = redis.call('GET', ARGV[8])
  for _, key in ipairs({name, known or name}) do
    local facts = redis.call('HMGET', base .. key, 'state', 'until')
    local left = tonumber(facts[2] or 0) - now
    if facts[1] == 'done' or (facts[1] and left > 0) then return {left, get(key)} end
    if facts[1] == 'accepted' then -- its worker is gone: whoever asks goes on with it
      redis.call('HSET', base .. key, 'token', token)
      lease(key, ARGV[6])
      return {0, {}}
    end
  end
  redis.call('DEL', record)
  redis.call('HSET', record, 'state', 'running', 'token', token, 'keep', ARGV[7],
    'alias', ARGV[8], 'event', ARGV[9])
  lease(name, ARGV[6])
  redis.call('SET', ARGV[8], name, 'PX', ARGV[7])
  return {0, {}}
end

if what == 'settle' then -- keep, alias, fields
  redis.call('ZREM', leases, name)
  redis.call('DEL', record)
  set(8)
  redis.call('PEXPIRE', record, ARGV[6])
  redis.call('SET', ARGV[7], name, 'PX', ARGV[6])
  return {1}
end

if what == 'open' then -- lane, head start, owner, limit, keep, fields
  if redis.call('EXISTS', record) == 1 then return {'old', get(name)} end
  local open = redis.call('ZCARD', leases)
  for _, lane in ipairs(LANES) do open = open + redis.call('ZCARD', queue(lane)) end
  if open >= tonumber(ARGV[9]) then return {'full', {}} end
  local over = now + ARGV[10]
  redis.call('HSET', record, 'state', 'queued', 'version', 1, 'changed', now, 'ends', over,
    'tries', 0, 'token', '', 'lane', ARGV[6], 'owner', ARGV[8])
  set(11)
  redis.call('ZADD', queue(ARGV[6]), now + ARGV[7], name)
  redis.call('ZADD', prefix .. 'of:' .. ARGV[8], now, name)
  redis.call('ZADD', ends, over, name)
  return {'new', get(name)}
end

if what == 'changed' then -- name and version, again and again
  local found = {}
  for at = 6, #ARGV, 2 do
    if redis.call('HGET', base .. ARGV[at], 'version') ~= ARGV[at + 1] then
      found[#found + 1] = ARGV[at]
      found[#found + 1] = get(ARGV[at])
    end
  end
  return found
end

if what == 'of' then -- owner or '', start, count
  local list, found = ARGV[6] == '' and ends or prefix .. 'of:' .. ARGV[6], {}
  for _, key in ipairs(redis.call('ZREVRANGE', list, ARGV[7], ARGV[7] + ARGV[8] - 1)) do
    found[#found + 1] = get(key)
  end
  return found
end

if what == 'over' then -- count
  local found = {}
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, ARGV[6])) do
    found[#found + 1] = get(key)
  end
  return found
end

if what == 'end' then -- keep
  local state = redis.call('HGET', record, 'state')
  if not state then return {'', {}} end
  if state == 'queued' or state == 'running' then
    close('cancelled', ARGV[6])
  elseif state ~= 'deleted' then
    for _, field in ipairs(redis.call('HKEYS', record)) do
      if string.sub(field, 1, 5) == 'item:' then redis.call('HDEL', record, field) end
    end
    redis.call('HSET', record, 'state', 'deleted')
    redis.call('ZREM', calls, name)
    changed(name)
  end
  return {state, get(name)}
end

if what == 'forget' then
  local owner, lane = unpack(redis.call('HMGET', record, 'owner', 'lane'))
  local lists = {leases, calls, ends}
  if owner then lists = {leases, calls, ends, queue(lane), prefix .. 'of:' .. owner} end
  for _, list in ipairs(lists) do redis.call('ZREM', list, name) end
  redis.call('DEL', record)
  return {1}
end

if what == 'call' then -- lease
  local first = due(calls, ARGV[6])
  if not first then return {} end
  redis.call('HINCRBY', base .. first, 'calls', 1)
  return get(first)
end

if what == 'called' then -- again or '', fields
  if redis.call('ZREM', calls, name) == 0 then return {0} end
  set(7)
  if ARGV[6] ~= '' then redis.call('ZADD', calls, now + ARGV[6], name) end
  changed(name)
  return {1}
end

if what == 'ahead' then
  local mine
  for _, lane in ipairs(LANES) do mine = mine or redis.call('ZSCORE', queue(lane), name) end
  if not mine then return {} end
  local ahead = 0
  for _, lane in ipairs(LANES) do
    ahead = ahead + redis.call('ZCOUNT', queue(lane), '-inf', '(' .. mine)
  end
  return {ahead}
end

if what == 'counts' then
  local queued = 0
  for _, lane in ipairs(LANES) do queued = queued + redis.call('ZCARD', queue(lane)) end
  return {queued, redis.call('ZCARD', leases), redis.call('ZCARD', calls)}
end

-- What follows is for the holder alone, and for who has finished a job and says so again.
if token == '' then return {0} end
if what == 'finish' and redis.call('HGET', record, 'finisher') == token then return {1} end
if redis.call('HGET', record, 'token') ~= token then return {0} end
if what == 'renew' then -- lease
  lease(name, ARGV[6])
elseif what == 'accept' then
  redis.call('HSET', record, 'state', 'accepted')
  redis.call('ZADD', leases, redis.call('HGET', record, 'until'), name)
elseif what == 'mark' then -- fields
  set(6)
  changed(name)
elseif what == 'finish' then -- keep, state, fields
  set(8)
  redis.call('HSET', record, 'finisher', token)
  close(ARGV[7], ARGV[6])
elseif redis.call('ZSCORE', leases, name) then -- release: again, what tries change by, fields
  set(8)
  redis.call('HSET', record, 'token', '')
  redis.call('HINCRBY', record, 'tries', ARGV[7])
  lease(name, ARGV[6])
  changed(name)
else
  redis.call('DEL', record) -- a claim of which nothing was promised
end
return {1}
