-- Takes the lock if it is free, and gives the grant a fence: the larger of the counter plus one and the server's time in
-- microseconds, so that it grows on after the counter was lost. Compared as strings: Lua's numbers end at 2^53.
-- KEYS[1] lock, KEYS[2] counter (it has no TTL), ARGV[1] owner field, ARGV[2] lease in milliseconds. Returns the fence as a
-- string, or the remaining time of the hold in the way in milliseconds (-1: it has no TTL).
local call, lock, counter = redis.call, KEYS[1], KEYS[2]
local left = call('PTTL', lock)
if left ~= -2 then
return left
end
-- Where PEXPIRE is refused, nothing has been created yet that would stay for ever.
call('PEXPIRE', lock, ARGV[2])
local fence, time = call('GET', counter), call('TIME')
local micros = time[2]
local now = time[1] .. (#micros == 6 and micros or string.rep('0', 6 - #micros) .. micros)
-- Mostly the time is the larger one, and the counter needs one write. All that is no small number is INCR's to count or refuse.
if not fence or (#now > #fence or (#now == #fence and now > fence)) and fence:find('^[1-9]%d*$') then
call('SET', counter, now)
fence = now
else
call('INCR', counter)
fence = call('GET', counter)
if string.sub(fence, 1, 1) == '-' or #now > #fence then
call('SET', counter, now)
fence = now
end
end
call('HSET', lock, ARGV[1], '1')
call('PEXPIRE', lock, ARGV[2])
return fence
