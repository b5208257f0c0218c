-- Sets how often a read or a write lock is held, if it is ours: an absolute number, so that saying it twice changes nothing.
-- Never creates a lock, never shortens; see read_acquire.lua. PEXPIRE comes first, so that it passes when memory is full.
-- KEYS[1] lock, ARGV[1] token, ARGV[2] count, ARGV[3] lease in milliseconds. Returns 1, or 0 if it is not ours.
local lock, field, lease = KEYS[1], ARGV[1], tonumber(ARGV[3])
local tag = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
local own = tag .. ':' .. field .. ':rwlock_timeout:1'
if redis.call('HEXISTS', lock, field) == 0 then
field, own = field .. ':write', nil
if redis.call('HEXISTS', lock, field) == 0 then
return 0
end
end
local left = redis.call('PTTL', lock)
if left == -1 then
left = own and redis.call('HGET', lock, 'mode') == 'write' and 86400000 or 30000
end
redis.call('PEXPIRE', lock, math.max(left, lease))
if own then
left = redis.call('PTTL', own)
if left == -2 then
redis.call('SET', own, '1', 'PX', lease)
elseif left < lease then
redis.call('PEXPIRE', own, lease)
end
end
redis.call('HSET', lock, field, ARGV[2])
return 1
