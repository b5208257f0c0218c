-- Deletes a lock whoever holds it, and wakes a waiter of every client; of a lock that was written, all of them. Of a semaphore it
-- gives back every permit that is taken.
-- KEYS[1] lock. Returns 1, 0 if there is none, or an error if that is no lock that holdfast knows.
-- The last ARGV, where there is one, is the command that publishes: SPUBLISH in a cluster.
local call, lock, channel, message = redis.call, KEYS[1], 'redisson_lock__channel:', '0'
local tag = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
local kind = call('TYPE', lock).ok
if kind == 'none' then
return 0
end
if kind == 'string' then
local held = redis.pcall('ZCARD', tag .. ':timeout')
if type(held) == 'number' and held > 0 and string.find(call('GET', lock), '^%-?%d+$') then
message = call('INCRBY', lock, held)
call('DEL', tag .. ':timeout')
redis.pcall(ARGV[1] or 'PUBLISH', 'redisson_sc:' .. tag, message)
return 1
end
elseif kind ~= 'hash' then
return redis.error_reply('WRONGTYPE the key is a ' .. kind .. ', which is no lock')
end
local mode = kind == 'hash' and call('HGET', lock, 'mode')
if mode then
if mode ~= 'read' and mode ~= 'write' then
return redis.error_reply('WRONGTYPE the key is a hash with a mode of its own, which is no lock')
end
channel, message = 'redisson_rwlock:', mode == 'write' and '1' or '0'
end
call('DEL', lock)
redis.pcall(ARGV[1] or 'PUBLISH', channel .. tag, message)
return 1
