-- Decisions about one subject's tokens, each atomic and in one round trip; see account.py.
--
-- KEYS[1]  the account, a hash of used, ends, granted, spent, hour
-- KEYS[2]  the mark of a grant or a settlement (both have the subject as their hash tag, so they are in one slot)
-- ARGV     take  until  tokens allowance period cap
--          back  until  allowed granted ends hour
--          grant until  tokens keep
--          settle until tokens keep allowance period
--          look  until
-- `until` is the time after which nobody waits for the answer, so that nothing may change; 0 for
-- none. Times are milliseconds of this server's clock; -1 stands for none.
-- Answers now, what happened, used, ends, granted, spent, hour, and two more:
-- take: `1`, then tokens of the allowance and granted ones; or `0`, then the wait. back, look: `1`.
-- grant, settle: `1`, or `2` for one that was made before, then its tokens. `-1` came too late.

local HOUR, UNUSED, CURRENT = 3600000, 34560000000, -1 -- UNUSED: 400 days

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local arg = {}
for i = 2, #ARGV do arg[i] = tonumber(ARGV[i]) end
if arg[2] > 0 and now > arg[2] then return {now, -1, 0, 0, 0, 0, 0, 0, 0} end

local held = redis.call('HMGET', KEYS[1], 'used', 'ends', 'granted', 'spent', 'hour')
for i = 1, 5 do held[i] = tonumber(held[i] or 0) end
local used, ends, granted, spent, hour = unpack(held)
if now >= ends then used, ends = 0, 0 end
if now >= hour then spent, hour = 0, 0 end

local done, first, second = 1, 0, 0
local write = true

if ARGV[1] == 'take' then
  local tokens, allowance, period, cap = arg[3], arg[4], arg[5], arg[6]
  local left = math.max(0, allowance - used)
  if (cap >= 0 and tokens > cap) or tokens > allowance + granted then
    done, first, write = 0, -1, false
  else
    if cap >= 0 and spent + tokens > cap then done, first = 0, hour - now end
    if tokens > left + granted then done, first = 0, math.max(first, ends - now) end
    if done == 1 then
      first = math.min(left, tokens)
      second = tokens - first
      used, granted, spent = used + first, granted - second, spent + tokens
      if ends == 0 and first > 0 then ends = now + period end
      if hour == 0 then hour = now + HOUR end
    else
      write = false
    end
  end
elseif ARGV[1] == 'back' then
  local allowed, given = arg[3], arg[4]
  if arg[6] == hour or arg[6] == CURRENT then spent = math.max(0, spent - allowed - given) end
  if arg[5] == ends or arg[5] == CURRENT then used = math.max(0, used - allowed) end
  granted = granted + given
elseif ARGV[1] == 'grant' or ARGV[1] == 'settle' then
  local before = redis.call('GET', KEYS[2])
  if before then
    done, first, write = 2, tonumber(before), false
  else
    first = arg[3]
    redis.call('SET', KEYS[2], first, 'PX', arg[4])
    if ARGV[1] == 'grant' then
      granted = granted + first
    else
      local of = math.min(granted, math.max(0, first - math.max(0, arg[5] - used)))
      used, granted, spent = used + first - of, granted - of, spent + first
      if ends == 0 then ends = now + arg[6] end
      if hour == 0 then hour = now + HOUR end
    end
  end
else
  write = false
end

if write then
  local last = math.max(ends, hour)
  if granted > 0 then last = now + UNUSED end
  redis.call('HSET', KEYS[1], 'used', used, 'ends', ends, 'granted', granted, 'spent', spent,
    'hour', hour)
  redis.call('PEXPIREAT', KEYS[1], last)
end
return {now, done, used, ends, granted, spent, hour, first, second}
