-- Sets how often the lock is held, if it is ours: an absolute number, so that saying it twice changes nothing. Never
-- creates, never shortens. PEXPIRE comes first, so that it passes when memory is full.
-- KEYS[1] lock, ARGV[1] owner field, ARGV[2] count, ARGV[3] lease in milliseconds. Returns 1, or 0 if it is not ours.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
return 0
end
local left = redis.call('PTTL', KEYS[1])
redis.call('PEXPIRE', KEYS[1], left > tonumber(ARGV[3]) and left or ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
