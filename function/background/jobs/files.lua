-- How many bytes of photos are kept, of each caller and in all, atomic; shared.py puts the photos
-- themselves elsewhere. KEYS: the prefix of all keys, which has a hash tag. ARGV: what, and more.
-- photos: a sorted set of names by when Redis forgets them. photo: a hash, name to "bytes holder".
-- held: a hash, holder to bytes; of all together under '*'. Times are milliseconds of Redis' clock.
local prefix = KEYS[1]
local photos, photo, held = prefix .. 'photos', prefix .. 'photo', prefix .. 'held'
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function add(holder, bytes)
  if redis.call('HINCRBY', held, holder, bytes) <= 0 then redis.call('HDEL', held, holder) end
end

local function free(name)
  local known = redis.call('HGET', photo, name)
  if not known then return end
  local bytes, holder = string.match(known, '^(%d+) (.*)$')
  add('*', -bytes)
  if holder ~= '' then add(holder, -bytes) end
  redis.call('HDEL', photo, name)
  redis.call('ZREM', photos, name)
end

local function holds(holder) return tonumber(redis.call('HGET', held, holder) or 0) end

if ARGV[1] == 'keep' then -- name, bytes, holder or '', how long, the most of all, of one holder
  local name, bytes, holder = ARGV[2], tonumber(ARGV[3]), ARGV[4]
  for _, over in ipairs(redis.call('ZRANGEBYSCORE', photos, '-inf', now, 'LIMIT', 0, 100)) do
    free(over)
  end
  free(name) -- what is kept under this name is replaced
  if holds('*') + bytes > tonumber(ARGV[6]) then return {'all'} end
  if holder ~= '' and holds(holder) + bytes > tonumber(ARGV[7]) then return {'own'} end
  redis.call('ZADD', photos, now + tonumber(ARGV[5]), name)
  redis.call('HSET', photo, name, ARGV[3] .. ' ' .. holder)
  add('*', bytes)
  if holder ~= '' then add(holder, bytes) end
  return {'ok'}
end

for at = 2, #ARGV do free(ARGV[at]) end -- forget: names
return {'ok'}
