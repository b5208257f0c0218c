-- Takes the lock if it is free, and gives the grant a fence: the larger of the counter plus one and the server's time in
-- microseconds, so that it grows on after the counter was lost. Compared as strings: Lua's numbers end at 2^53.
-- KEYS[1] lock, KEYS[2] counter (it has no TTL), ARGV[1] token, ARGV[2] lease in milliseconds. Returns the fence as a
-- string, or the remaining time of the hold in the way in milliseconds (-1: it has no TTL).
if redis.call('EXISTS', KEYS[1]) == 1 then
return redis.call('PTTL', KEYS[1])
end
redis.call('INCR', KEYS[2])
local fence = redis.call('GET', KEYS[2])
local time = redis.call('TIME')
local now = time[1] .. string.rep('0', 6 - #time[2]) .. time[2]
if string.sub(fence, 1, 1) == '-' or #now > #fence or (#now == #fence and now > fence) then
redis.call('SET', KEYS[2], now)
fence = now
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
