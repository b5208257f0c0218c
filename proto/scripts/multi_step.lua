-- Sets on every name how often the lock is held, if all are ours: an absolute number, so that saying it twice changes nothing.
-- Never creates, never shortens. PEXPIRE comes first, so that it passes when memory is full.
-- KEYS the names, ARGV[1] owner field, ARGV[2] count, ARGV[3] lease in milliseconds. Returns 1, or 0 if a name is not ours.
for _, key in ipairs(KEYS) do
if redis.call('HEXISTS', key, ARGV[1]) == 0 then
return 0
end
end
for _, key in ipairs(KEYS) do
local left = redis.call('PTTL', key)
redis.call('PEXPIRE', key, left > tonumber(ARGV[3]) and left or ARGV[3])
end
for _, key in ipairs(KEYS) do
redis.call('HSET', key, ARGV[1], ARGV[2])
end
return 1
