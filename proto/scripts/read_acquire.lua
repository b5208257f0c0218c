-- Takes a read lock if the lock is free, is read, or is written by our other side. Each reader's own time stands in a key
-- beside the lock, as Redisson looks for it. Never shortens: a lock whose TTL somebody has removed gets the longest lease that
-- another hold may have, which is 30 s of a reader and a day of a writer.
-- KEYS[1] lock, ARGV[1] owner field, ARGV[2] lease in milliseconds, ARGV[3] the token of our write lock, or nothing. Returns
-- OK, or the remaining time of the hold in the way in milliseconds (-1: it has no TTL).
local lock, tag, mode = KEYS[1], '{' .. KEYS[1] .. '}'
if redis.call('EXISTS', lock) == 1 then
mode = redis.pcall('HGET', lock, 'mode')
if type(mode) == 'table' and not string.find(mode.err, 'WRONGTYPE', 1, true) then
return mode
end
if mode ~= 'read' and (mode ~= 'write' or redis.call('HEXISTS', lock, ARGV[3] .. ':write') == 0) then
return redis.call('PTTL', lock)
end
end
if string.find(lock, '{', 1, true) then
tag = lock
end
-- Where PEXPIRE is refused, nothing has been created yet that would stay for ever.
local left = redis.call('PTTL', lock)
local longest = left == -1 and (mode == 'write' and 86400000 or 30000) or math.max(left, ARGV[2])
redis.call('PEXPIRE', lock, longest)
redis.call('SET', tag .. ':' .. ARGV[1] .. ':rwlock_timeout:1', '1', 'PX', ARGV[2])
if left == -2 then
redis.call('HSET', lock, 'mode', 'read')
end
redis.call('HSET', lock, ARGV[1], '1')
redis.call('PEXPIRE', lock, longest)
return redis.status_reply('OK')
