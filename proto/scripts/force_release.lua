-- Deletes a lock whoever holds it, and wakes a waiter of every client; of a lock that was written, all of them.
-- KEYS[1] lock, ARGV[1] channel, ARGV[2] that of a read/write lock. Returns 1, 0 if there is none, or an error if that is no
-- lock that holdfast knows.
local kind = redis.call('TYPE', KEYS[1]).ok
local channel, message = ARGV[1], '0'
if kind == 'none' then
return 0
end
if kind ~= 'string' and kind ~= 'hash' then
return redis.error_reply('WRONGTYPE the key is a ' .. kind .. ', which is no lock')
end
local mode = kind == 'hash' and redis.call('HGET', KEYS[1], 'mode')
if mode then
if mode ~= 'read' and mode ~= 'write' then
return redis.error_reply('WRONGTYPE the key is a hash with a mode of its own, which is no lock')
end
channel, message = ARGV[2], mode == 'write' and '1' or '0'
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', channel, message)
return 1
