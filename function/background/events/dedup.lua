-- One decision of the ledger, atomic. KEYS: the record of the upload, the alias of the event, the
-- set of accepted records. ARGV: what, token, lease in ms, how long records are kept in ms, and:
--   claim: the event as text; answers {state, result, ms left}
--   renew, accept, release: answers {1} where the claim is the asker's
--   finish: the result
--   left: the prefix of records; answers {record, event text, alias}, or nothing
-- A record is a hash: state (running, accepted, done), token, until (ms of Redis' clock), event,
-- alias, result. All keys have one hash tag, so that a cluster keeps them together.
local record, alias, accepted = KEYS[1], KEYS[2], KEYS[3]
local what, token, lease, keep = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function take(key)
  redis.call('HSET', key, 'token', token, 'until', now + lease)
  redis.call('PEXPIRE', key, keep)
end

if what == 'left' then
  local found = redis.call('ZRANGEBYSCORE', accepted, '-inf', now, 'LIMIT', 0, 1)
  if not found[1] then return {} end
  local key = found[1]
  local facts = redis.call('HMGET', key, 'state', 'event', 'alias')
  if facts[1] ~= 'accepted' then
    redis.call('ZREM', accepted, key)
    return {}
  end
  take(key)
  redis.call('ZADD', accepted, now + lease, key)
  return {key, facts[2], facts[3]}
end

if what == 'claim' then
  local known = redis.call('GET', alias)
  for _, key in ipairs({record, known or record}) do
    local facts = redis.call('HMGET', key, 'state', 'until', 'result')
    if facts[1] == 'done' then return {'done', facts[3], 0} end
    local left = tonumber(facts[2] or 0) - now
    if facts[1] and left > 0 then return {facts[1], '', left} end
    if facts[1] == 'accepted' then -- its worker is gone: whoever asks may go on with it
      take(key)
      redis.call('ZADD', accepted, now + lease, key)
      return {'mine', '', 0}
    end
  end
  redis.call('DEL', record)
  redis.call('HSET', record, 'state', 'running', 'event', ARGV[5], 'alias', alias)
  take(record)
  redis.call('SET', alias, record, 'PX', keep)
  return {'mine', '', 0}
end

if what == 'finish' then
  redis.call('ZREM', accepted, record)
  redis.call('DEL', record)
  redis.call('HSET', record, 'state', 'done', 'token', token, 'result', ARGV[5])
  redis.call('PEXPIRE', record, keep)
  redis.call('SET', alias, record, 'PX', keep)
  return {1}
end

local facts = redis.call('HMGET', record, 'token', 'state')
if facts[1] ~= token or facts[2] == 'done' then return {0} end
if what == 'renew' then
  take(record)
  if facts[2] == 'accepted' then redis.call('ZADD', accepted, now + lease, record) end
elseif what == 'accept' then
  redis.call('HSET', record, 'state', 'accepted')
  redis.call('ZADD', accepted, redis.call('HGET', record, 'until'), record)
elseif what == 'release' then
  if facts[2] == 'accepted' then
    redis.call('HSET', record, 'until', now)
    redis.call('ZADD', accepted, now, record)
  else
    redis.call('DEL', record)
  end
end
return {1}
