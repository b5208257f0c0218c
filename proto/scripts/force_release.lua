-- Deletes a lock whoever holds it, and wakes a waiter of every client.
-- KEYS[1] lock, ARGV[1] channel. Returns 1, 0 if there is none, or an error if that is no lock that holdfast knows.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
return 0
end
if kind ~= 'string' and kind ~= 'hash' then
return redis.error_reply('WRONGTYPE the key is a ' .. kind .. ', which is no lock')
end
if kind == 'hash' and redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
return redis.error_reply('WRONGTYPE the key is a read/write lock')
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[1], '0')
return 1
